/** What the studio's page on health shows: what `/readyz` says, the queue of workers, and the findings of `precast doctor`. */
import { openReadiness, type Readiness } from "../../server/admin.ts";
import { findLedgerFolder } from "../../server/ledger/owner.ts";
import { type CheckFinding, runChecks } from "../doctor/checks.ts";
import { countQueue, hasQueue, type QueueCounts, type QueuedApp, readQueue } from "../work/queue.ts";
import type { StudioSite } from "./view.ts";

export type Health = Readiness;
/** Null where no worker has ever been started. */
export type Queue = (QueueCounts & { readonly apps: readonly QueuedApp[] }) | null;
export type Advice = readonly CheckFinding[];

export function readHealth({ database, settings: { out, dataDir } }: StudioSite): Promise<Health> {
  return openReadiness({ out, ledgerFolder: findLedgerFolder(dataDir), database, replicas: () => [] })(false);
}

const MOST_APPS = 100;

export async function readQueueState({ database }: StudioSite): Promise<Queue> {
  if (!(await hasQueue(database))) return null;
  const [counts, apps] = await Promise.all([countQueue(database), readQueue(database, MOST_APPS)]);
  return { ...counts, apps };
}

/** Takes seconds where much is stored. */
export function readAdvice({ database, settings, now }: StudioSite): Promise<Advice> {
  return runChecks(database, settings, now());
}
