/** The metrics of several processes as those of one server: workers tell the primary what they have counted. */
import cluster, { type Worker } from "node:cluster";
import { AggregatorRegistry } from "prom-client";
import type { Metrics, Snapshot } from "./metrics.ts";

const ASK = "precast:metrics?";
const TELL = "precast:metrics";
/** Without a turn it is told unasked. */
type Told = { readonly type: typeof TELL; readonly turn: number | undefined; readonly snapshot: Snapshot };

/** In milliseconds. A worker that is too busy to tell in time is told as it was last. */
const PATIENCE = 1_000;
/** In milliseconds. What a worker counts within these is lost when it is killed. */
const UNASKED = 1_000;

/**
 * In a worker: answers the primary whenever it asks, and tells it unasked as well, as who is killed tells nothing more. Gives
 * what tells it for the last time; that resolves when the primary has it.
 */
export function tellMetrics({ snapshot }: Pick<Metrics, "snapshot">): () => Promise<void> {
  async function tell(turn?: number): Promise<void> {
    const told: Told = { type: TELL, turn, snapshot: await snapshot() };
    await new Promise<void>((resolve) => {
      if (process.connected) process.send?.(told, undefined, undefined, () => resolve());
      else resolve();
    });
  }

  process.on("message", (message: { type?: unknown; turn?: number } | null) => {
    if (message?.type === ASK) void tell(message.turn);
  });
  const timer = setInterval(() => void tell(), UNASKED).unref();
  return () => {
    clearInterval(timer);
    return tell();
  };
}

/**
 * In the primary: gives a function that asks all workers and returns the sums as the text of Prometheus. What a worker
 * has counted stays counted when it ends, or a sum would fall, which Prometheus takes for a new beginning.
 */
export function gatherMetrics(own: Pick<Metrics, "snapshot"> | null): () => Promise<string> {
  const last = new Map<number, Snapshot>();
  const waiting = new Map<number, { readonly turn: number; readonly done: () => void }>();
  let ended: Promise<Snapshot> = Promise.resolve([]);
  let turns = 0;

  cluster.on("message", (worker, message: Told | null) => {
    if (message?.type !== TELL) return;
    last.set(worker.id, message.snapshot);
    if (waiting.get(worker.id)?.turn === message.turn) waiting.get(worker.id)?.done();
  });
  cluster.on("exit", ({ id }) => {
    waiting.get(id)?.done();
    const snapshot = last.get(id);
    last.delete(id);
    if (snapshot !== undefined) ended = added(ended, snapshot.filter(isSum));
  });

  function ask(worker: Worker, turn: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(limit);
        waiting.delete(worker.id);
        resolve();
      };
      const limit = setTimeout(done, PATIENCE);
      waiting.get(worker.id)?.done();
      waiting.set(worker.id, { turn, done });
      worker.send({ type: ASK, turn }, (error: Error | null) => error && done());
    });
  }

  return async () => {
    const turn = turns++;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected());
    await Promise.all(workers.map((worker) => ask(worker as Worker, turn)));
    // Of one moment, or a worker that ends meanwhile would be in neither.
    const running = [...last.values()];
    return sumOf([await ended, ...running, ...(own === null ? [] : [await own.snapshot()])]).metrics();
  };
}

/** At once, whether anybody asks or not: workers may go on dying for days. */
async function added(ended: Promise<Snapshot>, more: Snapshot): Promise<Snapshot> {
  return sumOf([await ended, more]).getMetricsAsJSON();
}

function sumOf(snapshots: readonly Snapshot[]): AggregatorRegistry<never> {
  return AggregatorRegistry.aggregate([...snapshots] as never) as never;
}

/** What a process has counted; the rest is what it had. */
function isSum({ type }: Snapshot[number]): boolean {
  return ["counter", "histogram"].includes(String(type));
}
