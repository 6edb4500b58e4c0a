/**
 * The pipeline joined: a raw request becomes an answer, from the tree where the shape is free and the app has one, from
 * the database otherwise.
 */
import { type Address, addressOf } from "./address.ts";
import {
  type Answer,
  type Body,
  bodyAnswer,
  bodyOf,
  type CachePolicy,
  type Circumstances,
  preflightAnswer,
  refusalAnswer,
} from "./answer.ts";
import { isWholeBody, listBody } from "./body.ts";
import { APP_KEY, type App, defaultPerPage } from "./catalog.ts";
import { DatabaseFault, type FaultReason } from "./database/fault.ts";
import type { FreeShape } from "./metering.ts";
import type { Plan } from "./plan.ts";
import { type Reading, readFor } from "./reading.ts";
import {
  DATABASE_UNAVAILABLE,
  entryNotFound,
  INTERNAL_ERROR,
  isPassing,
  isRefusal,
  OVERLOADED,
  QUERY_TIMEOUT,
  type Refusal,
  unknownAppKey,
} from "./refusal.ts";
import { type ApiRequest, type RawRequest, readRequest } from "./request.ts";

/** Is what was read still what the tree has? */
export type Current = () => boolean;

/** A file of the tree. */
export type TreeBody = Body & { readonly bytes: Buffer; readonly isCurrent: Current };

/** An app's part of the tree. It knows the app as it was when the tree was built. */
export type AppTree = {
  readonly app: App;
  readonly isCurrent: Current;
  /** The same, looked at now: `isCurrent` may be some moments behind a build. */
  readonly isStill: Current;
  readonly read: (address: Address) => Promise<TreeBody | null>;
};

/** The client has gone away, and nobody waits for the answer. */
export class ClientGone extends Error {
  constructor() {
    super("the client has gone away");
    this.name = "ClientGone";
  }
}

/**
 * Where answers come from. `answer` and `findApp` ask the database and may throw a DatabaseFault, or ClientGone when the
 * signal says so.
 */
export type Sources = {
  readonly findTree: (appKey: string) => Promise<AppTree | null>;
  readonly findApp: (appKey: string, gone: AbortSignal) => Promise<App | null>;
  /** `since` is as in Asking. */
  readonly answer: (app: App, plan: Plan, gone: AbortSignal, since?: number) => Promise<Body | Refusal>;
  /** What was read before, where that is remembered. */
  readonly readings?: Readings;
  /** Is told what went wrong behind a 500. */
  readonly onError: (error: unknown) => void;
};

/** Readings of requests that came before. One is of use as long as its app is what it was: the same object. */
export type Readings = {
  readonly find: (raw: RawRequest) => Reading | null;
  readonly keep: (raw: RawRequest, reading: Reading) => void;
};

export type Response =
  | { readonly kind: "preflight" }
  /** `circumstances` is null where the app is not known: such requests are never counted. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly circumstances: Circumstances | null }
  | Found;

export type Found = {
  readonly kind: "found";
  readonly body: Body;
  readonly circumstances: Circumstances;
  /** As long as this is so, the same target finds the same. Null where that is not known. */
  readonly isCurrent: Current | null;
};

/**
 * `gone` gives the signal that the client has gone away; it is called when the database is needed. `since` is when the request
 * came, by performance.now(), where its answer may take so long and no longer.
 */
export type Asking = RawRequest & { readonly gone?: () => AbortSignal; readonly since?: number };

/** How often a request begins anew because the tree has become another meanwhile. */
const ANEW = 3;

/** Throws ClientGone when nobody waits for the answer any more. */
export function respond(raw: Asking, sources: Sources): Promise<Response> {
  return respondFrom(raw, sources, ANEW);
}

async function respondFrom(raw: Asking, sources: Sources, anew: number): Promise<Response> {
  const { gone = staying, since } = raw;
  const before = sources.readings?.find(raw) ?? null;
  const request = before?.request ?? readRequest(raw);
  if (request.kind === "preflight") return request;
  if (isRefusal(request)) return { kind: "refused", refusal: request, circumstances: null };
  const known = await guarded(sources, () => findApp(request.appKey, sources, gone));
  if ("code" in known) return { kind: "refused", refusal: known, circumstances: null };

  const { app, tree } = known;
  const reading = before?.app === app ? before : readFor(app, request);
  const { metering, saving, plan } = reading;
  const result = isRefusal(plan)
    ? { outcome: plan, fromTree: tree !== null, isCurrent: null }
    : await answerPlan(reading, plan, tree, { sources, gone, since, isLast: anew === 0 });
  if (result === null) return respondFrom(raw, sources, anew - 1);
  const { outcome, fromTree, isCurrent } = result;
  // A crowd that is turned away must not take the room of those who are not.
  if (reading !== before && tree !== null && !("kind" in outcome && isPassing(outcome)))
    sources.readings?.keep(raw, reading);
  const { route, likes } = request;
  const type = route.kind === "catalog" ? null : route.slug;
  const circumstances = { appKey: app.key, type, metering, saving, fromTree, likes };
  return "kind" in outcome
    ? { kind: "refused", refusal: outcome, circumstances }
    : { kind: "found", body: outcome, circumstances, isCurrent };
}

/** The response as it goes over the wire. */
export function answerOf(response: Response, policy: CachePolicy, ifNoneMatch: string | undefined): Answer {
  switch (response.kind) {
    case "preflight":
      return preflightAnswer();
    case "refused":
      return refusalAnswer(response.refusal, response.circumstances, policy.tagged);
    case "found":
      return bodyAnswer(response.body, response.circumstances, policy, ifNoneMatch);
  }
}

const staying = () => new AbortController().signal;

type KnownApp = { readonly app: App; readonly tree: AppTree | null };
type Result = Pick<Found, "isCurrent"> & { readonly fromTree: boolean; readonly outcome: Body | Refusal };

async function findApp(key: string, sources: Sources, gone: () => AbortSignal): Promise<KnownApp | Refusal> {
  if (!APP_KEY.test(key)) return unknownAppKey(key);
  const tree = await sources.findTree(key);
  if (tree !== null) return { app: tree.app, tree };
  const app = await sources.findApp(key, gone());
  return app === null ? unknownAppKey(key) : { app, tree: null };
}

/** What surrounds the answering of a plan. */
type Circle = {
  readonly sources: Sources;
  readonly gone: () => AbortSignal;
  readonly since: number | undefined;
  readonly isLast: boolean;
};

/** Null when the tree is another by now, unless this is the last time. */
async function answerPlan(
  { app, request, metering }: Reading,
  plan: Plan,
  tree: AppTree | null,
  { sources, gone, since, isLast }: Circle,
): Promise<Result | null> {
  if (!metering.counted && tree !== null) {
    const outcome = await guarded(sources, () => answerFromTree(request, tree, plan, metering.shape as FreeShape));
    // A file may be missing because a build has just taken it away; the app is another by then.
    if (!isFile(outcome) && !isLast && !tree.isStill()) return null;
    if (outcome !== null) return { fromTree: true, outcome, isCurrent: currentOf(tree, outcome) };
  }
  const outcome = await guarded(sources, () => sources.answer(app, plan, gone(), since));
  return { fromTree: false, isCurrent: null, outcome };
}

/** Only what is a file as it stands can be looked at again. */
function currentOf(tree: AppTree, outcome: Body | TreeBody | Refusal): Current | null {
  return isFile(outcome) ? () => tree.isCurrent() && outcome.isCurrent() : null;
}

function isFile(outcome: Body | TreeBody | Refusal | null): outcome is TreeBody {
  return outcome !== null && "isCurrent" in outcome;
}

/**
 * Null when the tree lacks a file that every tree has: it is being built for the first time. And for a file that a power
 * failure has emptied or cut.
 */
async function answerFromTree(
  request: ApiRequest,
  tree: AppTree,
  plan: Plan,
  shape: FreeShape,
): Promise<Body | TreeBody | Refusal | null> {
  const type = "type" in plan ? plan.type : undefined;
  const address = addressOf(request, shape, type);
  const body = address === null ? null : await tree.read(address);
  if (body !== null) return isWholeBody(body.bytes) ? body : null;
  if (plan.kind === "entry") return entryNotFound();
  if (plan.kind !== "list" || shape === "sort") return null;
  if (shape === "filter") return empty(plan.page, defaultPerPage(plan.type), 0);
  const first = await tree.read({ kind: "page", slug: plan.type.slug, page: 1n });
  if (first === null || !isWholeBody(first.bytes)) return null;
  const { per_page, total } = metaOf(first);
  return empty(plan.page, per_page, total);
}

/** A page behind the last, or a filter that nothing matches: no file holds it, and none is needed. */
function empty(page: bigint, perPage: number, total: number): Body {
  return bodyOf(listBody([], { page, perPage, total }));
}

/** Both of one file: a build replaces it before the app is another. */
function metaOf({ bytes }: Body): { readonly per_page: number; readonly total: number } {
  return (JSON.parse(bytes.toString()) as { meta: { per_page: number; total: number } }).meta;
}

/** What an effect may throw, as a refusal. */
async function guarded<T>(sources: Sources, effect: () => Promise<T>): Promise<T | Refusal> {
  try {
    return await effect();
  } catch (error) {
    if (error instanceof ClientGone) throw error;
    if (error instanceof DatabaseFault) return FAULTS[error.reason];
    sources.onError(error);
    return INTERNAL_ERROR;
  }
}

const FAULTS: Record<FaultReason, Refusal> = {
  unavailable: DATABASE_UNAVAILABLE,
  timeout: QUERY_TIMEOUT,
  overloaded: OVERLOADED,
};
