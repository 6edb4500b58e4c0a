/** Answers API requests from memory, tree or database, and counts metered ones before their answers are sent. */
import type { IncomingMessage, RequestListener } from "node:http";
import { targetOfTreePath } from "../shared/api/address.ts";
import { bodyAnswer, type CachePolicy, type Circumstances, type Coding } from "../shared/api/answer.ts";
import { DATABASE_UNAVAILABLE, INTERNAL_ERROR, OVERLOADED } from "../shared/api/errors.ts";
import {
  answerOf,
  ClientGone,
  type Found,
  type IncomingRequest,
  type Reply,
  respond,
  type Sources,
} from "../shared/api/respond.ts";
import { type Hit, type HitKey, type Hits, isNotModified } from "./cache.ts";
import { goneSignalOf, openTurns } from "./http/connection.ts";
import { openCoder } from "./http/encode.ts";
import {
  type HttpRequest,
  type Observe,
  observationOf,
  type Ready,
  readHttpRequest,
  readyOf,
  readyRefusal,
  requestIdOf,
  send,
} from "./http/exchange.ts";
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
 * `ready` is null when the client has gone away. `circumstances` is null when the app is not known, for a preflight,
 * after an unexpected error, and when the client went away while it waited for the database.
 */
type Answered = { readonly ready: Ready | null; readonly circumstances: Circumstances | null };

/**
 * Number of requests not answered from memory that begin in one turn of the event loop. While live requests are being
 * refused, fewer begin, so that answers from memory wait less. The extra turns cost each request a fifth more time,
 * which is acceptable for refused ones.
 */
const STARTS_PER_TURN = 8;
const STARTS_WHILE_REFUSING = 2;

const GONE: Answered = { ready: null, circumstances: null };

export function createApp({
  sources,
  isRefusing,
  hits,
  ledger,
  policy,
  treePaths = false,
  observe,
}: AppOptions): RequestListener {
  const coder = openCoder();
  const takeTurn = openTurns(() => (isRefusing() ? STARTS_WHILE_REFUSING : STARTS_PER_TURN));

  async function answer(
    request: HttpRequest,
    coding: Coding | null,
    asking: Pick<IncomingRequest, "gone" | "since">,
  ): Promise<Answered> {
    await takeTurn();
    const found = await respond({ ...request, ...asking }, sources);
    // Many requests may resume at the same moment, because they shared a query or a time limit, so they take turns
    // again. OVERLOADED refusals do not: most are given without waiting, and they are cheap to send.
    if (!isOverloadRefusal(found)) await takeTurn();
    const reply = found.kind === "found" ? await encode(found, coding) : found;
    const hit = reply.kind === "found" ? keepHit({ ...request, coding }, reply) : null;
    if (hit !== null) return readyHit(hit, request);
    const circumstances = reply.kind === "preflight" ? null : reply.circumstances;
    const ready =
      reply.kind === "refused"
        ? readyRefusal(reply.refusal, circumstances, policy.tagged)
        : readyOf(answerOf(reply, policy, request.ifNoneMatch));
    if (circumstances === null || (await countIfMetered(circumstances, ready.status))) return { ready, circumstances };
    // A request that cannot be counted is not answered: the client gets a 503 instead.
    const uncounted = { ...circumstances, metering: { ...circumstances.metering, counted: false } };
    return { ready: readyRefusal(DATABASE_UNAVAILABLE, uncounted), circumstances: uncounted };
  }

  async function encode(found: Found, coding: Coding | null): Promise<Reply> {
    return { ...found, body: await coder.encode(found.body, coding) };
  }

  /** Resolves to true when the count is on disk, or when the request need not be counted. */
  async function countIfMetered({ appKey, metering, saving }: Circumstances, status: number): Promise<boolean> {
    if (!metering.counted) return true;
    return ledger.count({ app: appKey, shape: metering.shape, status, saving: saving?.text ?? "" });
  }

  /**
   * Keeps an answer for repeated requests. Null when nothing can tell whether it is still current. Only free answers of
   * the tree can be kept, because a hit is never counted.
   */
  function keepHit(request: Omit<HitKey, "appKey">, { body, circumstances, isCurrent }: Found): Hit | null {
    if (isCurrent === null) return null;
    const found = readyOf(bodyAnswer(body, circumstances, policy, undefined));
    const notModified = readyOf(bodyAnswer(body, circumstances, policy, body.etag));
    const hit = { isCurrent, etag: body.etag, circumstances, found, notModified };
    hits.keep({ ...request, appKey: circumstances.appKey }, hit);
    return hit;
  }

  async function answerOrError(
    request: HttpRequest,
    coding: Coding | null,
    incoming: IncomingMessage,
    since: number,
  ): Promise<Answered> {
    try {
      return await answer(request, coding, { gone: () => goneSignalOf(incoming.socket), since });
    } catch (error) {
      if (error instanceof ClientGone) return GONE;
      sources.onError(error);
      return { ready: readyRefusal(INTERNAL_ERROR, null), circumstances: null };
    }
  }

  return (incoming, outgoing) => {
    const start = performance.now();
    const request = treePaths ? fromTreePath(readHttpRequest(incoming)) : readHttpRequest(incoming);
    const id = requestIdOf(request.requestId);
    // Read now, because a closed connection has no address.
    const client = observe === null ? undefined : incoming.socket.remoteAddress;
    const finish = ({ ready, circumstances }: Answered) => {
      const given = incoming.socket.destroyed ? null : ready;
      if (given !== null) send(outgoing, given, id);
      observe?.(observationOf({ id, start, client }, request, given, circumstances));
    };
    const coding = coder.choose(request.acceptEncoding);
    const hit = findHit(hits, request, coding);
    if (hit === null) answerOrError(request, coding, incoming, start).then(finish).catch(sources.onError);
    else finish(readyHit(hit, request));
  };
}

function isOverloadRefusal(reply: Reply): boolean {
  return reply.kind === "refused" && reply.refusal === OVERLOADED;
}

function fromTreePath(request: HttpRequest): HttpRequest {
  return { ...request, target: targetOfTreePath(request.target, request.appKey) };
}

function findHit(hits: Hits, { method, target, appKey }: HttpRequest, coding: Coding | null): Hit | null {
  if (appKey === undefined || (method !== "GET" && method !== "HEAD")) return null;
  return hits.find({ appKey, target, coding });
}

function readyHit(hit: Hit, { ifNoneMatch }: HttpRequest): Answered {
  const { found, notModified, circumstances } = hit;
  return { ready: isNotModified(hit, ifNoneMatch) ? notModified : found, circumstances };
}
