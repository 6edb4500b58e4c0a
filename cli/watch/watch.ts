/** Keeps the tree up to date and reports each build: the part that `precast watch` and `serve --watch` share. */
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { buildTree } from "../build/build.ts";
import type { Context } from "../command.ts";
import { describeFailure } from "../failure.ts";
import { summaryOf } from "../summary.ts";
import { rebuildOnChange } from "./rebuild.ts";

export type WatchOptions = {
  readonly settings: Settings<CommonName | "apps">;
  /** Whether each build is a result of the command, to be printed with --json. */
  readonly results: boolean;
};

/**
 * Resolves when stopped, after the build that is running. Throws when the database refuses LISTEN, as a standby does.
 */
export function watchTree(
  { terminal, now }: Context,
  database: Database,
  { settings, results }: WatchOptions,
  stop: AbortSignal,
): Promise<void> {
  let warning: string | null = null;

  async function build(): Promise<void> {
    const start = now();
    const reports = await buildTree(database, { ...settings, full: false, dryRun: false, now });
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    // Where the failure was reported: a server writes warnings to its log.
    if (warning !== null) terminal.warn("Building works again.");
    warning = null;
    for (const report of reports)
      if (report.written + report.deleted > 0) terminal.say(summaryOf(report, terminal, false));
    if (results) terminal.result("", { apps: reports, seconds });
  }

  /** Prints the same failure only once, however often the build is retried. */
  function onFailure(error: unknown): void {
    const text = describeFailure(error);
    if (text !== warning) terminal.warn(`A build failed and is retried until it succeeds. ${text}`);
    warning = text;
  }

  return rebuildOnChange({ listen: database.listen, build, onFailure, stop });
}
