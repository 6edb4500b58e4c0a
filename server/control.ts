/** What operators see of one server process: its admin port, and what is asked there put together. */
import type { Database } from "../shared/database/database.ts";
import { openAdmin } from "./admin.ts";
import { type Gauges, openMetrics } from "./metrics.ts";
import type { Observe } from "./observation.ts";
import { openProbe } from "./probe.ts";
import { readinessOf } from "./readiness.ts";
import { readTreeStanding } from "./tree-standing.ts";

export type ControlOptions = {
  readonly host: string;
  readonly port: number;
  /** The folder of the tree. */
  readonly out: string;
  readonly database: Pick<Database, "query">;
  readonly now: () => Date;
  /** Those whose owners are elsewhere. */
  readonly gauges: Omit<Gauges, "treeAge">;
  readonly droppedLines: () => number;
  readonly onError: (error: unknown) => void;
};

export type Control = {
  readonly url: string;
  readonly observe: Observe;
  /** From now on the server is not ready for more. */
  readonly drain: () => void;
  readonly close: () => Promise<void>;
};

export async function openControl(options: ControlOptions): Promise<Control> {
  const { host, port, out, database, now, gauges, droppedLines, onError } = options;
  const probe = openProbe(database);
  let draining = false;

  async function treeAge(): Promise<number | null> {
    const { built_at } = await readTreeStanding(out);
    return built_at === null ? null : (now().getTime() - Date.parse(built_at)) / 1_000;
  }

  async function readiness() {
    const [tree, databaseStanding] = await Promise.all([readTreeStanding(out), probe()]);
    return readinessOf(tree, databaseStanding, draining);
  }

  const metrics = openMetrics({ ...gauges, treeAge }, droppedLines);
  const admin = await openAdmin({ readiness, metrics: metrics.text, onError }, host, port);
  return {
    url: admin.url,
    observe: metrics.observe,
    drain: () => {
      draining = true;
    },
    close: admin.close,
  };
}
