/** Prepares the output of `precast usage`: the numbers, and their forms as text and as CSV. */
import { formatCount, formatCounted } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { adviceOf } from "./advice.ts";
import { drawChart } from "./chart.ts";
import { writeCsv } from "./csv.ts";
import type { UsageRange, UsageRow } from "./rows.ts";
import {
  type AppSum,
  type DaySum,
  type SavingSum,
  type ShapeSum,
  sumByApp,
  sumByDay,
  sumBySaving,
  sumByShape,
  totalOf,
} from "./sums.ts";

export type UsageReport = {
  readonly total: number;
  readonly rows: readonly UsageRow[];
  readonly apps: readonly AppSum[];
  readonly days: readonly DaySum[];
  readonly shapes: readonly ShapeSum[];
  readonly savings: readonly (SavingSum & { readonly advice: string })[];
};

export function reportUsage(rows: readonly UsageRow[], range: UsageRange): UsageReport {
  return {
    total: totalOf(rows),
    rows,
    apps: sumByApp(rows),
    days: sumByDay(rows, range),
    shapes: sumByShape(rows),
    savings: sumBySaving(rows).map((sum) => ({ ...sum, advice: adviceOf(sum.saving) })),
  };
}

export function csvOf({ rows }: UsageReport): string {
  const records = rows.map(({ app, day, shape, status, saving, count }) => [app, day, shape, status, saving, count]);
  return writeCsv(["app", "day", "shape", "status", "saving", "count"], records);
}

/** Maximum number of shapes in the list of the costliest. */
const MOST = 10;

export function textOf({ total, apps, days, shapes, savings }: UsageReport, terminal: Terminal): string {
  if (total === 0) return "0 counted requests";
  const { colors, table, width } = terminal;
  const saved = totalOf(savings);
  const sections = [
    `${colors.bold(requests(total, "counted"))}, ${days[0]?.day} to ${days.at(-1)?.day} (UTC)`,
    `${colors.bold("By app and shape")}\n${table(
      ["App", "Shape", "Requests"],
      apps.map(({ app, shape, count }) => [app, shape, formatCount(count)]),
    )}`,
    `${colors.bold("Day by day")}\n${drawChart(days, width)}`,
    `${colors.bold("Costliest")}\n${table(
      ["App", "Shape", "Status", "Requests", "Share"],
      shapes
        .slice(0, MOST)
        .map(({ app, shape, status, count }) => [app, shape, status, formatCount(count), share(count, total)]),
    )}`,
    ...(saved === 0
      ? []
      : [
          `${colors.bold("Could have been free")}: ${requests(saved)}, ${share(saved, total)}\n${savings
            .map(({ app, advice, count }) => `${app}: ${advice}: ${requests(count)}`)
            .join("\n")}`,
        ]),
  ];
  return sections.join("\n\n");
}

function requests(count: number, kind = ""): string {
  return formatCounted(count, kind === "" ? "request" : `${kind} request`);
}

function share(count: number, total: number): string {
  return `${((count / total) * 100).toFixed(1)} %`;
}
