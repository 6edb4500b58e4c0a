/**
 * Batches requests for single entries that arrive at the same moment with the same type and `populate`: one query reads
 * them all. Under load, most of the cost of reading one entry is the query and not the entry.
 */
import { setImmediate } from "node:timers/promises";
import { type App, oncePerObject } from "../../shared/api/catalog.ts";
import type { Shown, Sort } from "../../shared/api/columns.ts";
import type { Refusal } from "../../shared/api/errors.ts";
import type { Condition } from "../../shared/api/filter.ts";
import type { EntryPlan, ListPlan, Plan, SearchPlan } from "../../shared/api/plan.ts";
import type { LiveAnswer } from "../../shared/live.ts";
import { openSingleFlight, tenthsLeft } from "./share.ts";

/** `left` is the remaining time for the answer, in milliseconds. Throws the reason of `gone` when that aborts. */
type EntryLoader = (app: App, plan: EntryPlan, left: number, gone: AbortSignal) => Promise<LiveAnswer | Refusal>;

type EntryLoaderOptions = {
  /** Answers plans of one type and `populate`, in their order. The controller aborts when all clients have gone. */
  readonly load: (
    controller: AbortController,
    app: App,
    plans: readonly EntryPlan[],
    left: number,
  ) => Promise<readonly (LiveAnswer | Refusal)[]>;
  /** Maximum time for an answer, in milliseconds. */
  readonly limit: number;
};

/** Plans by their keys, to be read by one query. `left` is the shortest remaining time among them, in milliseconds. */
type Batch = {
  readonly batchKey: string;
  readonly number: number;
  readonly plans: Map<string, EntryPlan>;
  left: number;
};

/** Maximum batch size. In larger ones answers wait for each other, and the database is idle while all are rendered. */
const MAX_BATCH = 8;

export function openEntryLoader({ load, limit }: EntryLoaderOptions): EntryLoader {
  const flights = openSingleFlight<ReadonlyMap<string, LiveAnswer | Refusal>>();
  /** Batches that have not started and so can be joined, by the text of nameBatch. */
  const open = new WeakMap<App, Map<string, Batch>>();
  let last = 0;

  function nameBatch({ type, populate }: EntryPlan, left: number): string {
    return `${type.slug} ${populate.map(({ name }) => name)} ${tenthsLeft(left, limit)}`;
  }

  function join(app: App, plan: EntryPlan, key: string, left: number): Batch {
    const batches = open.get(app) ?? new Map<string, Batch>();
    open.set(app, batches);
    const batchKey = nameBatch(plan, left);
    const before = batches.get(batchKey);
    const hasRoom = before !== undefined && (before.plans.size < MAX_BATCH || before.plans.has(key));
    const batch = hasRoom ? before : { batchKey, number: ++last, plans: new Map<string, EntryPlan>(), left };
    batches.set(batchKey, batch);
    batch.plans.set(key, plan);
    batch.left = Math.min(batch.left, left);
    return batch;
  }

  function close(app: App, batch: Batch): void {
    const batches = open.get(app);
    if (batches?.get(batch.batchKey) === batch) batches.delete(batch.batchKey);
  }

  async function run(controller: AbortController, app: App, batch: Batch): Promise<Map<string, LiveAnswer | Refusal>> {
    // Until then, every request that is read from a socket in this turn of the event loop can join the batch.
    await setImmediate();
    close(app, batch);
    const answers = await load(controller, app, [...batch.plans.values()], batch.left);
    return new Map([...batch.plans.keys()].map((key, index) => [key, answers[index] as LiveAnswer | Refusal]));
  }

  return async (app, plan, left, gone) => {
    gone.throwIfAborted();
    const key = describePlan(plan);
    const batch = join(app, plan, key, left);
    const answers = await flights.share(String(batch.number), null, gone, (controller) => run(controller, app, batch));
    return answers.get(key) as LiveAnswer | Refusal;
  };
}

// Writes a plan as a text key. Equal plans of an app have the same key, however their requests were spelled.

/** Remembered, because plans of repeated requests are reused. */
export const describePlan = oncePerObject((plan: Plan): string => JSON.stringify(listParts(plan)));

/** Types and fields are written by name, which identifies them within an app. */
function listParts(plan: Plan): readonly unknown[] {
  switch (plan.kind) {
    case "catalog":
      return [plan.kind];
    case "schema":
      return [plan.kind, plan.type.slug];
    case "entry": {
      const { kind, type, id, shown, populate, refusal } = plan;
      return [kind, type.slug, id, partsOfShown(shown), listNames(populate), refusal];
    }
    case "list":
      return partsOfPage(plan);
    case "search":
      return [...partsOfPage(plan), plan.query, plan.words];
  }
}

function partsOfPage({
  kind,
  type,
  conditions,
  sort,
  page,
  perPage,
  shown,
}: ListPlan | SearchPlan): readonly unknown[] {
  const order = sort === null ? null : partsOfSort(sort);
  return [kind, type.slug, String(page), perPage, order, partsOfShown(shown), conditions.map(partsOfCondition)];
}

function partsOfSort({ column, descending }: Sort): readonly unknown[] {
  return [column.name, descending];
}

function partsOfShown({ fields, timestamps }: Shown): readonly unknown[] {
  return [listNames(fields), timestamps];
}

function partsOfCondition(condition: Condition): object {
  return { ...condition, column: condition.column.name };
}

function listNames(fields: readonly { readonly name: string }[]): string {
  return fields.map(({ name }) => name).join();
}
