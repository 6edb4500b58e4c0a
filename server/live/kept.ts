/**
 * Answers of the database that were given before, or are being made for others. The database says whether what they were made of
 * is still what it has, which it knows without looking for it again.
 */
import type { Body } from "../../shared/answer.ts";
import type { App } from "../../shared/catalog.ts";
import { type Answered, typesIn } from "../../shared/live.ts";
import type { Plan } from "../../shared/plan.ts";
import type { Refusal } from "../../shared/refusal.ts";
import type { Edition } from "./editions.ts";

export type KeptAnswer = { readonly app: App; readonly edition: string; readonly body: Body };

/** Where they are held: so many bytes at most. */
export type Keeper = {
  readonly find: (key: string) => KeptAnswer | undefined;
  readonly hold: (key: string, answer: KeptAnswer, size: number) => void;
};

export type Asking = {
  /** The same object as long as the app is the same: what is kept holds it. */
  readonly app: App;
  readonly plan: Plan;
  /** The same for the same plan of the same app. */
  readonly key: string;
  readonly readEdition: (slugs: readonly string[]) => Promise<Edition | Refusal>;
  /** What others wait for who have asked without an edition: it may be of before this request. Null where nobody does. */
  readonly begun: () => Promise<Answered | Refusal> | null;
  /** Answers from the database. Those who ask with the same edition may share an answer. */
  readonly answer: (edition?: Edition) => Promise<Answered | Refusal>;
};

/** Of headers and bookkeeping, about. */
const OVERHEAD = 1_000;
/** Of a body and what is made of it in other codings, about. */
const CODINGS = 1.5;

export async function answerKept(keeper: Keeper, asking: Asking): Promise<Body | Refusal> {
  const { app, plan, key, readEdition, begun, answer } = asking;
  const slugs = typesIn(plan);
  const kept = slugs === null ? undefined : keeper.find(key);
  const made = kept?.app === app ? kept : await begun();
  const edition = slugs === null || made === null ? undefined : await readEdition(slugs);
  if (isRefused(edition)) return edition;
  const answered = isOf(made, edition) ? made : await answer(edition);
  if (isRefused(answered)) return answered;
  const { body, edition: own } = answered;
  if (answered !== kept && own !== null) keeper.hold(key, { app, edition: own, body }, sizeOf(key, body));
  return body;
}

function isOf(made: Answered | Refusal | null, edition: Edition | undefined): made is Answered {
  return made !== null && !isRefused(made) && made.edition !== null && made.edition === edition;
}

function isRefused(found: Edition | undefined | Answered | Refusal): found is Refusal {
  return typeof found === "object" && found !== null && "code" in found;
}

function sizeOf(key: string, { bytes }: Body): number {
  return CODINGS * bytes.length + 2 * key.length + OVERHEAD;
}
