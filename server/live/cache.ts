/**
 * Answers of the database that are kept in memory, each with the version of its content. A content version identifies the
 * current state of all entries of some types, and reading it is cheap: it needs no look at the entries.
 */
import type { Body } from "../../shared/api/answer.ts";
import type { App } from "../../shared/api/catalog.ts";
import { isRefusal, type Refusal } from "../../shared/api/errors.ts";
import type { Session } from "../../shared/database/database.ts";
import type { LiveAnswer } from "../../shared/live.ts";
import { contentVersionQuery } from "../../shared/sql/counts.ts";
import { openFreshFlight, tenthsLeft } from "./share.ts";
import type { Ask } from "./sources.ts";

/** Used only for the same app object: an app stays the same object as long as it is unchanged. */
export type KeptAnswer = { readonly app: App; readonly contentVersion: string; readonly body: Body };

/** The cache that holds such answers, limited in bytes. `size` is in bytes. */
export type AnswerCache = {
  readonly find: (key: string) => KeptAnswer | undefined;
  readonly keep: (key: string, answer: KeptAnswer, size: number) => void;
};

/** Estimated bytes of headers and bookkeeping for each answer. */
const OVERHEAD = 1_000;
/** Estimated size of a body together with its compressed forms, as a multiple of the body's size. */
const CODINGS = 1.5;

export function findKept(cache: AnswerCache, key: string, app: App): KeptAnswer | null {
  const kept = cache.find(key);
  return kept?.app === app ? kept : null;
}

export function keep(cache: AnswerCache, key: string, app: App, { body, contentVersion }: LiveAnswer): void {
  if (contentVersion === null) return;
  cache.keep(key, { app, contentVersion, body }, CODINGS * body.bytes.length + 2 * key.length + OVERHEAD);
}

/** The text that contentVersionQuery returns; null when the app has none of these types. */
export type ContentVersion = string | null;

export function hasContentVersion(answer: LiveAnswer | Refusal, contentVersion: ContentVersion): answer is LiveAnswer {
  return !isRefusal(answer) && answer.contentVersion !== null && answer.contentVersion === contentVersion;
}

/**
 * Reads the content version of content types; no caller gets one that was read before it asked. `deadline` is the
 * performance.now() at which the query is given up. Resolves with a Refusal when none may start.
 */
type ReadContentVersion = (
  appKey: string,
  slugs: readonly string[],
  deadline: number,
  gone: AbortSignal,
) => Promise<ContentVersion | Refusal>;

type ContentVersionsOptions = {
  /** Queries the database, and gives the query up after `left` milliseconds. */
  readonly ask: <T>(controller: AbortController, run: Ask<T>, left: number) => Promise<T>;
  /** Returns the refusal to answer with when no new query may start; null when one may. */
  readonly instead: () => Refusal | null;
  /** Maximum time for an answer, in milliseconds. */
  readonly limit: number;
};

export function openContentVersions({ ask, instead, limit }: ContentVersionsOptions): ReadContentVersion {
  const versions = openFreshFlight<ContentVersion | Refusal>();

  return (appKey, slugs, deadline, gone) => {
    const left = () => Math.max(0, deadline - performance.now());
    const read = (controller: AbortController) =>
      ask(controller, (session) => queryContentVersion(session, appKey, slugs), left());
    return versions(`${appKey} ${slugs.join(" ")} ${tenthsLeft(left(), limit)}`, null, gone, read, instead);
  };
}

async function queryContentVersion(
  session: Pick<Session, "query">,
  appKey: string,
  slugs: readonly string[],
): Promise<ContentVersion> {
  const [row] = await session.query(contentVersionQuery(appKey, slugs));
  return row?.[0] ?? null;
}
