/** The metrics that are read at each scrape: the state of the process, and of the databases that answer live queries. */
import { Counter, Gauge, type Registry } from "prom-client";

/** What the name of every metric begins with. */
export const PREFIX = "precast_";

/** `answered` is a number of queries; `lag_seconds` is null when it is not known. */
export type DatabaseReadings = {
  readonly primary: { readonly answered: number };
  readonly replicas: readonly {
    readonly answered: number;
    readonly ready: boolean;
    readonly lag_seconds: number | null;
  }[];
};

/** Functions that read the gauges. A gauge without one is not reported. */
export type Gauges = { readonly [name in keyof typeof GAUGES]?: () => number | null | Promise<number | null> };

/**
 * Name, help text, and aggregation over several processes: amounts are summed, of ages the largest counts, and what one
 * process finds unavailable is.
 */
const GAUGES = {
  liveWaiting: ["live_waiting", "Live requests that are waiting for the database", "sum"],
  liveRunning: ["live_running", "Live requests that the database is processing", "sum"],
  databaseUp: [
    "database_up",
    "Whether the database answers live queries (1) or they are refused at once (0); replicas do not count",
    "min",
  ],
  databaseConnections: ["database_connections", "Open connections to the database", "sum"],
  databaseConnectionsIdle: ["database_connections_idle", "Open connections to the database that are idle", "sum"],
  ledgerPending: ["ledger_pending_requests", "Counted requests that are not in the database yet", "sum"],
  ledgerLag: ["ledger_lag_seconds", "Age of the oldest count that is not in the database yet", "max"],
  treeAge: ["tree_age_seconds", "Time since the last build of the tree", "max"],
  cacheBytes: ["cache_bytes", "Bytes of memory used by kept answers of the tree", "sum"],
  cacheEntries: ["cache_entries", "Answers of the tree that are kept in memory", "sum"],
} as const;

/** When `read` returns null the gauge is not reported, which is not the same as 0. */
export function addGauge(
  registry: Registry,
  name: keyof Gauges,
  read: () => number | null | Promise<number | null>,
): void {
  const [suffix, help, aggregator] = GAUGES[name];
  new Gauge({
    name: PREFIX + suffix,
    help,
    aggregator,
    registers: [registry],
    async collect() {
      const value = await read();
      if (value === null) this.remove();
      else this.set(value);
    },
  });
}

/** Labels replicas by their number in the configured order, so that the metrics do not reveal their addresses. */
export function registerReplicas(registry: Registry, read: () => DatabaseReadings): void {
  const registers = [registry];
  new Counter({
    name: `${PREFIX}live_queries_total`,
    help: "Live queries by the database that answered them",
    labelNames: ["database"],
    registers,
    collect() {
      const { primary, replicas } = read();
      this.reset();
      this.inc({ database: "primary" }, primary.answered);
      for (const [index, { answered }] of replicas.entries()) this.inc({ database: `replica-${index + 1}` }, answered);
    },
  });
  new Gauge({
    name: `${PREFIX}replica_ready`,
    help: "Whether the read replica answers live queries (1) or is not used (0)",
    labelNames: ["replica"],
    aggregator: "min",
    registers,
    collect() {
      for (const [index, { ready }] of read().replicas.entries()) this.set({ replica: index + 1 }, ready ? 1 : 0);
    },
  });
  new Gauge({
    name: `${PREFIX}replica_lag_seconds`,
    help: "Maximum lag of the read replica; absent while it is not known",
    labelNames: ["replica"],
    aggregator: "max",
    registers,
    collect() {
      this.reset();
      for (const [index, { lag_seconds }] of read().replicas.entries())
        if (lag_seconds !== null) this.set({ replica: index + 1 }, lag_seconds);
    },
  });
}
