/** Reads what the database knows of Precast's tables: their sizes, and who has looked after them. */
import { sql } from "../../shared/database/database.ts";
import type { Patient } from "./check.ts";

export type Table = {
  /** As SQL names it: `precast.entries`. */
  readonly name: string;
  /** As far as the database knows: live ones, dead ones, and those written since it last made statistics. */
  readonly rows: number;
  readonly dead: number;
  readonly modified: number;
  /** How many pages it has, had when it was last looked at, and of those how many everybody may see in whole. */
  readonly pages: number;
  readonly knownPages: number;
  readonly visiblePages: number;
  readonly hasStatistics: boolean;
  /** May we look into it? Otherwise whether it has statistics is hidden from us as well. */
  readonly readable: boolean;
  /** May we look after it? */
  readonly own: boolean;
};

export async function readTables({ database }: Patient): Promise<Table[]> {
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
  return rows.map(([name, live, dead, modified, pages, knownPages, visiblePages, hasStatistics, readable, own]) => ({
    name: name as string,
    rows: Number(live),
    dead: Number(dead),
    modified: Number(modified),
    pages: Number(pages),
    knownPages: Number(knownPages),
    visiblePages: Number(visiblePages),
    hasStatistics: hasStatistics === "true",
    readable: readable === "true",
    own: own === "true",
  }));
}

/** What looks after a table, as a finding tells it. */
export function careOf({ own }: Table, statement: string): { remedy: string; fix: readonly string[] | null } {
  return own
    ? { remedy: `Run ${statement}. Writers go on meanwhile.`, fix: [statement] }
    : { remedy: `Have the owner of the table run ${statement}. Writers go on meanwhile.`, fix: null };
}
