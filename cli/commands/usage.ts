/** `precast usage`: what was counted, by app, day, shape and status. */
import { sql } from "../../shared/database/database.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";

type UsageRow = {
  readonly app: string;
  readonly day: string;
  readonly shape: string;
  readonly status: number;
  readonly count: number;
};

export const usageCommand = defineCommand({
  name: "usage",
  describes: "show the counted requests",
  argument: null,
  settings: ["oneApp", "since", "until"],
  examples: ["precast usage", "precast usage --app atlas --since 2026-01-01 --until 2026-01-31 --json"],
  run: async ({ terminal }, settings) => {
    const rows = await withDatabase(settings, async (database) => {
      const { oneApp, since, until } = settings;
      const found = await database.query(
        sql(
          `SELECT app_key, day::text, shape, status::text, count::text FROM precast.usage
WHERE ($1::text IS NULL OR app_key = $1) AND ($2::date IS NULL OR day >= $2::date) AND ($3::date IS NULL OR day <= $3::date)
ORDER BY day, app_key COLLATE "C", shape COLLATE "C", status`,
          [oneApp, since, until],
        ),
      );
      return found.map((row) => usageRow(row as string[]));
    });
    const total = rows.reduce((sum, row) => sum + row.count, 0);
    const table = terminal.table(
      ["App", "Day (UTC)", "Shape", "Status", "Count"],
      rows.map(({ app, day, shape, status, count }) => [app, day, shape, status, count]),
    );
    terminal.result(`${rows.length === 0 ? "" : `${table}\n`}${total} counted requests`, { total, rows });
    return DONE;
  },
});

function usageRow([app = "", day = "", shape = "", status, count]: string[]): UsageRow {
  return { app, day, shape, status: Number(status), count: Number(count) };
}
