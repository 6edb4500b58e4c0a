/**
 * `precast usage`: shows the counted requests by day, and by shape, with those that could have been free, or by the types
 * and fields that they use.
 */
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import { ConfigError } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { formatCount, formatCounted } from "../../shared/text.ts";
import { UnknownAppError } from "../../shared/tree.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import type { Terminal } from "../terminal.ts";
import {
  type AppSum,
  adviseOn,
  type DaySum,
  type NamesSum,
  readNames,
  readUsage,
  type SavingSum,
  type ShapeSum,
  sumByApp,
  sumByDay,
  sumByNames,
  sumBySaving,
  sumByShape,
  sumCounts,
  type UsageRange,
  type UsageRow,
} from "../usage.ts";

export const usageCommand = defineCommand({
  name: "usage",
  describes: "show the counted requests, and which of them could have been free",
  argument: null,
  settings: ["oneApp", "by", "since", "until", "csv"],
  examples: [
    "precast usage",
    "precast usage --by field",
    "precast usage --app atlas --since 2026-01-01 --until 2026-01-31 --csv",
  ],
  run: async ({ terminal }, { oneApp, by, since, until, csv, ...settings }) => {
    if (csv && settings.json) throw new ConfigError(["--csv and --json cannot be combined: specify only one of them."]);
    if (since !== null && until !== null && since > until)
      throw new ConfigError([
        `--since ${since} is later than --until ${until}: specify an earlier --since or a later --until.`,
      ]);
    const range = { app: oneApp, since, until };
    await withDatabase(settings, async (database) => {
      const { report, text, table } = await (by === "shape"
        ? showShapes(database, range, terminal)
        : showNames(database, range, by, terminal));
      if (report.total === 0 && oneApp !== null) await refuseUnknownApp(database, settings, oneApp);
      if (csv) terminal.print(table);
      else terminal.result(text, report);
    });
    return DONE;
  },
});

/** Throws UnknownAppError for a key that no app has and no count names. The counts of a deleted app remain. */
async function refuseUnknownApp(database: Database, defaults: AppDefaults, key: string): Promise<void> {
  const known = (await readApps(database, defaults)).map((app) => app.key);
  if (known.includes(key)) return;
  const ever = await readUsage(database, { app: key, since: null, until: null });
  if (ever.length === 0) throw new UnknownAppError([key], known);
}

/** The numbers, and their forms as text and as CSV. */
type Shown = {
  readonly report: { readonly total: number } & Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly table: string;
};

// By shape.

async function showShapes(database: Database, range: UsageRange, terminal: Terminal): Promise<Shown> {
  const report = reportUsage(await readUsage(database, range), range);
  return { report, text: writeText(report, terminal), table: writeUsageCsv(report) };
}

type UsageReport = {
  readonly total: number;
  readonly rows: readonly UsageRow[];
  readonly apps: readonly AppSum[];
  readonly days: readonly DaySum[];
  readonly shapes: readonly ShapeSum[];
  readonly savings: readonly (SavingSum & { readonly advice: string })[];
};

function reportUsage(rows: readonly UsageRow[], range: UsageRange): UsageReport {
  return {
    total: sumCounts(rows),
    rows,
    apps: sumByApp(rows),
    days: sumByDay(rows, range),
    shapes: sumByShape(rows),
    savings: sumBySaving(rows).map((sum) => ({ ...sum, advice: adviseOn(sum.saving) })),
  };
}

function writeUsageCsv({ rows }: UsageReport): string {
  const records = rows.map(({ app, day, shape, status, saving, count }) => [app, day, shape, status, saving, count]);
  return writeCsv(["app", "day", "shape", "status", "saving", "count"], records);
}

const NOTHING = "0 counted requests";
/** Maximum number of shapes in the list of the costliest. */
const MOST = 10;

function writeText({ total, apps, days, shapes, savings }: UsageReport, terminal: Terminal): string {
  if (total === 0) return NOTHING;
  const { colors, table, width } = terminal;
  const saved = sumCounts(savings);
  const sections = [
    writeTotal(total, days, terminal),
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

// By types and fields.

/** Maximum number of types, or of combinations of fields, in the text. */
const MOST_NAMES = 50;
/** Of requests for types that the app did not have, or that were counted before names were recorded. */
const UNNAMED = "(none)";

async function showNames(
  database: Database,
  range: UsageRange,
  by: "type" | "field",
  terminal: Terminal,
): Promise<Shown> {
  const found = await readNames(database, range, by);
  const total = sumCounts(found);
  const days = sumByDay(found, range);
  const sums = sumByNames(found);
  const list = (values: { readonly type: string; readonly fields: string }) =>
    by === "type" ? [values.type] : [values.type, values.fields];
  const name = <T extends NamesSum>({ fields, ...sum }: T) => (by === "type" ? sum : { ...sum, fields });
  const head = by === "type" ? ["Type"] : ["Type", "Fields"];
  const shown = sums
    .slice(0, MOST_NAMES)
    .map(({ app, count, ...names }) => [
      app,
      ...list(names).map((one) => one || UNNAMED),
      formatCount(count),
      share(count, total),
    ]);
  const more = sums.length - shown.length;
  const sections = [
    writeTotal(total, days, terminal),
    `${terminal.colors.bold("Costliest")}\n${terminal.table(["App", ...head, "Requests", "Share"], shown)}${more > 0 ? `\n${more} more: see --csv or --json` : ""}`,
    `${terminal.colors.bold("Day by day")}\n${drawChart(days, terminal.width)}`,
  ];
  return {
    report: { total, by, rows: found.map(name), sums: sums.map(name), days },
    text: total === 0 ? NOTHING : sections.join("\n\n"),
    table: writeCsv(
      ["app", "day", ...head.map((title) => title.toLowerCase()), "count"],
      found.map(({ app, day, count, ...names }) => [app, day, ...list(names), count]),
    ),
  };
}

function writeTotal(total: number, days: readonly DaySum[], { colors }: Terminal): string {
  return `${colors.bold(requests(total, "counted"))}, ${days[0]?.day} to ${days.at(-1)?.day} (UTC)`;
}

function requests(count: number, kind = ""): string {
  return formatCounted(count, kind === "" ? "request" : `${kind} request`);
}

function share(count: number, total: number): string {
  return `${((count / total) * 100).toFixed(1)} %`;
}

// Draws a bar chart in characters, with one line for each day.

const MIN_BAR = 10;
const GAP = "  ";

/** `width` is the width of the terminal in characters. A day with counts always has a bar, however short. */
function drawChart(days: readonly DaySum[], width: number): string {
  const counts = days.map(({ count }) => formatCount(count));
  const numbers = counts.reduce((longest, { length }) => Math.max(longest, length), 0);
  const most = days.reduce((max, { count }) => Math.max(max, count), 1);
  const room = Math.max(MIN_BAR, width - "2026-01-20".length - numbers - 2 * GAP.length);
  return days
    .map(({ day, count }, index) => {
      const length = count === 0 ? 0 : Math.max(1, Math.round((count / most) * room));
      return [day, (counts[index] ?? "").padStart(numbers), "█".repeat(length)].join(GAP).trimEnd();
    })
    .join("\n");
}

// Writes CSV as defined in RFC 4180: each record ends with CR LF, and values with special characters are quoted.

function writeCsv(head: readonly string[], records: readonly (readonly (string | number)[])[]): string {
  return [head, ...records].map((record) => `${record.map(quote).join(",")}\r\n`).join("");
}

function quote(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
