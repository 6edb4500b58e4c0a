/**
 * Answers live requests from the database: from an answer that is kept or being made, if the content has not changed
 * since, and else by a query that waits for its permit, is shared among equal requests, and is given up in time.
 */
import { type Body, makeBody, schemaBody } from "../../shared/api/answer.ts";
import type { App } from "../../shared/api/catalog.ts";
import { DATABASE_UNAVAILABLE, isRefusal, OVERLOADED, type Refusal } from "../../shared/api/errors.ts";
import type { Plan } from "../../shared/api/plan.ts";
import type { Sources as ApiSources } from "../../shared/api/respond.ts";
import type { AppDefaults } from "../../shared/apps.ts";
import type { Database } from "../../shared/database/database.ts";
import { answerEntries, answerLive, type LiveAnswer } from "../../shared/live.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import { listTypes } from "../../shared/sql/entries.ts";
import { type Weight, weigh } from "../load.ts";
import { openApps } from "./apps.ts";
import {
  type AnswerCache,
  type ContentVersion,
  findKept,
  hasContentVersion,
  keep,
  openContentVersions,
} from "./cache.ts";
import { describePlan, openEntryLoader } from "./loader.ts";
import { openFreshFlight, openSingleFlight, tenthsLeft } from "./share.ts";
import { type Ask, openSources, type Sources, type SourcesOptions } from "./sources.ts";

export type LiveOptions = AppDefaults & SourcesOptions & { readonly answerCache: AnswerCache };

export type Live = Pick<ApiSources, "findApp" | "answer"> &
  Pick<Sources, "state" | "answered" | "close"> & {
    /** Whether a request has been refused at once within the last second. */
    readonly isRefusing: () => boolean;
  };

/** `key` identifies the plan and its app. `deadline` is the performance.now() at which the request is given up. */
type LiveRequest = {
  readonly app: App;
  readonly plan: Plan;
  readonly key: string;
  readonly deadline: number;
  readonly gone: AbortSignal;
};

/** Milliseconds after a refusal in which the refused clients are expected to try again. */
const REFUSING_FOR = 1_000;

export function openLive(database: Database, options: LiveOptions): Live {
  const { queryTimeout, answerCache } = options;
  const sources = openSources(database, options);
  const answers = openSingleFlight<LiveAnswer | Refusal>();
  const catalogs = openFreshFlight<LiveAnswer | Refusal>();
  const slots: SlotCache = new Map();
  let refusedAt = Number.NEGATIVE_INFINITY;

  const findApp = openApps({ ask: (controller, run) => ask(controller, "light", run), defaults: options });
  const readContentVersion = openContentVersions({
    ask: (controller, run, left) => ask(controller, "light", run, left),
    instead: () => refuseAtOnce("light"),
    limit: queryTimeout,
  });
  const loadEntry = openEntryLoader({
    load: (controller, app, plans, left) =>
      ask(controller, "light", (session) => answerEntries(session, app, plans), left),
    limit: queryTimeout,
  });

  async function answer(app: App, plan: Plan, gone: AbortSignal, since = performance.now()): Promise<Body | Refusal> {
    // A schema needs no query, so it does not wait in the queue of those that do.
    if (plan.kind === "schema") return makeBody(schemaBody(plan.type));
    const key = `${app.key} ${describePlan(plan)}`;
    const request = { app, plan, key, deadline: since + queryTimeout, gone };
    const slugs = findSlugs(plan);
    // The catalog has no content version.
    const answered = slugs === null ? await query(request) : await answerCurrent(request, slugs);
    return isRefusal(answered) ? answered : answered.body;
  }

  /** Uses an answer that is kept or being made, whose content may be older than the request, if it is still current. */
  async function answerCurrent(request: LiveRequest, slugs: readonly string[]): Promise<LiveAnswer | Refusal> {
    const { app, key, deadline, gone } = request;
    const kept = findKept(answerCache, key, app);
    const candidate = kept ?? (await joinRunning(request));
    const contentVersion = candidate === null ? undefined : await readContentVersion(app.key, slugs, deadline, gone);
    if (isRefusal(contentVersion)) return contentVersion;
    if (contentVersion !== undefined && candidate !== null && hasContentVersion(candidate, contentVersion)) {
      if (candidate !== kept) keep(answerCache, key, app, candidate);
      return candidate;
    }
    const answered = await query(request, contentVersion);
    if (!isRefusal(answered)) keep(answerCache, key, app, answered);
    return answered;
  }

  /** Joins the query that other requests have started without knowing the content version. Null when none is running. */
  function joinRunning(request: LiveRequest): Promise<LiveAnswer | Refusal> | null {
    return request.plan.kind === "entry" ? null : answers.join(nameFlight(request), request.app, request.gone);
  }

  /** Requests that know the same content version may share an answer. */
  async function query(request: LiveRequest, contentVersion?: ContentVersion): Promise<LiveAnswer | Refusal> {
    const { app, plan, gone } = request;
    const weight = weigh(plan);
    const instead = () => refuseAtOnce(weight);
    if (plan.kind === "entry") return instead() ?? loadEntry(app, plan, timeLeft(request), gone);
    const share = plan.kind === "catalog" ? catalogs : answers.share;
    const work = (controller: AbortController) =>
      ask(controller, weight, (session) => answerLive(session, app, plan, slots), timeLeft(request));
    return share(nameFlight(request, contentVersion), app, gone, work, instead);
  }

  /** Requests with little time left do not share work with those that have more. */
  function nameFlight(request: LiveRequest, contentVersion?: ContentVersion): string {
    return `${request.key} ${contentVersion} ${tenthsLeft(timeLeft(request), queryTimeout)}`;
  }

  /**
   * Returns the refusal when a query of this weight may not start now, else null. Under overload this costs far less
   * than starting work for each request and giving it up.
   */
  function refuseAtOnce(weight: Weight): Refusal | null {
    const source = sources.choose();
    const refusal = source.isAway() ? DATABASE_UNAVAILABLE : source.isFull(weight) ? OVERLOADED : null;
    if (refusal !== null) refusedAt = performance.now();
    return refusal;
  }

  /** Gives the query up after `left` milliseconds. */
  async function ask<T>(controller: AbortController, weight: Weight, run: Ask<T>, left = queryTimeout): Promise<T> {
    const limit = setTimeout(() => controller.abort(), left);
    try {
      return await sources.ask(controller, weight, run);
    } finally {
      clearTimeout(limit);
    }
  }

  const { state, answered, close } = sources;
  const isRefusing = () => performance.now() - refusedAt < REFUSING_FOR;
  return { findApp, answer, isRefusing, state, answered, close };
}

function timeLeft({ deadline }: LiveRequest): number {
  return Math.max(0, deadline - performance.now());
}

/** The slugs of the types whose entries are in an answer. Null for catalog and schema, which have no content version. */
function findSlugs(plan: Plan): readonly string[] | null {
  switch (plan.kind) {
    case "catalog":
    case "schema":
      return null;
    case "list":
    case "search":
      return [plan.type.slug];
    case "entry":
      return listTypes(plan);
  }
}
