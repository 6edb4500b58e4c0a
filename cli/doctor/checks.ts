/** All checks of `precast doctor`: a new one is defined in the file of its subject, and has a line in CHECKS. */
import { readApps } from "../../shared/apps.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { appCountsQuery } from "../../shared/sql/tree.ts";
import type { Check, CheckContext, Finding, TypeSize } from "./check.ts";
import { filtersCheck, savingsCheck, slotsCheck, timeoutsCheck } from "./content.ts";
import { indexesCheck, missingIndexesCheck, trigramsCheck } from "./indexes.ts";
import {
  collationsCheck,
  mediaCheck,
  numbersCheck,
  rowSecurityCheck,
  totalsCheck,
  triggersCheck,
} from "./integrity.ts";
import { batchesCheck, countsCheck, journalsCheck } from "./ledger.ts";
import { replicationCheck, serverCheck, snapshotsCheck } from "./server.ts";
import { bloatCheck, deadRowsCheck, statisticsCheck } from "./tables.ts";

/** In the order of the report: causes of wrong answers come first, then what slows down every live query. */
const CHECKS: readonly Check[] = [
  rowSecurityCheck,
  collationsCheck,
  triggersCheck,
  totalsCheck,
  mediaCheck,
  statisticsCheck,
  indexesCheck,
  missingIndexesCheck,
  trigramsCheck,
  snapshotsCheck,
  replicationCheck,
  deadRowsCheck,
  bloatCheck,
  countsCheck,
  serverCheck,
  timeoutsCheck,
  numbersCheck,
  slotsCheck,
  filtersCheck,
  savingsCheck,
  journalsCheck,
  batchesCheck,
];

export type CheckFinding = Finding & { readonly check: string };

export type DoctorSettings = Settings<CommonName | "connections" | "workers">;

/** Runs all checks, or those that `names` names. */
export async function runChecks(
  database: Database,
  settings: DoctorSettings,
  now: Date,
  names: readonly string[] = CHECKS.map(({ name }) => name),
): Promise<CheckFinding[]> {
  const { dataDir, mediaBaseUrl, connections, workers } = settings;
  const types = await readTypes(database, settings);
  const context: CheckContext = { database, types, dataDir, mediaBaseUrl, connections, workers, now };
  const found: CheckFinding[] = [];
  for (const { name, findings } of CHECKS.filter((check) => names.includes(check.name))) {
    found.push(...(await findings(context)).map((finding) => ({ check: name, ...finding })));
  }
  return found;
}

async function readTypes(database: Database, settings: DoctorSettings): Promise<TypeSize[]> {
  const apps = await readApps(database, settings);
  const rows = await database.query(appCountsQuery(apps.map(({ key }) => key)));
  const counts = new Map(rows.map(([key, slug, count]) => [`${key}/${slug}`, Number(count)]));
  return apps.flatMap((app) =>
    app.types.map((type) => ({ app, type, entries: counts.get(`${app.key}/${type.slug}`) ?? 0 })),
  );
}
