/** Reads what the database knows about Precast's tables: sizes, statistics, and the rights of the current role. */
import { sql } from "../../shared/query.ts";
import type { CheckContext } from "./check.ts";
import { type Finding, statementRemedy } from "./finding.ts";

export type Table = {
  /** As SQL names it: `precast.entries`. */
  readonly name: string;
  /** Estimates of the database: live rows, dead rows, and rows written since the last ANALYZE. */
  readonly rows: number;
  readonly dead: number;
  readonly modified: number;
  /** Pages now, pages at the last VACUUM or ANALYZE, and those of the latter that were marked as all-visible. */
  readonly pages: number;
  readonly knownPages: number;
  readonly visiblePages: number;
  readonly hasStatistics: boolean;
  /** Whether the role may read the table. Otherwise its statistics are hidden too, and `hasStatistics` is false. */
  readonly readable: boolean;
  /** Whether the role has the owner's rights, so that it may run ANALYZE and VACUUM. */
  readonly hasOwnerRights: boolean;
};

export async function readTables({ database }: CheckContext): Promise<Table[]> {
  const rows = await database.query(
    sql(`SELECT format('%I.%I', namespace.nspname, class.relname),
  greatest(stat.n_live_tup, class.reltuples::bigint, 0)::text, coalesce(stat.n_dead_tup, 0)::text,
  coalesce(stat.n_mod_since_analyze, 0)::text,
  (pg_relation_size(class.oid) / current_setting('block_size')::bigint)::text, class.relpages::text,
  class.relallvisible::text,
  EXISTS (SELECT FROM pg_stats WHERE schemaname = namespace.nspname AND tablename = class.relname)::text,
  has_table_privilege(class.oid, 'SELECT')::text, pg_has_role(class.relowner, 'USAGE')::text
FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
LEFT JOIN pg_stat_user_tables AS stat ON stat.relid = class.oid
WHERE namespace.nspname = 'precast' AND class.relkind = 'r' ORDER BY class.relname`),
  );
  return rows.map(
    ([name, live, dead, modified, pages, knownPages, visiblePages, hasStatistics, readable, hasOwnerRights]) => ({
      name: name as string,
      rows: Number(live),
      dead: Number(dead),
      modified: Number(modified),
      pages: Number(pages),
      knownPages: Number(knownPages),
      visiblePages: Number(visiblePages),
      hasStatistics: hasStatistics === "true",
      readable: readable === "true",
      hasOwnerRights: hasOwnerRights === "true",
    }),
  );
}

/** The remedy and the fix of a finding whose `statement` only the owner of the table may run. */
export function maintenanceRemedy({ hasOwnerRights }: Table, statement: string): Pick<Finding, "remedy" | "fix"> {
  return statementRemedy(hasOwnerRights, "the owner of the table", [statement], "It does not block writers.");
}
