/** Opens the admin port of a server and connects it with what it reports: tree, database, ledger, replicas and metrics. */
import type { Database } from "../../shared/database/database.ts";
import { openAdmin } from "./admin.ts";
import { readLedgerHealth } from "./ledger-health.ts";
import type { Metrics } from "./metrics.ts";
import { openProbe } from "./probe.ts";
import { type Health, readinessOf } from "./readiness.ts";
import { readTreeHealth } from "./tree-health.ts";

export type ControlOptions = {
  readonly host: string;
  readonly port: number;
  /** The folder of the tree. */
  readonly out: string;
  /** The folder of journals. */
  readonly ledgerFolder: string;
  readonly database: Pick<Database, "query">;
  /** State of each read replica, in the order in which they were configured. */
  readonly replicas: () => readonly Health[];
  readonly now: () => Date;
  /** Metrics of this process. */
  readonly metrics: Pick<Metrics, "addGauges">;
  /** The metrics of all processes, in the text format of Prometheus. */
  readonly exposition: () => Promise<string>;
  readonly onError: (error: unknown) => void;
};

export type Control = {
  readonly url: string;
  /** From now on `/readyz` reports the server as unavailable. */
  readonly drain: () => void;
  readonly close: () => Promise<void>;
};

export async function openControl(options: ControlOptions): Promise<Control> {
  const { host, port, out, ledgerFolder, database, replicas, now, metrics, exposition, onError } = options;
  const probe = openProbe(database);
  let draining = false;

  async function treeAge(): Promise<number | null> {
    const { built_at } = await readTreeHealth(out);
    return built_at === null ? null : (now().getTime() - Date.parse(built_at)) / 1_000;
  }

  async function readiness() {
    const [tree, databaseHealth, ledger] = await Promise.all([
      readTreeHealth(out),
      probe(),
      readLedgerHealth(ledgerFolder),
    ]);
    return readinessOf(tree, databaseHealth, ledger, replicas(), draining);
  }

  metrics.addGauges({ treeAge });
  const admin = await openAdmin({ readiness, metrics: exposition, onError }, host, port);
  return {
    url: admin.url,
    drain: () => {
      draining = true;
    },
    close: admin.close,
  };
}
