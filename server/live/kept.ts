/**
 * Reuses live answers that were given before or are being made for other requests, if the database says that the
 * content still has the edition they were made from. Reading the edition is cheap: it needs no look at the entries.
 */
import type { Body } from "../../shared/answer.ts";
import type { App } from "../../shared/catalog.ts";
import { type Answered, typesIn } from "../../shared/live.ts";
import type { Plan } from "../../shared/plan.ts";
import type { Refusal } from "../../shared/refusal.ts";
import type { Edition } from "./editions.ts";

export type KeptAnswer = { readonly app: App; readonly edition: string; readonly body: Body };

/** The cache that holds such answers, limited in bytes. `size` is in bytes. */
export type Keeper = {
  readonly find: (key: string) => KeptAnswer | undefined;
  readonly hold: (key: string, answer: KeptAnswer, size: number) => void;
};

export type Asking = {
  /** The same object as long as the app is unchanged: a kept answer is used only for the app object it was made for. */
  readonly app: App;
  readonly plan: Plan;
  /** Identifies the plan and its app. */
  readonly key: string;
  readonly readEdition: (slugs: readonly string[]) => Promise<Edition | Refusal>;
  /**
   * Joins the query that other requests have started without knowing the edition; its content may be older than this
   * request. Null when none is running.
   */
  readonly begun: () => Promise<Answered | Refusal> | null;
  /** Answers from the database. Requests that pass the same edition may share an answer. */
  readonly answer: (edition?: Edition) => Promise<Answered | Refusal>;
};

/** Estimated bytes of headers and bookkeeping for each answer. */
const OVERHEAD = 1_000;
/** Estimated size of a body together with its compressed forms, as a multiple of the body's size. */
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
