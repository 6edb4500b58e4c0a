/** What the studio's page on health shows: what `/readyz` says, and the findings of `precast doctor`. */
import { openReadiness, type Readiness } from "../../server/admin.ts";
import { findLedgerFolder } from "../../server/ledger/owner.ts";
import { type CheckFinding, runChecks } from "../doctor/checks.ts";
import type { StudioSite } from "./view.ts";

export type Health = Readiness;
export type Advice = readonly CheckFinding[];

export function readHealth({ database, settings: { out, dataDir } }: StudioSite): Promise<Health> {
  return openReadiness({ out, ledgerFolder: findLedgerFolder(dataDir), database, replicas: () => [] })(false);
}

/** Takes seconds where much is stored. */
export function readAdvice({ database, settings, now }: StudioSite): Promise<Advice> {
  return runChecks(database, settings, now());
}
