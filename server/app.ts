/** Answers API requests from memory, tree or database, and counts the metered ones before their answers are sent. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { H3, toNodeHandler } from "h3";
import { targetOfTreePath } from "../shared/api/address.ts";
import { bodyAnswer, type CachePolicy, type Coding, type RequestContext } from "../shared/api/answer.ts";
import { DATABASE_UNAVAILABLE, INTERNAL_ERROR, OVERLOADED } from "../shared/api/errors.ts";
import { ClientGone, type Found, type Reply, renderReply, respond, type Sources } from "../shared/api/respond.ts";
import { type Hit, type Hits, isNotModified } from "./cache.ts";
import { signalGone } from "./http/connection.ts";
import { type EncodedResponse, encodeRefusal, encodeResponse, openCoder, send } from "./http/encode.ts";
import { type Arrival, describeExchange, noteArrival, type Observe, readHttpRequest } from "./http/observe.ts";
import type { Ledger } from "./ledger/ledger.ts";

type AppOptions = {
  readonly sources: Sources;
  /** Whether a live request was refused at once within the last second. */
  readonly isRefusing: () => boolean;
  readonly hits: Hits;
  readonly ledger: Ledger;
  readonly policy: CachePolicy;
  /** Whether a request for a tree file's path is answered like the API request whose answer that file holds. */
  readonly treePaths?: boolean;
  /** Called for every request once it is answered or its client has gone; null when nothing observes requests. */
  readonly observe: Observe | null;
};

/**
 * `response` is null when the client has gone away. `context` is null when the app is not known, for a preflight,
 * after an unexpected error, and when the client went away while it waited for the database.
 */
type Answered = { readonly response: EncodedResponse | null; readonly context: RequestContext | null };

/**
 * Number of requests not answered from memory that begin in one turn of the event loop. While live requests are being
 * refused, fewer begin, so that answers from memory wait less. The extra turns cost each request a fifth more time,
 * which is acceptable for refused ones.
 */
const STARTS_PER_TURN = 8;
const STARTS_WHILE_REFUSING = 2;

type NodeRuntime = { readonly node: { readonly req: IncomingMessage; readonly res: ServerResponse } };

/** What a handler returns to h3 when it has sent its answer itself. */
const SENT = Symbol.for("h3.handled");

export function createApp(options: AppOptions): RequestListener {
  const { sources, isRefusing, hits, ledger, policy, treePaths = false, observe } = options;
  const coder = openCoder();
  const yieldFairly = openFairScheduling(() => (isRefusing() ? STARTS_WHILE_REFUSING : STARTS_PER_TURN));
  /** Of the requests that h3 is given: its handlers get nothing but the request itself. */
  const arrivals = new WeakMap<IncomingMessage, Arrival>();
  // A middleware, because h3's router normalises paths, and the contract (section 3) normalises nothing.
  const app = new H3({ silent: true, allowMalformedURL: true, onError: sources.onError }).use(async ({ runtime }) => {
    const { req, res } = (runtime as NodeRuntime).node;
    const arrival = arrivals.get(req) as Arrival;
    finish(arrival, res, await answerOrError(arrival, req));
    return SENT;
  });
  const viaH3 = toNodeHandler(app);

  /** The way of a request that memory has no answer to. */
  async function answer({ request, start }: Arrival, incoming: IncomingMessage): Promise<Answered> {
    const coding = coder.choose(request.acceptEncoding);
    await yieldFairly();
    const reply = await respond({ ...request, gone: () => signalGone(incoming.socket), since: start }, sources);
    // Many requests may resume at the same moment, because they shared a query or a time limit, so they yield again.
    // OVERLOADED refusals do not: most are given without waiting, and they are cheap to send.
    if (!isOverloadRefusal(reply)) await yieldFairly();
    const coded = reply.kind === "found" ? { ...reply, body: await coder.encode(reply.body, coding) } : reply;
    const kept = coded.kind === "found" ? keepHit(request, coding, coded) : null;
    return kept === null ? count(encode(coded, request.ifNoneMatch)) : answerFrom(kept, request.ifNoneMatch);
  }

  /** Only free answers of the tree whose age can be checked are kept, because a hit is never counted. */
  function keepHit({ appKey, target }: Arrival["request"], coding: Coding | null, found: Found): Hit | null {
    const { body, context, isCurrent } = found;
    if (isCurrent === null || appKey === undefined) return null;
    const encodeFor = (ifNoneMatch?: string) => encodeResponse(bodyAnswer(body, context, policy, ifNoneMatch));
    const hit = { isCurrent, etag: body.etag, context, found: encodeFor(), notModified: encodeFor(body.etag) };
    hits.keep({ appKey, target, coding }, hit);
    return hit;
  }

  function encode(reply: Reply, ifNoneMatch: string | undefined): Answered {
    const context = reply.kind === "preflight" ? null : reply.context;
    const response =
      reply.kind === "refused"
        ? encodeRefusal(reply.refusal, context, policy.tagged)
        : encodeResponse(renderReply(reply, policy, ifNoneMatch));
    return { response, context };
  }

  /** A request whose count does not reach the disk is not answered: the client gets a 503 instead. */
  async function count(answered: Answered): Promise<Answered> {
    const { response, context } = answered;
    if (response === null || context === null || !context.price.counted) return answered;
    const { appKey: app, price, freeEquivalent, used } = context;
    const { shape } = price;
    if (await ledger.count({ app, shape, status: response.status, saving: freeEquivalent?.text ?? "", ...used }))
      return answered;
    const uncounted = { ...context, price: { ...price, counted: false } };
    return { response: encodeRefusal(DATABASE_UNAVAILABLE, uncounted), context: uncounted };
  }

  async function answerOrError(arrival: Arrival, incoming: IncomingMessage): Promise<Answered> {
    try {
      return await answer(arrival, incoming);
    } catch (error) {
      if (error instanceof ClientGone) return { response: null, context: null };
      sources.onError(error);
      return { response: encodeRefusal(INTERNAL_ERROR, null), context: null };
    }
  }

  function finish(arrival: Arrival, outgoing: ServerResponse, { response, context }: Answered): void {
    const given = outgoing.req.socket.destroyed ? null : response;
    if (given !== null) send(outgoing, given, arrival.id);
    observe?.(describeExchange(arrival, given, context));
  }

  function arrive(incoming: IncomingMessage): Arrival {
    const request = readHttpRequest(incoming);
    if (!treePaths) return noteArrival(incoming, request);
    return noteArrival(incoming, { ...request, target: targetOfTreePath(request.target, request.appKey) });
  }

  return (incoming, outgoing) => {
    const arrival = arrive(incoming);
    const hit = findHit(arrival);
    if (hit !== null) return finish(arrival, outgoing, answerFrom(hit, arrival.request.ifNoneMatch));
    arrivals.set(incoming, arrival);
    viaH3(incoming, outgoing);
  };

  function findHit({ request: { method, target, appKey, acceptEncoding } }: Arrival): Hit | null {
    if (appKey === undefined || (method !== "GET" && method !== "HEAD")) return null;
    return hits.find({ appKey, target, coding: coder.choose(acceptEncoding) });
  }
}

function isOverloadRefusal(reply: Reply): boolean {
  return reply.kind === "refused" && reply.refusal === OVERLOADED;
}

function answerFrom(hit: Hit, ifNoneMatch: string | undefined): Answered {
  const { found, notModified, context } = hit;
  return { response: isNotModified(hit, ifNoneMatch) ? notModified : found, context };
}

// Schedules fairly: requests that are not answered from memory begin a few at a time, after everything else that arrived
// with them. An answer that is ready never waits behind a crowd of others.

/** Lets others go first. Resolves in the order of the calls. */
export type YieldFairly = () => Promise<void>;

/** `most` returns how many may begin in one turn of the event loop. */
export function openFairScheduling(most: () => number): YieldFairly {
  const waiting: (() => void)[] = [];

  function begin(): void {
    for (const go of waiting.splice(0, most())) go();
    if (waiting.length > 0) setImmediate(begin);
  }

  return () => {
    // Runs at the end of this turn of the event loop, after the requests that are read in it.
    if (waiting.length === 0) setImmediate(begin);
    return new Promise((resolve) => waiting.push(resolve));
  };
}
