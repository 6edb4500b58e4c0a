/** Reads the counted requests of an app and a range of days from `precast.usage`. */
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/query.ts";

export type UsageRow = {
  readonly app: string;
  readonly day: string;
  readonly shape: string;
  readonly status: number;
  /** What could have been left out, as shared/saving.ts spells it; empty when the request could not have been free. */
  readonly saving: string;
  readonly count: number;
};

/** `since` and `until` are days (YYYY-MM-DD, UTC), both included. Null means all apps, or no limit. */
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
