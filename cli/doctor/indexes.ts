/** Checks the indexes of the schema: those that are missing, those whose build failed, and those of parts of texts. */
import type { ContentType } from "../../shared/api/catalog.ts";
import { makeSameIndex, readSchemaIndexes, type SchemaIndex } from "../../shared/schema/drift.ts";
import { isTextual } from "../../shared/sql/columns.ts";
import { formatBytes, formatCount } from "../../shared/text.ts";
import { readRow, readRows } from "../database.ts";
import { type CheckContext, defineCheck, type Found, LARGE_TYPE, statementRemedy, type TypeSize } from "./check.ts";

// Finds indexes of the schema that somebody has dropped, renamed or replaced: answers stay right, and become slow
// with the entries.

/** One that is not valid is left to another check: its build has not finished. */
type ExistingIndex = { readonly name: string; readonly definition: string; readonly isValid: boolean };
type MissingIndexFacts = {
  readonly expected: readonly SchemaIndex[];
  readonly existing: readonly ExistingIndex[];
  readonly hasOwnerRights: boolean;
};

export const missingIndexesCheck = defineCheck({
  name: "missing-indexes",
  gather: readIndexes,
  judge: findMissingIndexes,
});

async function readIndexes({ database }: CheckContext): Promise<MissingIndexFacts> {
  const existing = await readRows<ExistingIndex>(
    database,
    `SELECT class.relname AS name, pg_get_indexdef(class.oid) AS definition, indisvalid AND indisready AS "isValid"
FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid
WHERE class.relnamespace = 'precast'::regnamespace ORDER BY class.relname`,
  );
  const owner = await readRow<Pick<MissingIndexFacts, "hasOwnerRights">>(
    database,
    `SELECT pg_has_role(relowner, 'USAGE') AS "hasOwnerRights" FROM pg_class WHERE oid = 'precast.entries'::regclass`,
  );
  return { expected: await readSchemaIndexes(), existing, ...owner };
}

function findMissingIndexes({ expected, existing, hasOwnerRights }: MissingIndexFacts): Found[] {
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

function missing({ name, create }: SchemaIndex, renamed: ExistingIndex | undefined, hasOwnerRights: boolean): Found {
  const statements = renamed === undefined ? create : [`ALTER INDEX precast.${quoted(renamed.name)} RENAME TO ${name}`];
  const dropped = `It was dropped. ${SLOW}`;
  return {
    subject: `precast.${name}: missing`,
    problem:
      renamed === undefined ? dropped : `It is now ${renamed.name}. Imports and other checks know it by its name.`,
    gain: GAIN,
    ...statementRemedy(hasOwnerRights, OWNER, statements, WAITS),
  };
}

/** A person decides: the index that has the name may serve somebody else. */
function replaced({ name, create }: SchemaIndex, definition: string, hasOwnerRights: boolean): Found {
  const statements = [`DROP INDEX CONCURRENTLY precast.${name}`, ...create];
  return {
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

// Finds indexes whose build failed, or that a rebuild has replaced: writes may maintain them, but no query uses them.

type Index = {
  readonly name: string;
  readonly table: string;
  readonly definition: string;
  readonly bytes: number;
  readonly hasOwnerRights: boolean;
};

export const indexesCheck = defineCheck({
  name: "indexes",
  gather: readUnfinished,
  judge: (indexes) => indexes.map(describeLeftover),
});

/**
 * Leaves out indexes that are being built right now. Without `pg_read_all_stats` a role does not see on which table
 * another role builds one; while such a build runs, no index is reported.
 */
function readUnfinished({ database }: CheckContext): Promise<Index[]> {
  return readRows(
    database,
    `SELECT format('%I.%I', namespace.nspname, class.relname) AS name, of.relname AS table,
  pg_get_indexdef(class.oid) AS definition, pg_relation_size(class.oid) AS bytes,
  pg_has_role(class.relowner, 'USAGE') AS "hasOwnerRights"
FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
JOIN pg_class AS of ON of.oid = index.indrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = 'precast' AND NOT (index.indisvalid AND index.indisready)
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index AS progress
    WHERE progress.datname = current_database() AND coalesce(progress.relid, index.indrelid) = index.indrelid)
ORDER BY class.relname`,
  );
}

/**
 * Endings of the names of indexes that an interrupted REINDEX CONCURRENTLY leaves, and why no query can use them: the new
 * one that was not finished, or the old one after the new one has taken its place and its name.
 */
const LEFTOVERS = [
  { ending: /_ccnew\d*"?$/, why: "a failed rebuild left it behind" },
  { ending: /_ccold\d*"?$/, why: "a rebuild has replaced it, but was interrupted before it dropped it" },
];

function describeLeftover({ name, table, definition, bytes, hasOwnerRights }: Index): Found {
  const leftover = LEFTOVERS.find(({ ending }) => ending.test(name));
  const statement = `${leftover === undefined ? "REINDEX" : "DROP"} INDEX CONCURRENTLY ${name}`;
  return {
    subject: `${name}: unfinished index`,
    problem: `No query can use it, because ${leftover?.why ?? "its creation failed"}; writes to ${table} may still update it (${formatBytes(bytes)}). Definition: ${definition}`,
    gain: leftover === undefined ? "Queries can use it." : "Writes are cheaper, and disk space is freed.",
    ...statementRemedy(hasOwnerRights, "its owner", [statement], WAITS),
  };
}

// Finds missing trigram indexes, which find parts of words and of texts. `migrate` creates them when it may.

const EXTENSION = "pg_trgm";

type TrigramIndex = {
  /** Whether requests to the type use the index. */
  readonly serves: (type: ContentType) => boolean;
  /** What is read without the index, and by which requests. */
  readonly spares: string;
  /** What follows ON in its definition. `operators` is the operator class of the extension. */
  readonly on: (operators: string) => string;
};
const INDEXES: Readonly<Record<string, TrigramIndex>> = {
  terms_by_part: {
    serves: isSearchable,
    spares: "every different word of a type for a search",
    on: (operators) => `precast.terms USING gin (term ${operators})`,
  },
  entries_by_texts: {
    serves: isFilteredByText,
    spares: "every entry of a type for a contains filter",
    on: (operators) => `precast.entries USING gin (texts ${operators}) WHERE status = 'published'`,
  },
};

function isSearchable({ fields }: ContentType): boolean {
  return fields.some(({ searchable }) => searchable);
}

function isFilteredByText({ fields, filterable_fields }: ContentType): boolean {
  return fields.some((field) => filterable_fields.includes(field.name) && !field.multiple && isTextual(field));
}

type TrigramFacts = {
  /** The name of the extension, if it does not exist, and those of the indexes that do not. */
  readonly missing: readonly string[];
  /** Whether the server has the files of the extension, so that it can be created. */
  readonly available: boolean;
  readonly mayCreate: boolean;
  /** Name of the operator class, with the schema of the extension once that exists. */
  readonly operators: string;
  readonly types: readonly TypeSize[];
};

export const trigramsCheck = defineCheck({
  name: "trigrams",
  gather: readMissing,
  judge: findTrigrams,
});

async function readMissing({ database, types }: CheckContext): Promise<TrigramFacts> {
  const facts = await readRow<Omit<TrigramFacts, "types">>(
    database,
    `SELECT ARRAY(
    SELECT $1::text WHERE $1 NOT IN (SELECT extname FROM pg_extension)
    UNION ALL
    SELECT name FROM unnest($2::text[]) AS name WHERE to_regclass('precast.' || name) IS NULL) AS missing,
  EXISTS (SELECT FROM pg_available_extensions WHERE name = $1) AS available,
  pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'precast.entries'::regclass), 'USAGE')
    AND ($1 IN (SELECT extname FROM pg_extension) OR has_database_privilege(current_database(), 'CREATE')) AS "mayCreate",
  coalesce((SELECT quote_ident(nspname) || '.' FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
    WHERE extname = $1), '') || 'gin_trgm_ops' AS operators`,
    [EXTENSION, Object.keys(INDEXES)],
  );
  return { ...facts, types };
}

function findTrigrams({ missing, available, mayCreate, operators, types }: TrigramFacts): Found[] {
  const large = types.filter(({ entries }) => entries >= LARGE_TYPE);
  const served = (name: string) => large.filter(({ type }) => INDEXES[name]?.serves(type));
  const indexes = missing.filter((name) => served(name).length > 0);
  if (indexes.length === 0) return [];
  const needed = missing.filter((name) => name === EXTENSION || indexes.includes(name));
  const most = Math.max(...indexes.flatMap(served).map(({ entries }) => entries));
  const read = indexes.flatMap((name) => INDEXES[name]?.spares ?? []).join(" and ");
  const statements = needed.map((name) => createStatement(name, operators));
  const how = statementRemedy(mayCreate, "an administrator", statements, "This does not block writers.");
  return [
    {
      // Who cannot install the extension cannot follow advice.
      kind: available ? "advice" : "information",
      subject: `${needed.join(", ")}: missing`,
      problem: `The database reads ${read}, and the largest type has ${formatCount(most)} entries.`,
      gain: "An index finds parts of three or more letters.",
      ...(available ? how : { remedy: `${INSTALL} ${how.remedy}`, fix: null }),
    },
  ];
}

const INSTALL = "Install the package of PostgreSQL's additional modules (postgresql-contrib) on its server.";

function createStatement(name: string, operators: string): string {
  const index = INDEXES[name];
  return index === undefined
    ? `CREATE EXTENSION IF NOT EXISTS ${name}`
    : `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ON ${index.on(operators)}`;
}
