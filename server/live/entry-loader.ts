/**
 * Entries that are asked for in the same way at the same moment: one query finds them. Where many ask at once, most of what an
 * entry costs alone is for the query and not for the entry.
 */
import { setImmediate } from "node:timers/promises";
import type { App } from "../../shared/catalog.ts";
import type { Answered } from "../../shared/live.ts";
import type { EntryPlan } from "../../shared/plan.ts";
import type { Refusal } from "../../shared/refusal.ts";
import { keyOf } from "./key.ts";
import { openSingleFlight } from "./single-flight.ts";

/** `left` is in milliseconds: what remains of the time that the answer may take. Throws the reason of the signal. */
export type EntryLoader = (app: App, plan: EntryPlan, left: number, gone: AbortSignal) => Promise<Answered | Refusal>;

export type EntryLoaderOptions = {
  /** Answers some plans of the same way, in their order. Is told to end when all who asked have gone. */
  readonly load: (
    controller: AbortController,
    app: App,
    plans: readonly EntryPlan[],
    left: number,
  ) => Promise<readonly (Answered | Refusal)[]>;
  /** Milliseconds that an answer may take at most. */
  readonly limit: number;
};

/** Those that will be asked for together: plans by their keys. */
type Batch = { readonly way: string; readonly number: number; readonly plans: Map<string, EntryPlan>; left: number };

/** Of more, those in front would wait for those behind them, and the database for the server that renders them all. */
const MOST = 8;

export function openEntryLoader({ load, limit }: EntryLoaderOptions): EntryLoader {
  const flights = openSingleFlight<ReadonlyMap<string, Answered | Refusal>>();
  /** Those that can be joined, by their way: they have not begun. */
  const open = new WeakMap<App, Map<string, Batch>>();
  let last = 0;

  /** Those who have waited already have less time, and no other is to lose his by them. */
  function wayOf({ type, populate }: EntryPlan, left: number): string {
    return `${type.slug} ${populate.map(({ name }) => name)} ${Math.ceil((10 * left) / limit)}`;
  }

  function join(app: App, plan: EntryPlan, key: string, left: number): Batch {
    const batches = open.get(app) ?? new Map<string, Batch>();
    open.set(app, batches);
    const way = wayOf(plan, left);
    const before = batches.get(way);
    const hasRoom = before !== undefined && (before.plans.size < MOST || before.plans.has(key));
    const batch = hasRoom ? before : { way, number: ++last, plans: new Map<string, EntryPlan>(), left };
    batches.set(way, batch);
    batch.plans.set(key, plan);
    batch.left = Math.min(batch.left, left);
    return batch;
  }

  function close(app: App, batch: Batch): void {
    const batches = open.get(app);
    if (batches?.get(batch.way) === batch) batches.delete(batch.way);
  }

  async function run(controller: AbortController, app: App, batch: Batch): Promise<Map<string, Answered | Refusal>> {
    // What comes until then comes at the same moment: all that is read from sockets in one turn of the event loop.
    await setImmediate();
    close(app, batch);
    const answers = await load(controller, app, [...batch.plans.values()], batch.left);
    return new Map([...batch.plans.keys()].map((key, index) => [key, answers[index] as Answered | Refusal]));
  }

  return async (app, plan, left, gone) => {
    gone.throwIfAborted();
    const key = keyOf(plan);
    const batch = join(app, plan, key, left);
    const answers = await flights.share(String(batch.number), null, gone, (controller) => run(controller, app, batch));
    return answers.get(key) as Answered | Refusal;
  };
}
