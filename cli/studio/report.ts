/** Writes usage and trees of apps as one HTML file that needs nothing else: for mail, and for artefacts of CI. */
import { hash } from "node:crypto";
import PACKAGE from "../../package.json" with { type: "json" };
import type { App } from "../../shared/api/catalog.ts";
import { formatBytes, formatCount } from "../../shared/text.ts";
import { sumCounts } from "../usage.ts";
import { measureParts, readTreeView, type Tree, type TreePart } from "./tree.ts";
import { readUsageView, type Usage } from "./usage.ts";
import { readPageFile, type Site } from "./view.ts";

/** What a view of the page asks for by name and parameters. */
export type ReportData = {
  readonly name: string;
  readonly params: Readonly<Record<string, string>>;
  readonly value: unknown;
};

export type ReportHead = { readonly apps: readonly App[]; readonly made_at: string; readonly version: string };

export type ReportRange = { readonly since: string | null; readonly until: string | null };

/** What mail and CI show without complaint. */
const MAX_BYTES = 600_000;

/** Throws ConfigError for days that are no range, and an Error when there is too much to show. */
export async function writeReport(site: Site, apps: readonly App[], range: ReportRange): Promise<string> {
  const head = { apps: apps.map((app) => ({ ...app, types: [] })), made_at: site.now().toISOString() };
  const data: ReportData[] = [{ name: "head", params: {}, value: { ...head, version: PACKAGE.version } }];
  const tables: string[] = [];
  for (const app of apps) {
    const params = { app: app.key };
    const query = new URLSearchParams({ ...params, since: range.since ?? "", until: range.until ?? "" });
    const usage = await readUsageView(site, query);
    const tree = await readTreeView(site, query);
    const parts = await measureParts(site.settings.out, app.key);
    data.push({ name: "usage", params, value: usage }, { name: "tree", params, value: tree });
    data.push({ name: "parts", params, value: parts });
    tables.push(`<h1>${escapeHtml(`${app.name} (${app.key})`)}</h1>`, tableUsage(usage), tableTree(tree, parts));
  }
  const html = writeDocument(`Precast report: ${apps.map(({ key }) => key).join(", ")}`, data, tables.join("\n"));
  const bytes = Buffer.byteLength(html);
  if (bytes > MAX_BYTES)
    throw new Error(
      `The report would have ${formatBytes(bytes)}, more than the ${formatBytes(MAX_BYTES)} that it may have: choose one app with --app, or fewer days with --since.`,
    );
  return html;
}

/** Scripts and styles are those with these digests alone, and nothing is loaded. */
function writeDocument(title: string, data: readonly ReportData[], tables: string): string {
  const style = readPageFile("page.css");
  // Behind `<!--` and `</script`, a browser would read the rest of a script as HTML.
  const script = readPageFile("report.js").replace(/<(?=!--|\/?script)/gi, "\\x3c");
  const policy = `default-src 'none'; script-src ${digest(script)}; style-src ${digest(style)}; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
<script type="application/json" id="data">${escapeJson(JSON.stringify(data))}</script>
<script type="module">${script}</script>
</head>
<body>
<noscript><main>
${tables}
</main></noscript>
</body>
</html>
`;
}

function digest(text: string): string {
  return `'sha256-${hash("sha256", text, "base64")}'`;
}

function escapeJson(json: string): string {
  return json.replace(/[<\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
}

// The same numbers as plain tables, for whoever runs no script, as most mail does.

function tableUsage({ since, until, total, days, savings, month, plan }: Usage): string {
  const { name, forecast } = month;
  const ofPlan = plan === null ? "" : ` of the ${formatCount(plan)} of the plan`;
  const rows = days.filter(({ count }) => count > 0).map(({ day, count }) => [day, formatCount(count)]);
  return [
    `<h2>Usage</h2><p>${formatCount(total)} counted requests, ${since} to ${until} (UTC)</p>`,
    `<p>${formatCount(forecast)}${ofPlan} are expected in ${name}</p>`,
    writeTable(["Day", "Requests"], rows),
    `<p>${formatCount(sumCounts(savings))} could have been free</p>`,
    writeTable(
      ["The same answer, free", "Requests"],
      savings.map(({ advice, count }) => [advice, formatCount(count)]),
    ),
  ].join("\n");
}

function tableTree({ status, behind, history }: Tree, parts: readonly TreePart[]): string {
  if (status === null) return "<h2>Tree</h2><p>It is not built.</p>";
  const { files, bytes, built_at } = status;
  return [
    `<h2>Tree</h2><p>${formatCount(files)} files, ${formatBytes(bytes)}, built ${built_at}, ${escapeHtml(behind)}</p>`,
    writeTable(
      ["Type", "Kind", "Field", "Files", "Size"],
      parts.map((part) => [
        ...[part.type ?? "", part.kind, part.field ?? ""],
        ...[formatCount(part.files), formatBytes(part.bytes)],
      ]),
    ),
    writeTable(
      ["Built", "Why", "Written", "Deleted", "Unchanged", "Seconds"],
      history.map(({ built_at: at, mode, reason, written, deleted, unchanged, seconds }) => [
        ...[at, `${mode}: ${reason}`],
        ...[written, deleted, unchanged].map(formatCount),
        String(seconds),
      ]),
    ),
  ].join("\n");
}

function writeTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const line = (cells: readonly string[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  return `<table>${line(head, "th")}${rows.map((cells) => line(cells, "td")).join("")}</table>`;
}
