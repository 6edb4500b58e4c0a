/** Collects a process's metrics for Prometheus: counters of requests, and gauges (gauges.ts). */
import {
  Counter,
  collectDefaultMetrics,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";
import type { Shape } from "../../shared/metering.ts";
import type { AnswerSource, Observe } from "../http/observation.ts";
import { addGauge, type DatabaseReadings, type Gauges, PREFIX, registerReplicas } from "./gauges.ts";

export type Metrics = {
  readonly observe: Observe;
  /** Adds gauges, which are read at each scrape. */
  readonly addGauges: (gauges: Gauges) => void;
  /** Adds the metrics of the databases that answer live queries, which are read at each scrape. */
  readonly addReplicas: (read: () => DatabaseReadings) => void;
  /** Resolves to the metrics in the text format of Prometheus. */
  readonly text: () => Promise<string>;
  /** Resolves to the metrics as data, for the process that adds up those of several. */
  readonly snapshot: () => Promise<Snapshot>;
};

export type Snapshot = readonly MetricObjectWithValues<MetricValue<string>>[];
export const CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** In seconds, up to a little more than the limit of a live query (5 seconds). */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 7.5];
/** Statuses whose durations say nothing about live answers: 499 (client gone) and 503 (refused). */
const NOT_LIVE = [499, 503];

/** No label is an app key or a path: Prometheus keeps a series for each value, and there would be no limit to them. */
export function openMetrics(droppedLines: () => number): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: PREFIX });
  const requests = countRequests(registry);
  const durations = new Histogram({
    name: `${PREFIX}live_duration_seconds`,
    help: "Time from a request's arrival to its answer, for answers from the database",
    labelNames: ["shape"],
    buckets: BUCKETS,
    registers: [registry],
  });

  new Counter({
    name: `${PREFIX}log_dropped_lines_total`,
    help: "Lines of the log that were dropped because they were not read in time or the disk was full",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(droppedLines());
    },
  });

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
    snapshot: () => registry.getMetricsAsJSON(),
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
