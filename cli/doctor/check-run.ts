/** Runs every check on a database. A new check needs a file in checks/ and a line in CHECKS. */
import { readApps } from "../../shared/apps.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { appCountsQuery } from "../../shared/sql/tree-query.ts";
import type { Check, CheckContext, TypeSize } from "./check.ts";
import { batchesCheck } from "./checks/batches.ts";
import { bloatCheck } from "./checks/bloat.ts";
import { collationsCheck } from "./checks/collations.ts";
import { countsCheck } from "./checks/counts.ts";
import { deadRowsCheck } from "./checks/dead-rows.ts";
import { filtersCheck } from "./checks/filters.ts";
import { indexesCheck } from "./checks/indexes.ts";
import { journalsCheck } from "./checks/journals.ts";
import { missingIndexesCheck } from "./checks/missing-indexes.ts";
import { rangesCheck } from "./checks/ranges.ts";
import { removalsCheck } from "./checks/removals.ts";
import { replicationCheck } from "./checks/replication.ts";
import { savingsCheck } from "./checks/savings.ts";
import { serverCheck } from "./checks/server.ts";
import { slotsCheck } from "./checks/slots.ts";
import { snapshotsCheck } from "./checks/snapshots.ts";
import { statisticsCheck } from "./checks/statistics.ts";
import { timeoutsCheck } from "./checks/timeouts.ts";
import { totalsCheck } from "./checks/totals.ts";
import { triggersCheck } from "./checks/triggers.ts";
import { trigramsCheck } from "./checks/trigrams.ts";
import type { Finding } from "./finding.ts";

/** In the order of the report: causes of wrong answers come first, then what slows down every live query. */
const CHECKS: readonly Check[] = [
  collationsCheck,
  triggersCheck,
  totalsCheck,
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
  slotsCheck,
  rangesCheck,
  filtersCheck,
  savingsCheck,
  journalsCheck,
  batchesCheck,
  removalsCheck,
];

export type CheckFinding = Finding & { readonly check: string };

type DoctorSettings = Settings<CommonName | "connections" | "workers">;

/** Runs all checks, or those that `names` names. */
export async function runChecks(
  database: Database,
  settings: DoctorSettings,
  now: Date,
  names: readonly string[] = CHECKS.map(({ name }) => name),
): Promise<CheckFinding[]> {
  const { dataDir, connections, workers } = settings;
  const types = await readTypes(database, settings);
  const context: CheckContext = { database, types, dataDir, connections, workers, now };
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
