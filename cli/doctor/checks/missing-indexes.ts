/**
 * Finds indexes of the schema that somebody has dropped, renamed or replaced: answers stay right, and become slow with the
 * entries.
 */
import { sql } from "../../../shared/query.ts";
import { makeSameIndex, type SchemaIndex, schemaIndexes } from "../../../shared/schema/drift.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import { type Finding, statementRemedy } from "../finding.ts";

/** One that is not valid is left to another check: its build has not finished. */
type ExistingIndex = { readonly name: string; readonly definition: string; readonly isValid: boolean };
type Facts = {
  readonly expected: readonly SchemaIndex[];
  readonly existing: readonly ExistingIndex[];
  readonly hasOwnerRights: boolean;
};

export const missingIndexesCheck = defineCheck({ name: "missing-indexes", gather: readIndexes, judge: findingsOf });

async function readIndexes({ database }: CheckContext): Promise<Facts> {
  const rows = await database.query(
    sql(`SELECT class.relname::text, pg_get_indexdef(class.oid), (indisvalid AND indisready)::text
FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid
WHERE class.relnamespace = 'precast'::regnamespace ORDER BY class.relname`),
  );
  const [owner] = await database.query(
    sql("SELECT pg_has_role(relowner, 'USAGE')::text FROM pg_class WHERE oid = 'precast.entries'::regclass"),
  );
  return {
    expected: schemaIndexes(),
    existing: rows.map(([name, definition, isValid]) => ({
      name: name as string,
      definition: definition as string,
      isValid: isValid === "true",
    })),
    hasOwnerRights: owner?.[0] === "true",
  };
}

function findingsOf({ expected, existing, hasOwnerRights }: Facts): Finding[] {
  const ownNames = expected.map(({ name }) => name);
  const others = existing.filter(({ name, isValid }) => isValid && !ownNames.includes(name));
  return expected.flatMap((index) => {
    const { name, create } = index;
    const isSame = ({ definition }: ExistingIndex) => makeSameIndex(definition, create[0] as string);
    const own = existing.find((one) => one.name === name);
    if (own === undefined) return missing(index, others.find(isSame), hasOwnerRights);
    return !own.isValid || isSame(own) ? [] : replaced(index, own.definition, hasOwnerRights);
  });
}

const SLOW =
  "What it would find is looked for in whole tables, or in other indexes that hold more: requests, writes and builds may become slow.";
const GAIN = "Requests, writes and builds take as long as they should, however many entries there are.";
const OWNER = "the owner of the tables";
const WAITS = "It waits for open transactions, and does not block writers.";

function missing({ name, create }: SchemaIndex, renamed: ExistingIndex | undefined, hasOwnerRights: boolean): Finding {
  const statements = renamed === undefined ? create : [`ALTER INDEX precast.${quoted(renamed.name)} RENAME TO ${name}`];
  const dropped = `It was dropped. ${SLOW}`;
  return {
    kind: "advice",
    subject: `precast.${name}: missing`,
    problem:
      renamed === undefined ? dropped : `It is now ${renamed.name}. Imports and other checks know it by its name.`,
    gain: GAIN,
    ...statementRemedy(hasOwnerRights, OWNER, statements, WAITS),
  };
}

/** A person decides: the index that has the name may serve somebody else. */
function replaced({ name, create }: SchemaIndex, definition: string, hasOwnerRights: boolean): Finding {
  const statements = [`DROP INDEX CONCURRENTLY precast.${name}`, ...create];
  return {
    kind: "advice",
    subject: `precast.${name}: replaced`,
    problem: `Another index has its name: ${definition}. ${SLOW}`,
    gain: GAIN,
    ...statementRemedy(hasOwnerRights, OWNER, statements, WAITS),
    fix: null,
  };
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
