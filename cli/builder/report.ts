/** Ends the build of an app once its files are on the stage: writes its state and reports what was done. */

import { join } from "node:path";
import PACKAGE from "../../package.json" with { type: "json" };
import { segment } from "../../shared/api/address.ts";
import { LOCAL_MEDIA } from "../../shared/api/catalog.ts";
import { filesIn, yieldToEventLoop } from "../../shared/files.ts";
import type { Row } from "../../shared/sql/query.ts";
import { formatBytes, formatCount, formatFiles, formatSeconds } from "../../shared/text.ts";
import { type FileSizes, writeState } from "../../shared/tree.ts";
import { addressIn } from "../../shared/tree-file.ts";
import { nameColumns, type Summary } from "../summary.ts";
import type { Terminal } from "../terminal.ts";
import type { AppPlan } from "./app.ts";
import type { BuildIds, Source } from "./delta.ts";
import type { StagedApp } from "./stage.ts";

export type AppReport = {
  readonly key: string;
  readonly mode: "full" | "incremental" | "removal";
  /** Why the app was built in full or removed. For an incremental build: `since` and the time of the last build. */
  readonly reason: string;
  readonly added: number;
  readonly changed: number;
  /** Number of files added or changed. */
  readonly written: number;
  readonly unchanged: number;
  readonly deleted: number;
  /** Size of all files of the app, in bytes; 0 for a removal. */
  readonly bytes: number;
  readonly seconds: number;
};

/** To be called once the stage is settled: stages the app's state and reports what was done. */
export function finishApp(
  { app, mode: choice, isOutdated, start, seconds }: AppPlan,
  { tally, stageState }: StagedApp,
  counts: ReadonlyMap<string, number>,
  { source, snapshot, tree, mark }: Source & BuildIds,
): AppReport {
  const before = choice.mode === "incremental" ? choice.state : null;
  const sizes = before === null ? tally.put.sizes : addSizes(new Map(Object.entries(before.sizes)), tally.growth.sizes);
  const { files, bytes } = sumSizes(sizes);
  const entries = [...counts.values()].reduce((sum, some) => sum + some, 0);
  if (isOutdated) {
    const origin = { version: PACKAGE.version, built_at: start.toISOString(), source, snapshot, tree, mark };
    const byType = { sizes: Object.fromEntries(sizes), counts: Object.fromEntries(counts) };
    stageState(writeState({ ...origin, files, entries, bytes, ...byType, app }));
  }
  const { added, changed, gone: deleted } = tally;
  const { mode, reason } = choice;
  const written = added + changed;
  return {
    ...{ key: app.key, mode, reason, added, changed, written },
    ...{ unchanged: files - written, deleted, bytes, seconds },
  };
}

type Sizes = ReadonlyMap<string, FileSizes>;

/** A type without files is left out: it is no longer published. */
function addSizes(before: Sizes, growth: Sizes): Sizes {
  const sums = new Map(before);
  for (const [type, { files, bytes }] of growth) {
    const size = before.get(type) ?? { files: 0, bytes: 0 };
    sums.set(type, { files: size.files + files, bytes: size.bytes + bytes });
  }
  return new Map([...sums].filter(([, { files }]) => files > 0));
}

function sumSizes(sizes: Sizes): FileSizes {
  const sum = { files: 0, bytes: 0 };
  for (const { files, bytes } of sizes.values()) {
    sum.files += files;
    sum.bytes += bytes;
  }
  return sum;
}

/** Adds the time that all apps spend together to their reports, in proportion to the files written and deleted. */
export function shareSeconds(reports: readonly AppReport[], seconds: number): AppReport[] {
  const countFiles = ({ written, deleted }: AppReport) => written + deleted;
  const all = Math.max(
    1,
    reports.reduce((sum, report) => sum + countFiles(report), 0),
  );
  return reports.map((report) => {
    const spent = report.seconds + (seconds * countFiles(report)) / all;
    // To milliseconds, which the clock has: a sum of fractions would end in noise.
    return { ...report, seconds: Math.round(spent * 1_000) / 1_000 };
  });
}

/** Removes an app that the tree has and the database no longer has. Its report is final once the stage is settled. */
export async function removeApp(
  { tally, stageState, remove }: StagedApp,
  out: string,
  key: string,
): Promise<() => AppReport> {
  const folder = segment(key);
  for await (const file of filesIn(join(out, folder))) {
    remove(`${folder}/${file}`, file.startsWith("v1/") ? addressIn(join(out, folder, "v1"), file.slice(3)) : null);
    await yieldToEventLoop();
  }
  stageState(null);
  const reason = "the app is no longer in the database";
  const nothing = { added: 0, changed: 0, written: 0, unchanged: 0, bytes: 0, seconds: 0 };
  return () => ({ key, mode: "removal", reason, ...nothing, deleted: tally.gone });
}

export const UNRECORDED_TEXT =
  "The role may read but not write, so the database has no record of this build, and the next build will be full. " +
  "To build only what has changed, a role must be able to run precast.keep_mark, which default_transaction_read_only forbids.";

export function describeUnaddressed([key, slug, field]: Row): string {
  return `${key}: ${slug}.${field} has values, but no address of media is set, so these answers lead to ${LOCAL_MEDIA}. Set media_base_url of the app, or --media-base-url (PRECAST_MEDIA_BASE_URL), and build again.`;
}

// Describes the build of an app: what it wrote, in which mode, and why in that mode.

export function summarizeApp(report: AppReport, { colors }: Terminal, dryRun: boolean): string {
  const { key, written, unchanged, deleted, bytes, seconds } = report;
  const done = `${dryRun ? "would write" : "wrote"} ${formatFiles(written)}, ${unchanged} unchanged, ${deleted} deleted`;
  return `${colors.bold(key)}: ${done}, ${formatBytes(bytes)} in ${formatSeconds(seconds)} (${describeMode(report)})`;
}

function describeMode({ mode, reason }: AppReport): string {
  return `${mode === "removal" ? "removed" : mode}: ${reason}`;
}

export function summarizeBuild(apps: readonly AppReport[], dryRun: boolean): Summary {
  const columns = nameColumns("App", "Written", "Deleted", "Files", "Size", "Why", "Time");
  const rows = apps.map((report) => {
    const { key, written, deleted, unchanged, bytes, seconds } = report;
    const counts = [written, deleted, written + unchanged].map(formatCount);
    return [key, ...counts, formatBytes(bytes), describeMode(report), formatSeconds(seconds)];
  });
  return { title: "Precast build", dryRun, columns, rows };
}
