/** Answers live requests from the database: limits queries, shares them among equal requests, and gives up in time. */
import { type Body, bodyOf, schemaBody } from "../../shared/api/answer.ts";
import type { App } from "../../shared/api/catalog.ts";
import { DATABASE_UNAVAILABLE, OVERLOADED, type Refusal } from "../../shared/api/errors.ts";
import type { Plan } from "../../shared/api/plan.ts";
import type { Sources } from "../../shared/api/respond.ts";
import type { AppDefaults } from "../../shared/apps.ts";
import type { Database } from "../../shared/database/database.ts";
import { describeOutage } from "../../shared/database/fault.ts";
import { answerEntries, answerLive, type LiveAnswer } from "../../shared/live.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import { type Ask, openSource, type SourceOptions } from "../breaker.ts";
import { kindOf } from "../load.ts";
import type { Replica } from "../replicas.ts";
import { openApps } from "./apps.ts";
import { type AnswerCache, answerKept, type Edition, openEditions } from "./cache.ts";
import { type LiveState, openChoice } from "./choice.ts";
import { keyOf, openEntryLoader } from "./loader.ts";
import { openFreshFlight, openSingleFlight, tenthsLeft } from "./share.ts";

export type LiveOptions = AppDefaults &
  SourceOptions & {
    /** Read replicas. They answer instead of the primary as long as one of them is usable. */
    readonly replicas?: readonly Replica[];
    /** Calls `tell` whenever the primary has not answered a check of its replicas. */
    readonly watchPrimary?: (tell: () => void) => void;
    readonly answerCache: AnswerCache;
    /** Told when the primary becomes unavailable and when it is available again. Replicas are reported by replicas.ts. */
    readonly report?: (news: string) => void;
  };

export type Live = Pick<Sources, "findApp" | "answer"> & {
  /** Whether a request has been refused at once within the last second. */
  readonly isRefusing: () => boolean;
  readonly state: () => LiveState;
  /** Number of queries that each database has answered: the primary first, then the replicas in their order. */
  readonly answered: () => readonly number[];
  readonly close: () => void;
};

export function openLive(database: Database, options: LiveOptions): Live {
  const { replicas = [], watchPrimary, queryTimeout, answerCache, report = () => {} } = options;
  const primary = openSource(database, options, {
    onAway: (error) => report(awayNews(error, replicas.length > 0)),
    onBack: () => report(BACK_NEWS),
  });
  // While replicas take all live queries, none of these finds that the primary is away.
  watchPrimary?.(primary.check);
  const sources = openChoice(
    primary,
    replicas.map((replica) => ({ source: openSource(replica.database, options), status: replica.status })),
  );
  const findApp = openApps({ ask: (controller, run) => ask(controller, null, run), defaults: options });
  const answers = openSingleFlight<LiveAnswer | Refusal>();
  const catalogs = openFreshFlight<LiveAnswer | Refusal>();
  const editions = openEditions({
    ask: (controller, run, left) => ask(controller, null, run, left),
    instead: () => refuseAtOnce(null),
    limit: queryTimeout,
  });
  const loadEntry = openEntryLoader({
    load: (controller, app, plans, left) => {
      const [plan] = plans;
      const kind = plan === undefined ? null : kindIn(app, plan);
      return ask(controller, kind, (session) => answerEntries(session, app, plans), left);
    },
    limit: queryTimeout,
  });
  const slots: SlotCache = new Map();
  let refusedAt = Number.NEGATIVE_INFINITY;

  /**
   * Returns the refusal when a query of this kind may not start now, else null. Under overload this costs far less than
   * starting work for each request and giving it up.
   */
  function refuseAtOnce(kind: string | null): Refusal | null {
    const source = sources.choose();
    const refusal = source.isAway() ? DATABASE_UNAVAILABLE : source.isFull(kind) ? OVERLOADED : null;
    if (refusal !== null) refusedAt = performance.now();
    return refusal;
  }

  /** Gives the query up after `left` milliseconds. */
  async function ask<T>(
    controller: AbortController,
    kind: string | null,
    run: Ask<T>,
    left = queryTimeout,
  ): Promise<T> {
    const limit = setTimeout(() => controller.abort(), left);
    try {
      return await sources.ask(controller, kind, run);
    } finally {
      clearTimeout(limit);
    }
  }

  async function answer(app: App, plan: Plan, gone: AbortSignal, since = performance.now()): Promise<Body | Refusal> {
    // A schema needs no query, so it does not wait in the queue of those that do.
    if (plan.kind === "schema") return bodyOf(schemaBody(plan.type));
    const key = `${app.key} ${keyOf(plan)}`;
    const deadline = since + queryTimeout;
    const kind = kindIn(app, plan);
    const left = () => Math.max(0, deadline - performance.now());
    const instead = () => refuseAtOnce(kind);
    const work = (controller: AbortController) =>
      ask(controller, kind, (session) => answerLive(session, app, plan, slots), left());
    const nameOf = (edition?: Edition) => `${key} ${edition} ${tenthsLeft(left(), queryTimeout)}`;
    return answerKept(answerCache, {
      app,
      plan,
      key,
      readEdition: (slugs) => editions(app.key, slugs, deadline, gone),
      joinRunning: () => (plan.kind === "entry" ? null : answers.join(nameOf(), app, gone)),
      answer: async (edition) => {
        if (plan.kind === "entry") return instead() ?? loadEntry(app, plan, left(), gone);
        // The catalog has no edition.
        if (plan.kind === "catalog") return catalogs(nameOf(), app, gone, work, instead);
        return answers.share(nameOf(edition), app, gone, work, instead);
      },
    });
  }

  const { state, answered, close } = sources;
  const isRefusing = () => performance.now() - refusedAt < REFUSING_FOR;
  return { findApp, answer, isRefusing, state, answered, close };
}

/** Milliseconds after a refusal in which the refused clients are expected to try again. */
const REFUSING_FOR = 1_000;

function kindIn(app: App, plan: Plan): string {
  return `${app.key} ${kindOf(plan)}`;
}

// What the log says when the primary becomes unavailable, and when it is available again.

function awayNews(error: unknown, hasReplicas: boolean): string {
  const instead = hasReplicas ? "Only its replicas answer live requests" : "Live requests get 503";
  return `${describeOutage(error)}. ${instead} until it is available again.`;
}

const BACK_NEWS = "The database answers again.";
