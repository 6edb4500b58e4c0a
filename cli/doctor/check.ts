/** Defines a check of `precast doctor` and its findings, and reads what several checks need. */
import type { App, ContentType } from "../../shared/api/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import { readSlots, type Slots, slotsQuery } from "../../shared/sql/columns.ts";
import { sql } from "../../shared/sql/query.ts";

// Defines a check of `precast doctor`: one function gathers facts, another derives findings from these facts
// alone.

/** What every check may read. */
export type CheckContext = {
  readonly database: Database;
  readonly types: readonly TypeSize[];
  readonly dataDir: string;
  /** Number of concurrent live queries that a server may run (`--connections`). */
  readonly connections: number;
  /** Number of processes of a server (`--workers`). */
  readonly workers: number;
  readonly now: Date;
};

/** A published content type, with the number of its published entries. */
export type TypeSize = { readonly app: App; readonly type: ContentType; readonly entries: number };

/** Entries. The database reads a smaller type from end to end in a few milliseconds. */
export const LARGE_TYPE = 10_000;

export type Check = {
  readonly name: string;
  readonly findings: (context: CheckContext) => Promise<readonly Finding[]>;
};

type CheckParts<F> = {
  readonly name: string;
  readonly gather: (context: CheckContext) => Promise<F>;
  readonly judge: (facts: F) => readonly Finding[];
};

export function defineCheck<F>(parts: CheckParts<F>): Check & CheckParts<F> {
  return { ...parts, findings: async (context) => parts.judge(await parts.gather(context)) };
}

// Defines a finding of `precast doctor`: the problem, what a change would gain, and how to make the change.

export type Finding = {
  /** `information` recommends no change: it states what a choice costs. */
  readonly kind: "advice" | "information";
  readonly subject: string;
  readonly problem: string;
  readonly gain: string;
  readonly remedy: string;
  /** Statements that make the change and block no writer, each in its own transaction. Null when a person must act. */
  readonly fix: readonly string[] | null;
};

export function isAdvice({ kind }: Finding): boolean {
  return kind === "advice";
}

export function canFix(finding: Finding): finding is Finding & { readonly fix: readonly string[] } {
  return isAdvice(finding) && finding.fix !== null;
}

/** What a remedy that changes the slots of a type says of its price (schema/0004_slots.sql). */
export const CHANGE_WRITES =
  "A change of these lists may write all entries of the type in one transaction, about 0.2 ms each, and writers of the type wait meanwhile.";

/** The remedy that runs statements, and the fix, which is left to `who` unless this role may run them. */
export function statementRemedy(
  mayRun: boolean,
  who: string,
  statements: readonly string[],
  note: string,
): Pick<Finding, "remedy" | "fix"> {
  const run = mayRun ? "Run" : `Have ${who} run`;
  return { remedy: `${run} ${statements.join("; ")}. ${note}`, fix: mayRun ? statements : null };
}

// Reads what the database knows about Precast's tables: sizes, statistics, and the rights of the current role.

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

// Reads the slots of the types that have enough entries for their indexes to matter.

type LargeType = { readonly size: TypeSize; readonly slots: Slots };

export async function readLargeTypes({ database, types }: CheckContext): Promise<LargeType[]> {
  const found: LargeType[] = [];
  for (const size of types) {
    if (size.entries < LARGE_TYPE) continue;
    const [row] = await database.query(slotsQuery(size.app.key, size.type.slug));
    const slots = readSlots(row);
    if (slots !== null) found.push({ size, slots });
  }
  return found;
}
