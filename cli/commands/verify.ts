/** `precast verify`: compares the tree with live answers. */
import { readApps } from "../../shared/apps.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Session } from "../../shared/database/database.ts";
import { changedCollations } from "../../shared/schema/drift.ts";
import { appsOfTree, chooseApps, removedApps } from "../build/selection.ts";
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { noAppText, withDatabase } from "../database.ts";
import { formatFiles } from "../terminal/format.ts";
import { readTreeStatus } from "../verify/tree-status.ts";
import { type Verified, type VerifyOptions, verifyApp, verifyRemovedApp } from "../verify/verify.ts";

const MAX_LISTED = 100;

export const verifyCommand = defineCommand({
  name: "verify",
  describes: "compute the tree's answers live and compare them byte for byte; exit code 2 when something differs",
  argument: null,
  settings: ["apps", "sample"],
  examples: ["precast verify", "precast verify --app atlas --sample 500"],
  run: async ({ terminal }, settings) => {
    const progress = terminal.progress();
    const options = { ...settings, ...(progress === null ? {} : { onProgress: progress.update }) };
    const checked = await withDatabase(settings, (database) =>
      database.transaction("read", (session) => checkApps(session, options)),
    ).finally(() => progress?.stop());
    const text = checked.length === 0 ? noAppText(settings) : textOf(checked);
    terminal.result(text, { apps: checked.map(({ verified }) => verified) });
    return checked.some(isDifferent) ? DIFFERENT : DONE;
  },
});

/**
 * What explains differences: no tree is built, indexes are in an outdated text order, or content has changed since the
 * build. `unexplained` means that none of these does.
 */
type DifferenceCause = "not built" | "outdated order" | "content changed" | "unexplained";
/** `cause` is null when there are no differences. */
type Checked = { readonly verified: Verified; readonly cause: DifferenceCause | null };
type Options = VerifyOptions & Settings<"apps" | CommonName>;

function isDifferent({ verified }: Checked): boolean {
  return verified.differences.length > 0;
}

async function checkApps(session: Session, options: Options): Promise<Checked[]> {
  const all = await readApps(session, options);
  const checked: Checked[] = [];
  for (const app of chooseApps(all, options.apps)) {
    const verified = await verifyApp(session, app, options);
    const isClean = verified.differences.length === 0;
    checked.push({ verified, cause: isClean ? null : await causeOf(session, app.key, options) });
  }
  if (options.apps !== null) return checked;
  const gone = removedApps(appsOfTree(options.out), all);
  return [
    ...checked,
    ...gone.map(({ key }) => ({ verified: verifyRemovedApp(options.out, key), cause: "content changed" as const })),
  ];
}

async function causeOf(session: Session, key: string, options: Options): Promise<DifferenceCause> {
  const status = await readTreeStatus(session, key, options);
  if (status === null) return "not built";
  if ((await changedCollations(session)).length > 0) return "outdated order";
  return status.current ? "unexplained" : "content changed";
}

function textOf(checked: readonly Checked[]): string {
  const built = checked.filter(({ cause }) => cause !== "not built");
  const differences = built.flatMap(({ verified }) => verified.differences);
  const listed = differences.slice(0, MAX_LISTED).map(({ app, problem, file }) => `${app} ${file}: ${problem}`);
  const rest = differences.length > MAX_LISTED ? [`… and ${differences.length - MAX_LISTED} more`] : [];
  return [...listed, ...rest, ...checked.map(summaryOf), ...adviceOf(checked.filter(isDifferent))].join("\n");
}

function summaryOf({ verified, cause }: Checked): string {
  const { key, files, computed, differences } = verified;
  const count = `${differences.length} ${differences.length === 1 ? "difference" : "differences"}`;
  const what = `${key}: ${formatFiles(files)}, ${computed} computed live, ${count}`;
  return cause === "not built" ? `${what}: its tree is not built` : what;
}

function adviceOf(different: readonly Checked[]): string[] {
  const causes = different.map(({ cause }) => cause);
  if (causes.includes("outdated order"))
    return [
      "A collation version has changed since the indexes of the database were built, so live answers may be wrong. Run `precast doctor` first: it says what to do.",
    ];
  if (causes.includes("unexplained"))
    return [
      "Run `precast build --full` to repair the tree. If files still differ then, content was written while triggers were off: run `SELECT precast.keep_anew()` as the owner of the tables, and build again.",
    ];
  if (causes.includes("content changed"))
    return ["Content has changed since the tree was built: run `precast build`, and verify again."];
  return causes.length > 0 ? ["Run `precast build`."] : [];
}
