/** Collects a process's metrics for Prometheus: counters of requests, and gauges; and the sums of several processes. */
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Shape } from "../shared/api/pricing.ts";
import type { AnswerSource, Observe } from "./http/observe.ts";

export type Metrics = {
  readonly observe: Observe;
  /** Adds gauges, which are read at each scrape. */
  readonly addGauges: (gauges: Gauges) => void;
  /** Adds the metrics of the databases that answer live queries, which are read at each scrape. */
  readonly addReplicas: (read: () => DatabaseReadings) => void;
  /** Resolves to the metrics in the text format of Prometheus. */
  readonly text: () => Promise<string>;
  /** In the first of several processes: resolves to the sums of its workers' metrics, in the same format. */
  readonly sumOfWorkers: () => Promise<string>;
};

export const CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** In seconds, up to a little more than the limit of a live query (5 seconds). */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 7.5];
/** Gauges of the library with the suffix of counters. They are the sums of others, which stay. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];
/** Metrics of the library that are no amounts: of several processes, the library would add them up or leave them out. */
const LIMITS = { process_max_fds: "max", process_start_time_seconds: "min" };
/** Statuses whose durations say nothing about live answers: 499 (client gone) and 503 (refused). */
const NOT_LIVE = [499, 503];

/** No label is an app key or a path: Prometheus keeps a series for each value, and there would be no limit to them. */
export function openMetrics(droppedLines: () => number): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: PREFIX });
  for (const name of MISNAMED) registry.removeSingleMetric(PREFIX + name);
  for (const [name, aggregator] of Object.entries(LIMITS))
    Object.assign(registry.getSingleMetric(PREFIX + name) ?? {}, { aggregator });
  // In a worker, this registry is reported whenever the first process asks.
  AggregatorRegistry.setRegistries(registry);
  const workers = new AggregatorRegistry();
  const requests = countRequests(registry);
  const durations = new Histogram({
    name: `${PREFIX}live_duration_seconds`,
    help: "Time from a request's arrival to its answer, for answers from the database",
    labelNames: ["shape"],
    buckets: BUCKETS,
    registers: [registry],
  });

  addGauge(registry, "logDropped", droppedLines);

  return {
    observe: ({ shape, status, source, start }) => {
      requests(shape, status, source);
      if (source !== "live" || NOT_LIVE.includes(status)) return;
      durations.observe({ shape: shape ?? "none" }, (performance.now() - start) / 1_000);
    },
    addGauges: (gauges) => {
      for (const [name, read] of Object.entries(gauges)) addGauge(registry, name as keyof Gauges, read);
    },
    addReplicas: (read) => registerReplicas(registry, read),
    text: () => registry.metrics(),
    sumOfWorkers: () => workers.clusterMetrics(),
  };
}

type CountRequest = (shape: Shape | null, status: number, source: AnswerSource) => void;

/**
 * Counts in maps, which are copied into the library's counter at each scrape: that counter finds a series by a string
 * of all labels, which costs more than everything else about a small answer.
 */
function countRequests(registry: Registry): CountRequest {
  const counts = new Map<Shape | null, Record<AnswerSource, Map<number, number>>>();
  new Counter({
    name: `${PREFIX}requests_total`,
    help: "Requests by shape (none where the app is not known or the client did not wait), status and source of the answer",
    labelNames: ["shape", "status", "source"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [shape, sources] of counts)
        for (const [source, statuses] of Object.entries(sources))
          for (const [status, count] of statuses) this.inc({ shape: shape ?? "none", status, source }, count);
    },
  });
  return (shape, status, source) => {
    let sources = counts.get(shape);
    if (sources === undefined) {
      sources = { tree: new Map(), live: new Map(), none: new Map() };
      counts.set(shape, sources);
    }
    const statuses = sources[source];
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
}

// The metrics that are read at each scrape: the state of the process, and of the databases that answer live queries.

/** What the name of every metric begins with. */
const PREFIX = "precast_";

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
 * process finds unavailable is. Counters, which are summed, stand here where what they count is kept elsewhere.
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
  treeBehind: [
    "tree_behind_changes",
    "Changes of entries and types that are in the database and not in the tree, at most 10,000 of each type",
    "max",
  ],
  treeBehindTime: ["tree_behind_seconds", "Time since a scrape has first seen the oldest of these changes", "max"],
  treeStoreUp: [
    "tree_store_up",
    "Whether the store of --tree answers (1), or only what is kept of it on this machine can be read",
    "min",
  ],
  cacheBytes: ["cache_bytes", "Bytes of memory used by kept answers of the tree", "sum"],
  cacheEntries: ["cache_entries", "Answers of the tree that are kept in memory", "sum"],
  logDropped: [
    "log_dropped_lines_total",
    "Lines of the log that were dropped because they were not read in time or the disk was full",
    "counter",
  ],
  connectionsOpen: ["connections_open", "Open connections of clients", "sum"],
  connectionsRefused: [
    "connections_refused_total",
    "New connections of clients that were closed at --max-connections, because none was idle",
    "counter",
  ],
  connectionsEvicted: [
    "connections_evicted_total",
    "Idle connections of clients that were closed at --max-connections, in favour of new ones",
    "counter",
  ],
} as const;

/** When `read` returns null the gauge is not reported, which is not the same as 0. */
function addGauge(registry: Registry, name: keyof Gauges, read: () => number | null | Promise<number | null>): void {
  const [suffix, help, aggregator] = GAUGES[name];
  const named = { name: PREFIX + suffix, help, registers: [registry] };
  if (aggregator === "counter") {
    new Counter({
      ...named,
      async collect() {
        this.reset();
        this.inc((await read()) ?? 0);
      },
    });
    return;
  }
  new Gauge({
    ...named,
    aggregator,
    async collect() {
      const value = await read();
      if (value === null) this.remove();
      else this.set(value);
    },
  });
}

/** Labels replicas by their number in the configured order, so that the metrics do not reveal their addresses. */
function registerReplicas(registry: Registry, read: () => DatabaseReadings): void {
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
