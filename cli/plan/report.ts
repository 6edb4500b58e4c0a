/** Reports a plan: what changes, what that costs, and which limits it exceeds, as data, as text and for a pull request. */
import type { StoreName } from "../../shared/settings/planning.ts";
import { formatBytes, formatCount, formatCounted } from "../../shared/text.ts";
import type { Summary } from "../summary.ts";
import type { Terminal } from "../terminal.ts";
import type { Inspection } from "./inspection.ts";
import { countRequests, type Price, priceDeploy, type Requests } from "./prices.ts";
import { type ChangedFiles, sumFiles } from "./tally.ts";

type Limit = { readonly name: string; readonly limit: number; readonly value: number; readonly over: number };

export type PlanReport = {
  readonly apps: Inspection["apps"];
  readonly files: Inspection["kinds"];
  readonly total: ChangedFiles;
  /** What a deploy of these changes sends to the store. */
  readonly requests: Requests;
  readonly price: Price | null;
  readonly widest_publication: Inspection["widest"];
  readonly purge: Inspection["purges"];
  readonly usage: Pick<Inspection, "since" | "until"> & { readonly changes: Inspection["prices"] };
  readonly budget: readonly Limit[];
};

export function reportPlan(
  { apps, kinds, purges, widest, prices, since, until }: Inspection,
  store: StoreName | null,
  limits: ReadonlyMap<string, number>,
): PlanReport {
  const total = sumFiles(kinds);
  const written = total.added + total.changed;
  const deployed = new Set(kinds.map(({ app }) => app)).size;
  const requests = countRequests(deployed, written, total.gone);
  const bytes = apps.reduce((sum, app) => sum + app.bytes, 0);
  const price = store === null ? null : priceDeploy(store, requests, bytes, total.growth);
  const values: Readonly<Record<string, number>> = {
    files: written + total.gone,
    bytes: total.written,
    requests: requests.put + requests.get + requests.delete,
    usd: price === null ? 0 : price.requests + Math.max(0, price.storage_growth),
  };
  const budget = [...limits].map(([name, limit]) => {
    const value = values[name] ?? 0;
    return { name, limit, value, over: Math.max(0, value - limit) };
  });
  return {
    ...{ apps, files: kinds, total, requests, price },
    ...{ widest_publication: widest, purge: purges, usage: { since, until, changes: prices }, budget },
  };
}

// As text: a table of what changes, then a line for each thing that it costs.

const HEAD = ["App", "Type", "Kind", "Added", "Changed", "Gone", "Uploaded", "Stored"] as const;

export function writePlan(report: PlanReport, { colors, table }: Terminal): string {
  const apps = report.apps.map(({ key, has_tree, mode, reason }) => {
    const compared =
      has_tree || mode === "removal" ? `${mode}: ${reason}` : "no tree to compare with: everything is new";
    return `${colors.bold(key)}: ${compared}`;
  });
  const costs = describeCosts(report).map(([name, text]) => `${colors.bold(name)}: ${text}`);
  const files = report.files.length === 0 ? "No file changes." : table(HEAD, listRows(report));
  return [...apps, files, ...costs].join("\n");
}

/** Two tables for a pull request. */
export function summarizePlan(report: PlanReport): Summary[] {
  return [
    {
      ...{ title: "Precast plan", dryRun: false },
      columns: HEAD.map((name, index) => ({ name, align: index < 3 ? ("left" as const) : ("right" as const) })),
      rows: listRows(report),
    },
    {
      ...{ title: "Precast plan: what it costs", dryRun: false },
      columns: ["", "Cost"].map((name) => ({ name, align: "left" as const })),
      rows: describeCosts(report),
    },
  ];
}

function listRows({ files, total }: PlanReport): string[][] {
  const row = (names: readonly string[], { added, changed, gone, written, growth }: ChangedFiles) => [
    ...[...names, ...[added, changed, gone].map(formatCount)],
    ...[formatBytes(written), formatGrowth(growth)],
  ];
  return [...files.map((kind) => row([kind.app, kind.type ?? "", kind.kind], kind)), row(["", "", "total"], total)];
}

/** Names and what there is to say of them. */
function describeCosts({ requests, price, widest_publication: widest, purge, usage, budget }: PlanReport): string[][] {
  const { put, get, delete: remove } = requests;
  return [
    ["Requests to the store", `${formatCount(put)} PUT, ${formatCount(remove)} DELETE, ${formatCount(get)} GET`],
    ...(price === null ? [] : [["Price", describePrice(price)]]),
    ...(widest === null
      ? []
      : [
          [
            "Widest publication",
            `an entry of ${widest.type} in ${widest.app}: ${formatCounted(widest.files, "file")} (${widest.pages} pages, ${widest.filters} filters, ${widest.sorts} sorts, the entry, the catalog)`,
          ],
        ]),
    [
      "Purge",
      `${formatCounted(purge.tags, "tag")} (Cloudflare, Fastly), ${formatCounted(purge.paths, "path")} (CloudFront) or ${formatCounted(purge.addresses, "address", "addresses")}`,
    ],
    ...usage.changes.map((change) => ["Requests of clients", describeChange(change, usage)]),
    ...budget.map((limit) => ["Budget", describeLimit(limit)]),
  ];
}

function describePrice({ name, as_of, requests, storage, storage_growth }: Price): string {
  const growth = `storage ${storage_growth < 0 ? "falls" : "grows"} by ${formatDollars(Math.abs(storage_growth))} a month`;
  return `${formatDollars(requests)} for requests; ${growth}, to ${formatDollars(storage)} (${name}, prices of ${as_of})`;
}

function describeChange(
  { app, request, becomes, requests }: PlanReport["usage"]["changes"][number],
  { since, until }: PlanReport["usage"],
): string {
  const days = `from ${since} to ${until}`;
  const counted = formatCounted(requests, "request");
  const what =
    becomes === "free"
      ? `up to ${counted} that were refused and counted ${days}`
      : `and is refused, as are ${counted} that were counted ${days}; free ones are not in the ledger`;
  return `${app}: ${request} becomes ${becomes}${becomes === "free" ? ":" : ","} ${what}`;
}

function formatGrowth(bytes: number): string {
  return `${bytes < 0 ? "-" : "+"}${formatBytes(Math.abs(bytes))}`;
}

function formatDollars(dollars: number): string {
  if (dollars > 0 && dollars < 0.0001) return "less than $0.0001";
  return `$${dollars.toFixed(dollars > 0 && dollars < 0.01 ? 4 : 2)}`;
}

function describeLimit({ name, limit, value, over }: Limit): string {
  const [is, most, excess] = [value, limit, over].map(formatExact);
  return over > 0 ? `${name} is ${is}, ${excess} above the limit of ${most}` : `${name} is ${is} of ${most}`;
}

/** Without the noise in which differences of fractions end. */
function formatExact(number: number): string {
  return number.toLocaleString("en-US", { maximumFractionDigits: 9, useGrouping: false });
}
