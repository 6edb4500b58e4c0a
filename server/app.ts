/** The way of a request through the server: what is counted is counted before its answer leaves. */
import type { IncomingMessage, RequestListener } from "node:http";
import { bodyAnswer, type CachePolicy, type Circumstances, type Coding } from "../shared/answer.ts";
import { DATABASE_UNAVAILABLE, INTERNAL_ERROR, OVERLOADED } from "../shared/refusal.ts";
import {
  type Asking,
  answerOf,
  ClientGone,
  type Found,
  type Response,
  respond,
  type Sources,
} from "../shared/respond.ts";
import { targetOfTreePath } from "../shared/tree-path.ts";
import { type AskedHttp, readAsked } from "./http/asked.ts";
import { openCoder } from "./http/coding.ts";
import { departureOf } from "./http/departure.ts";
import { type Observe, observationOf } from "./http/observation.ts";
import { type Ready, readyOf, readyRefusal, send } from "./http/ready.ts";
import { requestIdOf } from "./http/request-id.ts";
import { openTurns } from "./http/turns.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { type Hit, type HitKey, type Hits, isNotModified } from "./memory/hits.ts";

export type AppOptions = {
  readonly sources: Sources;
  /** Whether some live requests are refused at once. */
  readonly isCrowded: () => boolean;
  readonly hits: Hits;
  readonly ledger: Ledger;
  readonly policy: CachePolicy;
  /** Whether paths of the tree are answered as the requests that they stand for. */
  readonly treePaths?: boolean;
  /** Is told of every answer; null where nobody wants to know. */
  readonly observe: Observe | null;
};

/** `circumstances` is null where the app is not known. Without an answer the client has gone away. */
type Answered = { readonly ready: Ready | null; readonly circumstances: Circumstances | null };

/** How many begin in one turn of the event loop. To take more turns costs each a fifth: those who are turned away can pay it. */
const BEGIN = 8;
const BEGIN_OF_CROWD = 2;

const GONE: Answered = { ready: null, circumstances: null };

export function createApp({
  sources,
  isCrowded,
  hits,
  ledger,
  policy,
  treePaths = false,
  observe,
}: AppOptions): RequestListener {
  const coder = openCoder();
  const takeTurn = openTurns(() => (isCrowded() ? BEGIN_OF_CROWD : BEGIN));

  async function answer(
    asked: AskedHttp,
    coding: Coding | null,
    asking: Pick<Asking, "gone" | "since">,
  ): Promise<Answered> {
    await takeTurn();
    const found = await respond({ ...asked, ...asking }, sources);
    // Many may have waited for the same, or for the same five seconds; who is turned away has not.
    if (!isTurnedAway(found)) await takeTurn();
    const response = found.kind === "found" ? await encode(found, coding) : found;
    const hit = response.kind === "found" ? keepHit({ ...asked, coding }, response) : null;
    if (hit !== null) return readyHit(hit, asked);
    const circumstances = response.kind === "preflight" ? null : response.circumstances;
    const ready =
      response.kind === "refused"
        ? readyRefusal(response.refusal, circumstances, policy.tagged)
        : readyOf(answerOf(response, policy, asked.ifNoneMatch));
    if (circumstances === null || (await isCounted(circumstances, ready.status))) return { ready, circumstances };
    // What cannot be counted is not given.
    const uncounted = { ...circumstances, metering: { ...circumstances.metering, counted: false } };
    return { ready: readyRefusal(DATABASE_UNAVAILABLE, uncounted), circumstances: uncounted };
  }

  async function encode(found: Found, coding: Coding | null): Promise<Response> {
    return { ...found, body: await coder.encode(found.body, coding) };
  }

  /** Also true for what need not be counted. */
  async function isCounted({ appKey, metering, saving }: Circumstances, status: number): Promise<boolean> {
    if (!metering.counted) return true;
    return ledger.count({ app: appKey, shape: metering.shape, status, saving: saving?.text ?? "" });
  }

  /** Null for what may be another the next time. Only what is free is kept: a hit is never counted. */
  function keepHit(asked: Omit<HitKey, "appKey">, { body, circumstances, isCurrent }: Found): Hit | null {
    if (isCurrent === null) return null;
    const found = readyOf(bodyAnswer(body, circumstances, policy, undefined));
    const notModified = readyOf(bodyAnswer(body, circumstances, policy, body.etag));
    const hit = { isCurrent, etag: body.etag, circumstances, found, notModified };
    hits.keep({ ...asked, appKey: circumstances.appKey }, hit);
    return hit;
  }

  async function answerAnyway(
    asked: AskedHttp,
    coding: Coding | null,
    incoming: IncomingMessage,
    since: number,
  ): Promise<Answered> {
    try {
      return await answer(asked, coding, { gone: () => departureOf(incoming.socket), since });
    } catch (error) {
      if (error instanceof ClientGone) return GONE;
      sources.onError(error);
      return { ready: readyRefusal(INTERNAL_ERROR, null), circumstances: null };
    }
  }

  return (incoming, outgoing) => {
    const start = performance.now();
    const asked = treePaths ? fromTreePath(readAsked(incoming)) : readAsked(incoming);
    const id = requestIdOf(asked.requestId, asked.appKey);
    const finish = ({ ready, circumstances }: Answered) => {
      const given = incoming.socket.destroyed ? null : ready;
      if (given !== null) send(outgoing, given, id);
      if (observe === null) return;
      const client = incoming.socket.remoteAddress;
      observe(observationOf({ id, start, client }, asked, given, circumstances));
    };
    const coding = coder.choose(asked.acceptEncoding);
    const hit = findHit(hits, asked, coding);
    if (hit === null) answerAnyway(asked, coding, incoming, start).then(finish).catch(sources.onError);
    else finish(readyHit(hit, asked));
  };
}

function isTurnedAway(response: Response): boolean {
  return response.kind === "refused" && response.refusal === OVERLOADED;
}

function fromTreePath(asked: AskedHttp): AskedHttp {
  return { ...asked, target: targetOfTreePath(asked.target, asked.appKey) };
}

function findHit(hits: Hits, { method, target, appKey }: AskedHttp, coding: Coding | null): Hit | null {
  if (appKey === undefined || (method !== "GET" && method !== "HEAD")) return null;
  return hits.find({ appKey, target, coding });
}

function readyHit(hit: Hit, { ifNoneMatch }: AskedHttp): Answered {
  const { found, notModified, circumstances } = hit;
  return { ready: isNotModified(hit, ifNoneMatch) ? notModified : found, circumstances };
}
