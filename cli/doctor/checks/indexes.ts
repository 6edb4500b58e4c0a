/** Finds indexes whose build failed, or that a rebuild has replaced: writes may maintain them, but no query uses them. */
import { sql } from "../../../shared/query.ts";
import { formatBytes } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import { type Finding, statementRemedy } from "../finding.ts";

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
  judge: (indexes) => indexes.map(findingOf),
});

/**
 * Leaves out indexes that are being built right now. Without `pg_read_all_stats` a role does not see on which table
 * another role builds one; while such a build runs, no index is reported.
 */
async function readUnfinished({ database }: CheckContext): Promise<Index[]> {
  const rows = await database.query(
    sql(`SELECT format('%I.%I', namespace.nspname, class.relname), of.relname::text, pg_get_indexdef(class.oid),
  pg_relation_size(class.oid)::text, pg_has_role(class.relowner, 'USAGE')::text
FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
JOIN pg_class AS of ON of.oid = index.indrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = 'precast' AND NOT (index.indisvalid AND index.indisready)
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index AS progress
    WHERE progress.datname = current_database() AND coalesce(progress.relid, index.indrelid) = index.indrelid)
ORDER BY class.relname`),
  );
  return rows.map(([name, table, definition, bytes, hasOwnerRights]) => ({
    name: name as string,
    table: table as string,
    definition: definition as string,
    bytes: Number(bytes),
    hasOwnerRights: hasOwnerRights === "true",
  }));
}

/**
 * Endings of the names of indexes that an interrupted REINDEX CONCURRENTLY leaves, and why no query can use them: the new
 * one that was not finished, or the old one after the new one has taken its place and its name.
 */
const LEFTOVERS = [
  { ending: /_ccnew\d*"?$/, why: "a failed rebuild left it behind" },
  { ending: /_ccold\d*"?$/, why: "a rebuild has replaced it, but was interrupted before it dropped it" },
];

function findingOf({ name, table, definition, bytes, hasOwnerRights }: Index): Finding {
  const leftover = LEFTOVERS.find(({ ending }) => ending.test(name));
  const statement = `${leftover === undefined ? "REINDEX" : "DROP"} INDEX CONCURRENTLY ${name}`;
  return {
    kind: "advice",
    subject: `${name}: unfinished index`,
    problem: `No query can use it, because ${leftover?.why ?? "its creation failed"}; writes to ${table} may still update it (${formatBytes(bytes)}). Definition: ${definition}`,
    gain: leftover === undefined ? "Queries can use it." : "Writes are cheaper, and disk space is freed.",
    ...statementRemedy(
      hasOwnerRights,
      "its owner",
      [statement],
      "It waits for open transactions, and does not block writers.",
    ),
  };
}
