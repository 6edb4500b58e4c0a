/** Combines the metrics of several processes into those of one server: workers send theirs to the primary. */
import cluster, { type Worker } from "node:cluster";
import { AggregatorRegistry } from "prom-client";
import type { Metrics, Snapshot } from "./metrics.ts";

const SNAPSHOT_REQUEST = "precast:metrics?";
const SNAPSHOT = "precast:metrics";
/** `turn` is that of the question; undefined when the snapshot is sent unasked. */
type MetricsMessage = {
  readonly type: typeof SNAPSHOT;
  readonly turn: number | undefined;
  readonly snapshot: Snapshot;
};

/** In milliseconds. For a worker that does not answer in time, its last snapshot is used. */
const ANSWER_TIMEOUT = 1_000;
/** Milliseconds between two unasked snapshots. A worker that is killed loses what it has counted since the last. */
const SEND_INTERVAL = 1_000;

/**
 * In a worker: sends the primary a snapshot whenever it asks, and unasked as well, because a worker that is killed can
 * send nothing more. Returns a function that sends the last snapshot, and resolves when it has been sent.
 */
export function sendMetrics({ snapshot }: Pick<Metrics, "snapshot">): () => Promise<void> {
  async function sendSnapshot(turn?: number): Promise<void> {
    const message: MetricsMessage = { type: SNAPSHOT, turn, snapshot: await snapshot() };
    await new Promise<void>((resolve) => {
      if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
      else resolve();
    });
  }

  process.on("message", (message: { type?: unknown; turn?: number } | null) => {
    if (message?.type === SNAPSHOT_REQUEST) void sendSnapshot(message.turn);
  });
  const timer = setInterval(() => void sendSnapshot(), SEND_INTERVAL).unref();
  return () => {
    clearInterval(timer);
    return sendSnapshot();
  };
}

/**
 * In the primary: returns a function that asks all workers and resolves to the sums as Prometheus text. `own` are the
 * primary's metrics. The counts of ended workers are kept: Prometheus takes a sum that falls for a counter reset.
 */
export function gatherMetrics(own: Pick<Metrics, "snapshot">): () => Promise<string> {
  const last = new Map<number, Snapshot>();
  const waiting = new Map<number, { readonly turn: number; readonly done: () => void }>();
  let ended: Promise<Snapshot> = Promise.resolve([]);
  let turns = 0;

  cluster.on("message", (worker, message: MetricsMessage | null) => {
    if (message?.type !== SNAPSHOT) return;
    last.set(worker.id, message.snapshot);
    if (waiting.get(worker.id)?.turn === message.turn) waiting.get(worker.id)?.done();
  });
  cluster.on("exit", ({ id }) => {
    waiting.get(id)?.done();
    const snapshot = last.get(id);
    last.delete(id);
    if (snapshot !== undefined) ended = addCounts(ended, snapshot.filter(isCumulative));
  });

  function ask(worker: Worker, turn: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(limit);
        waiting.delete(worker.id);
        resolve();
      };
      const limit = setTimeout(done, ANSWER_TIMEOUT);
      waiting.get(worker.id)?.done();
      waiting.set(worker.id, { turn, done });
      worker.send({ type: SNAPSHOT_REQUEST, turn }, (error: Error | null) => error && done());
    });
  }

  return async () => {
    const turn = turns++;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected());
    await Promise.all(workers.map((worker) => ask(worker as Worker, turn)));
    // `last` and `ended` are read at the same moment: otherwise a worker that ends in between would be in neither.
    const running = [...last.values()];
    return sumOf([await ended, ...running, await own.snapshot()]).metrics();
  };
}

/**
 * Adds the counts of an ended worker immediately, not at the next scrape: workers may keep dying for days, and their
 * snapshots would pile up.
 */
async function addCounts(ended: Promise<Snapshot>, more: Snapshot): Promise<Snapshot> {
  return sumOf([await ended, more]).getMetricsAsJSON();
}

function sumOf(snapshots: readonly Snapshot[]): AggregatorRegistry<never> {
  return AggregatorRegistry.aggregate([...snapshots] as never) as never;
}

/** Whether the metric is a count, which outlives its process. The others describe the present state of a process. */
function isCumulative({ type }: Snapshot[number]): boolean {
  return ["counter", "histogram"].includes(String(type));
}
