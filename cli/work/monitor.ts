/** What operators see of a worker: health and metrics on a port of its own, with the state of the whole queue. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { json, openPages, page } from "../../server/admin.ts";
import { CONTENT_TYPE } from "../../server/metrics.ts";
import { shareRunning } from "../../shared/async.ts";
import type { Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { describeFailure } from "../errors.ts";
import { countQueue, type QueueCounts } from "./queue.ts";

export type Monitor = {
  /** Null without an admin port. */
  readonly url: string | null;
  readonly published: (result: "done" | "failed", seconds: number) => void;
  readonly close: () => Promise<void>;
};

const PREFIX = "precast_";
/** In seconds: from a small update to the first build of a large app. */
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

const QUEUE: readonly (readonly [keyof QueueCounts, name: string, help: string])[] = [
  ["waiting", "queue_waiting", "Apps that wait to be published, of all workers"],
  ["running", "queue_running", "Apps that are being published, by all workers"],
  ["failed", "queue_failed", "Apps whose publication has failed and is tried again, of all workers"],
  ["oldest", "queue_oldest_seconds", "Age of the oldest publication that is not visible yet, 0 when all are"],
];

export async function openMonitor(
  { adminPort: port, adminHost: host }: Settings<"adminPort" | "adminHost">,
  database: Database,
  warn: (sentence: string) => void,
): Promise<Monitor> {
  if (port === null) return { url: null, published: () => {}, close: async () => {} };
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: PREFIX });
  const read = shareRunning(() => countQueue(database));
  for (const [part, name, help] of QUEUE) {
    const collect = async function (this: Gauge) {
      // Without the database, its series end.
      const counts = await read().catch(() => null);
      if (counts === null) this.reset();
      else this.set(counts[part] ?? 0);
    };
    new Gauge({ name: PREFIX + name, help, registers: [registry], collect });
  }
  const common = { labelNames: ["result"], registers: [registry] };
  const published = new Counter({ name: `${PREFIX}publications_total`, help: "Publications by result", ...common });
  const durations = new Histogram({
    ...{ name: `${PREFIX}publication_seconds`, help: "Time from taking an app to its last file or purge", ...common },
    buckets: BUCKETS,
  });
  const { url, close } = await openPages({
    ...{ host, port, onError: (error: unknown) => warn(describeFailure(error)) },
    pages: {
      "/healthz": () => json(200, { status: "ok" }),
      "/readyz": async () => {
        const error = await database.query(sql("SELECT 1")).then(() => null, describeFailure);
        return json(error === null ? 200 : 503, { status: error === null ? "ok" : "unavailable", error });
      },
      "/metrics": async () => page(200, CONTENT_TYPE, await registry.metrics()),
    },
  });
  return {
    url,
    published: (result, seconds) => {
      published.inc({ result });
      durations.observe({ result }, seconds);
    },
    close,
  };
}
