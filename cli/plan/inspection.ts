/**
 * What a build would make of the content that a transaction sees: runs it as a dry run within that transaction, and gathers
 * what the change costs.
 */
import type { App } from "../../shared/api/catalog.ts";
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { readTreeState } from "../../shared/tree.ts";
import { buildTree } from "../builder/build.ts";
import type { AppReport } from "../builder/report.ts";
import { readUsed } from "../usage.ts";
import { findPriceChanges, type PriceChange } from "./requests.ts";
import { type ChangedKind, openTally, type Purges } from "./tally.ts";
import { findWidest, type Publication } from "./widest.ts";

type InspectionOptions = AppDefaults & {
  readonly out: string;
  readonly maxSize: number;
  readonly now: () => Date;
  /** Keys of the apps that are planned; null for all. */
  readonly apps: readonly string[] | null;
  /** All apps before the change. */
  readonly before: readonly App[];
  readonly changeApp?: (app: App) => App;
};

export type Inspection = {
  /** Whether there is a tree to compare with: without one, all of the app is new. */
  readonly apps: readonly (AppReport & { readonly has_tree: boolean })[];
  readonly kinds: readonly ChangedKind[];
  readonly purges: Purges;
  readonly widest: Publication | null;
  readonly prices: readonly PriceChange[];
  /** The days of the ledger that `prices` counts, both included. */
  readonly since: string;
  readonly until: string;
};

export async function inspectBuild(
  database: Database,
  session: Session,
  { before, apps: keys, changeApp = (app) => app, ...options }: InspectionOptions,
): Promise<Inspection> {
  const tally = openTally();
  const reports = await buildTree(withinTransaction(database, session), {
    ...{ ...options, apps: keys, changeApp, full: false, dryRun: true },
    ...{ onChange: tally.add, onRestart: tally.reset },
  });
  const after = (await readApps(session, options)).map(changeApp).filter(({ key }) => keys?.includes(key) ?? true);
  const days = lastMonth(options.now());
  const ledger = await readUsed(session, { app: null, ...days });
  return {
    apps: reports.map((report) => ({ ...report, has_tree: readTreeState(options.out, report.key) !== null })),
    kinds: tally.list(),
    purges: tally.purges(),
    widest: await findWidest(session, after),
    prices: findPriceChanges(before, after, ledger),
    ...days,
  };
}

/** The database as this transaction sees it: what would be a transaction of its own is a part of this one. */
function withinTransaction(database: Database, session: Session): Database {
  return { ...database, transaction: (_, run) => run(session) };
}

const DAY = 86_400_000;

/** Thirty days, of which today is the last. */
function lastMonth(now: Date): { readonly since: string; readonly until: string } {
  const dayBefore = (days: number) => new Date(now.getTime() - days * DAY).toISOString().slice(0, 10);
  return { since: dayBefore(29), until: dayBefore(0) };
}
