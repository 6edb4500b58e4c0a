/**
 * Joins the pipeline from a raw request to its answer. The answer comes from the tree when the shape is free and the
 * app has a tree, otherwise from the database.
 */
import { DatabaseFault, type FaultReason } from "../database/errors.ts";
import { type Address, findAddress } from "./address.ts";
import {
  type Answer,
  type Body,
  bodyAnswer,
  type CachePolicy,
  isWholeBody,
  listBody,
  makeBody,
  preflightAnswer,
  type RequestContext,
  refusalAnswer,
} from "./answer.ts";
import { APP_KEY, type App, type ContentType, defaultPerPage, findType } from "./catalog.ts";
import {
  DATABASE_UNAVAILABLE,
  entryNotFound,
  INTERNAL_ERROR,
  isRefusal,
  isTemporary,
  OVERLOADED,
  QUERY_TIMEOUT,
  type Refusal,
  unknownAppKey,
} from "./errors.ts";
import { type Plan, planRequest } from "./plan.ts";
import {
  type FreeEquivalent,
  type FreeShape,
  findFreeEquivalent,
  isCountedShape,
  nameUsed,
  type Price,
  priceRequest,
  type UsedNames,
} from "./pricing.ts";
import { type ApiRequest, type RawRequest, readRequest } from "./request.ts";
import { findWarning } from "./warning.ts";

/** The client has disconnected, so nobody waits for the answer. */
export class ClientGone extends Error {
  constructor() {
    super("the client has gone away");
    this.name = "ClientGone";
  }
}

/**
 * Where answers come from. `answer` and `findApp` query the database. They may throw a DatabaseFault, or ClientGone
 * when the signal `gone` is aborted.
 */
export type Sources = {
  /** Null when the app has no tree. */
  readonly findTree: (appKey: string) => Promise<AppTree | null>;
  /** Null when no app has this key. */
  readonly findApp: (appKey: string, gone: AbortSignal) => Promise<App | null>;
  /** `since` is as in IncomingRequest. */
  readonly answer: (app: App, plan: Plan, gone: AbortSignal, since?: number) => Promise<Body | Refusal>;
  /** Absent when resolved requests are not remembered. */
  readonly resolvedRequests?: ResolvedRequests;
  /** Called with the error that causes a 500. */
  readonly onError: (error: unknown) => void;
};

/** Remembers resolved requests. One is valid only as long as its app is the same object. */
export type ResolvedRequests = {
  readonly find: (raw: RawRequest) => ResolvedRequest | null;
  readonly keep: (raw: RawRequest, resolved: ResolvedRequest) => void;
};

export type Reply =
  | { readonly kind: "preflight" }
  /** `context` is null when the app is unknown: such requests are never counted. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly context: RequestContext | null }
  | Found;

export type Found = {
  readonly kind: "found";
  readonly body: Body;
  readonly context: RequestContext;
  /** While this returns true, the same target has the same answer. Null when that cannot be checked. */
  readonly isCurrent: CurrentCheck | null;
};

/**
 * `gone` returns a signal that aborts when the client disconnects; it is called only when the database is needed.
 * `since` is the performance.now() at which the request arrived: the time limit of a live query runs from there, or
 * else from its start.
 */
type IncomingRequest = RawRequest & { readonly gone?: () => AbortSignal; readonly since?: number };

/** How often a request starts over because a build has replaced the tree meanwhile. */
const MAX_RESTARTS = 3;

/** Throws ClientGone when the client has disconnected. */
export function respond(raw: IncomingRequest, sources: Sources): Promise<Reply> {
  return respondFrom(raw, sources, MAX_RESTARTS);
}

async function respondFrom(raw: IncomingRequest, sources: Sources, restartsLeft: number): Promise<Reply> {
  const { gone = neverGone, since } = raw;
  const before = sources.resolvedRequests?.find(raw) ?? null;
  const request = before?.request ?? readRequest(raw);
  if (request.kind === "preflight") return request;
  if (isRefusal(request)) return { kind: "refused", refusal: request, context: null };
  const known = await guarded(sources, () => findApp(request.appKey, sources, gone));
  if (isRefusal(known)) return { kind: "refused", refusal: known, context: null };

  const { app, tree } = known;
  const resolved = before?.app === app ? before : resolveRequest(app, request);
  const { price, freeEquivalent, used, warning, plan } = resolved;
  const result = isRefusal(plan)
    ? { outcome: plan, fromTree: tree !== null, isCurrent: null }
    : await answerPlan(resolved, plan, tree, { sources, gone, since, isLast: restartsLeft === 0 });
  if (result === null) return respondFrom(raw, sources, restartsLeft - 1);
  const { outcome, fromTree, isCurrent } = result;
  // Resolved requests that the server turns away would displace those of requests that it answers.
  if (resolved !== before && !(isRefusal(outcome) && isTemporary(outcome)))
    sources.resolvedRequests?.keep(raw, resolved);
  const { route } = request;
  const type = route.kind === "catalog" ? null : route.slug;
  const context = { appKey: app.key, type, price, freeEquivalent, used, fromTree, warning };
  return isRefusal(outcome)
    ? { kind: "refused", refusal: outcome, context }
    : { kind: "found", body: outcome, context, isCurrent };
}

/** The HTTP answer that carries the reply. */
export function renderReply(reply: Reply, policy: CachePolicy, ifNoneMatch: string | undefined): Answer {
  switch (reply.kind) {
    case "preflight":
      return preflightAnswer();
    case "refused":
      return refusalAnswer(reply.refusal, reply.context, policy.tagged);
    case "found":
      return bodyAnswer(reply.body, reply.context, policy, ifNoneMatch);
  }
}

const neverGone = () => new AbortController().signal;

type KnownApp = { readonly app: App; readonly tree: AppTree | null };
type Result = Pick<Found, "isCurrent"> & { readonly fromTree: boolean; readonly outcome: Body | Refusal };

async function findApp(key: string, sources: Sources, gone: () => AbortSignal): Promise<KnownApp | Refusal> {
  if (!APP_KEY.test(key)) return unknownAppKey(key);
  const tree = await sources.findTree(key);
  if (tree !== null) return { app: tree.app, tree };
  const app = await sources.findApp(key, gone());
  return app === null ? unknownAppKey(key) : { app, tree: null };
}

/** What answerPlan needs besides the plan. `isLast` forbids another start. */
type AnswerContext = {
  readonly sources: Sources;
  readonly gone: () => AbortSignal;
  readonly since: number | undefined;
  readonly isLast: boolean;
};

/** Null when a build has replaced the tree meanwhile, unless `isLast`: the request has to start over. */
async function answerPlan(
  { app, request, price }: ResolvedRequest,
  plan: Plan,
  tree: AppTree | null,
  { sources, gone, since, isLast }: AnswerContext,
): Promise<Result | null> {
  const { shape } = price;
  if (!isCountedShape(shape) && tree !== null) {
    const outcome = await guarded(sources, () => answerFromTree(request, tree, plan, shape));
    // A build may just have deleted the file: then it has already replaced the app's state, which isCurrentOnDisk
    // notices.
    if (!isFile(outcome) && !isLast && !tree.isCurrentOnDisk()) return null;
    if (outcome !== null) return { fromTree: true, outcome, isCurrent: isFile(outcome) ? outcome.isCurrent : null };
  }
  const outcome = await guarded(sources, () => sources.answer(app, plan, gone(), since));
  return { fromTree: false, isCurrent: null, outcome };
}

/** Turns what `effect` throws into a refusal, except ClientGone. */
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

// Answers free requests from the files of an app's tree.

/** Whether what was read from the tree is still what the tree holds. */
export type CurrentCheck = () => boolean;

/** The body that a file of the tree holds. It is current while both the file and the app's state are. */
type TreeBody = Body & { readonly bytes: Buffer; readonly isCurrent: CurrentCheck };

/** An app's part of the tree. It knows the app as it was when the tree was built. */
export type AppTree = {
  readonly app: App;
  /** Checks the disk now: what a body's `isCurrent` returns may lag behind a build for a moment. */
  readonly isCurrentOnDisk: CurrentCheck;
  /** Null when the tree has no such file; "unreadable" when it has one that cannot be read now: the database answers. */
  readonly read: (address: Address) => Promise<TreeBody | null | "unreadable">;
};

/**
 * Null when the tree lacks a file that every complete tree has, when a power failure has left a file empty or cut, or
 * when a file cannot be read: the database then answers.
 */
async function answerFromTree(
  request: ApiRequest,
  tree: AppTree,
  plan: Plan,
  shape: FreeShape,
): Promise<Body | TreeBody | Refusal | null> {
  const type = "type" in plan ? plan.type : undefined;
  const address = findAddress(request, shape, type);
  const body = address === null ? null : await tree.read(address);
  if (body === "unreadable") return null;
  if (body !== null) return isWholeBody(body.bytes) ? body : null;
  if (plan.kind === "entry") return entryNotFound();
  if (plan.kind !== "list" || shape === "sort") return null;
  if (shape === "filter") return emptyList(plan.page, defaultPerPage(plan.type), 0);
  const first = await tree.read({ kind: "page", slug: plan.type.slug, page: 1n });
  if (first === null || first === "unreadable" || !isWholeBody(first.bytes)) return null;
  const { per_page, total } = readMeta(first);
  return emptyList(plan.page, per_page, total);
}

/** The answer to a page behind the last, or to a filter that nothing matches. The tree needs no file for it. */
function emptyList(page: bigint, perPage: number, total: number): Body {
  return makeBody(listBody([], { page, perPage, total }));
}

/**
 * Reads both from one file, and not `per_page` from the app: a build replaces the file before the app's state. Parses
 * only what is behind the entries: all of a long page would hold up other requests for milliseconds.
 */
function readMeta({ bytes }: TreeBody): { readonly per_page: number; readonly total: number } {
  const meta = bytes.toString("utf8", bytes.lastIndexOf('"meta":'));
  return (JSON.parse(`{${meta}`) as { meta: { per_page: number; total: number } }).meta;
}

function isFile(outcome: Body | TreeBody | Refusal | null): outcome is TreeBody {
  return outcome !== null && "isCurrent" in outcome;
}

// Determines what a request means to an app: everything that is known before its answer is.

export type ResolvedRequest = {
  readonly app: App;
  readonly request: ApiRequest;
  /** Undefined for the catalog, and when the app has no such type. */
  readonly type: ContentType | undefined;
  readonly price: Price;
  readonly plan: Plan | Refusal;
  /** How a counted request could have been free; null when it could not, or is free. */
  readonly freeEquivalent: FreeEquivalent | null;
  readonly used: UsedNames;
  /** As in RequestContext. */
  readonly warning: string | null;
};

export function resolveRequest(app: App, request: ApiRequest): ResolvedRequest {
  const type = request.route.kind === "catalog" ? undefined : findType(app, request.route.slug);
  const price = priceRequest(request, type);
  return {
    app,
    request,
    type,
    price,
    plan: planRequest(request, type),
    freeEquivalent: findFreeEquivalent(request, type),
    used: nameUsed(request, type),
    warning: findWarning(request, type),
  };
}
