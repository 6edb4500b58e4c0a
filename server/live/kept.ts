/**
 * Answers of the database that were asked for before. The database says whether what they were made of is still what it has,
 * which it knows without looking for it again.
 */
import { isDeepStrictEqual } from "node:util";
import type { Body } from "../../shared/answer.ts";
import type { App } from "../../shared/catalog.ts";
import { typesIn } from "../../shared/live.ts";
import type { Plan } from "../../shared/plan.ts";
import type { Refusal } from "../../shared/refusal.ts";

/** What is held of an answer; of one that was asked for once, that it was. */
export type KeptAnswer = { readonly app: App; readonly stamp: string; readonly body: Body } | "asked";

/** Where they are held: so many bytes at most. */
export type Keeper = {
  readonly find: (key: string) => KeptAnswer | undefined;
  readonly hold: (key: string, answer: KeptAnswer, size: number) => void;
};

/** The stamp of published types (stampQuery); null where there are none. */
export type Stamp = string | null;

export type Asking = {
  readonly app: App;
  readonly plan: Plan;
  /** The same for the same plan of the same app. */
  readonly key: string;
  readonly readStamp: (slugs: readonly string[]) => Promise<Stamp | Refusal>;
  /** Answers from the database. Those who ask with the same stamp, or all without one, may share an answer. */
  readonly answer: (stamp?: Stamp) => Promise<Body | Refusal>;
};

/** Of headers and bookkeeping, about. */
const OVERHEAD = 1_000;

/** What is asked for the first time is not kept: most such is asked for once, and reading its stamp would cost more. */
export async function answerKept(keeper: Keeper, asking: Asking): Promise<Body | Refusal> {
  const { app, plan, key, readStamp, answer } = asking;
  const slugs = typesIn(plan);
  if (slugs === null) return answer();
  const kept = keeper.find(key);
  if (kept === undefined) {
    keeper.hold(key, "asked", key.length + OVERHEAD);
    return answer();
  }
  // Read before the answer is begun: what is written meanwhile makes it look older than it is, never newer.
  const stamp = await readStamp(slugs);
  if (stamp !== null && typeof stamp !== "string") return stamp;
  if (kept !== "asked" && kept.stamp === stamp && isSame(kept.app, app)) return kept.body;
  const body = await answer(stamp);
  if ("bytes" in body && stamp !== null) keeper.hold(key, { app, stamp, body }, sizeOf(key, body));
  return body;
}

function isSame(one: App, other: App): boolean {
  return one === other || isDeepStrictEqual(one, other);
}

function sizeOf(key: string, { bytes }: Body): number {
  return bytes.length + 2 * key.length + OVERHEAD;
}
