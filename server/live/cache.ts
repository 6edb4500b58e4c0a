/**
 * Reuses live answers that were given before or are being made for other requests, if the database says that the
 * content still has the edition they were made from. Reading the edition is cheap: it needs no look at the entries.
 */
import type { Body } from "../../shared/api/answer.ts";
import type { App } from "../../shared/api/catalog.ts";
import { isRefusal, type Refusal } from "../../shared/api/errors.ts";
import type { Plan } from "../../shared/api/plan.ts";
import type { Session } from "../../shared/database/database.ts";
import { type LiveAnswer, typesIn } from "../../shared/live.ts";
import { editionQuery } from "../../shared/sql/counts.ts";
import type { Ask } from "../breaker.ts";
import { openFreshFlight, tenthsLeft } from "./share.ts";

export type KeptAnswer = { readonly app: App; readonly edition: string; readonly body: Body };

/** The cache that holds such answers, limited in bytes. `size` is in bytes. */
export type AnswerCache = {
  readonly find: (key: string) => KeptAnswer | undefined;
  readonly keep: (key: string, answer: KeptAnswer, size: number) => void;
};

type LiveRequest = {
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
  readonly joinRunning: () => Promise<LiveAnswer | Refusal> | null;
  /** Answers from the database. Requests that pass the same edition may share an answer. */
  readonly answer: (edition?: Edition) => Promise<LiveAnswer | Refusal>;
};

/** Estimated bytes of headers and bookkeeping for each answer. */
const OVERHEAD = 1_000;
/** Estimated size of a body together with its compressed forms, as a multiple of the body's size. */
const CODINGS = 1.5;

export async function answerKept(cache: AnswerCache, request: LiveRequest): Promise<Body | Refusal> {
  const { app, plan, key, readEdition, joinRunning, answer } = request;
  const slugs = typesIn(plan);
  const kept = slugs === null ? undefined : cache.find(key);
  const candidate = kept?.app === app ? kept : await joinRunning();
  const edition = slugs === null || candidate === null ? undefined : await readEdition(slugs);
  if (isRefusal(edition)) return edition;
  const answered = hasEdition(candidate, edition) ? candidate : await answer(edition);
  if (isRefusal(answered)) return answered;
  const { body, edition: own } = answered;
  if (answered !== kept && own !== null) cache.keep(key, { app, edition: own, body }, sizeOf(key, body));
  return body;
}

function hasEdition(candidate: LiveAnswer | Refusal | null, edition: Edition | undefined): candidate is LiveAnswer {
  return candidate !== null && !isRefusal(candidate) && candidate.edition !== null && candidate.edition === edition;
}

function sizeOf(key: string, { bytes }: Body): number {
  return CODINGS * bytes.length + 2 * key.length + OVERHEAD;
}

// Reads the edition of content types, which identifies the current state of their entries. No caller gets an edition
// that was read before it asked.

/** The text that editionQuery returns; null when the app has none of these types. */
export type Edition = string | null;

/** `deadline` is the performance.now() at which the query is given up. Resolves with a Refusal when none may start. */
type Editions = (
  appKey: string,
  slugs: readonly string[],
  deadline: number,
  gone: AbortSignal,
) => Promise<Edition | Refusal>;

type EditionsOptions = {
  /** Queries the database, and gives the query up after `left` milliseconds. */
  readonly ask: <T>(controller: AbortController, run: Ask<T>, left: number) => Promise<T>;
  /** Returns the refusal to answer with when no new query may start; null when one may. */
  readonly instead: () => Refusal | null;
  /** Maximum time for an answer, in milliseconds. */
  readonly limit: number;
};

export function openEditions({ ask, instead, limit }: EditionsOptions): Editions {
  const readings = openFreshFlight<Edition | Refusal>();

  return (appKey, slugs, deadline, gone) => {
    const left = () => Math.max(0, deadline - performance.now());
    const read = (controller: AbortController) =>
      ask(controller, (session) => readEdition(session, appKey, slugs), left());
    return readings(`${appKey} ${slugs.join(" ")} ${tenthsLeft(left(), limit)}`, null, gone, read, instead);
  };
}

async function readEdition(
  session: Pick<Session, "query">,
  appKey: string,
  slugs: readonly string[],
): Promise<Edition> {
  const [row] = await session.query(editionQuery(appKey, slugs));
  return row?.[0] ?? null;
}
