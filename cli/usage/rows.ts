/** Reads the counted requests: the rows of `precast.usage` that were asked for. */
import { type Session, sql } from "../../shared/database/database.ts";

export type UsageRow = {
  readonly app: string;
  readonly day: string;
  readonly shape: string;
  readonly status: number;
  /** What could have been left out, as the ledger spells it; empty where the price was due. */
  readonly saving: string;
  readonly count: number;
};

export type UsageRange = { readonly app: string | null; readonly since: string | null; readonly until: string | null };

export async function readUsage(session: Session, { app, since, until }: UsageRange): Promise<UsageRow[]> {
  const rows = await session.query(
    sql(
      `SELECT app_key, to_char(day, 'YYYY-MM-DD'), shape, status::text, saving, count::text FROM precast.usage
WHERE ($1::text IS NULL OR app_key = $1) AND ($2::date IS NULL OR day >= $2::date) AND ($3::date IS NULL OR day <= $3::date)
ORDER BY day, app_key COLLATE "C", shape COLLATE "C", status, saving COLLATE "C"`,
      [app, since, until],
    ),
  );
  return rows.map((row) => usageRow(row as string[]));
}

function usageRow([app = "", day = "", shape = "", status, saving = "", count]: string[]): UsageRow {
  return { app, day, shape, status: Number(status), saving, count: Number(count) };
}
