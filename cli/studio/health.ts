/** What the studio's page on health shows: what `/readyz` says, and the findings of `precast doctor`. */
import { openReadiness, type Readiness } from "../../server/admin.ts";
import { findLedgerFolder } from "../../server/ledger/owner.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { type CheckFinding, runChecks } from "../doctor/checks.ts";
import type { StudioSite } from "./view.ts";

/** `findings` is null while the database is away. */
export type Health = { readonly readiness: Readiness; readonly findings: readonly CheckFinding[] | null };

export async function readHealth({ database, settings, now }: StudioSite): Promise<Health> {
  const ledgerFolder = findLedgerFolder(settings.dataDir);
  const readReadiness = openReadiness({ out: settings.out, ledgerFolder, database, replicas: () => [] });
  const readiness = await readReadiness(false);
  return { readiness, findings: await findFaults() };

  async function findFaults() {
    try {
      return await runChecks(database, settings, now());
    } catch (error) {
      if (error instanceof DatabaseFault) return null;
      throw error;
    }
  }
}
