/** Finds indexes of the schema that somebody has dropped: answers stay right, and become slow with the entries. */
import { sql } from "../../../shared/query.ts";
import { type SchemaIndex, schemaIndexes } from "../../../shared/schema/indexes.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import { type Finding, statementRemedy } from "../finding.ts";

type Facts = { readonly missing: readonly SchemaIndex[]; readonly hasOwnerRights: boolean };

export const missingIndexesCheck = defineCheck({
  name: "missing-indexes",
  gather: readMissing,
  judge: ({ missing, hasOwnerRights }: Facts) => missing.map((index) => findingOf(index, hasOwnerRights)),
});

async function readMissing({ database }: CheckContext): Promise<Facts> {
  const expected = schemaIndexes();
  const rows = await database.query(
    sql(
      `SELECT name, pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'precast.entries'::regclass), 'USAGE')::text
FROM unnest($1::text[]) AS name WHERE to_regclass('precast.' || name) IS NULL`,
      [expected.map(({ name }) => name)],
    ),
  );
  const names = rows.map(([name]) => name);
  return {
    missing: expected.filter(({ name }) => names.includes(name)),
    hasOwnerRights: rows.every(([, hasRights]) => hasRights === "true"),
  };
}

function findingOf({ name, create }: SchemaIndex, hasOwnerRights: boolean): Finding {
  return {
    kind: "advice",
    subject: `precast.${name}: missing`,
    problem:
      "The schema has this index, but somebody has dropped or renamed it: what it would find is looked for in whole tables, or in other indexes that hold more.",
    gain: "Requests, writes and builds that need it take as long as they should, however many entries there are.",
    ...statementRemedy(hasOwnerRights, "the owner of the tables", create, "This does not block writers."),
  };
}
