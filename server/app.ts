/** The door: a node:http request goes in, its answer goes out, and what is counted is counted before it leaves. */
import type { RequestListener, ServerResponse } from "node:http";
import { type Answer, bodyAnswer, type CachePolicy, type Coding, refusalAnswer } from "../shared/answer.ts";
import { databaseUnavailable, internalError } from "../shared/refusal.ts";
import { answerOf, ClientGone, type Found, respond, type Sources } from "../shared/respond.ts";
import { type AskedHttp, readAsked } from "./asked.ts";
import { openCoder } from "./coding.ts";
import { departureOf } from "./departure.ts";
import { type Hit, type HitKey, type Hits, hitBody, isNotModified, type RawHeaders } from "./hits.ts";
import type { Ledger } from "./ledger.ts";

export type AppOptions = {
  readonly sources: Sources;
  readonly hits: Hits;
  readonly ledger: Ledger;
  readonly policy: CachePolicy;
};

export function createApp({ sources, hits, ledger, policy }: AppOptions): RequestListener {
  const coder = openCoder();

  async function answer(asked: AskedHttp, coding: Coding | null, gone: () => AbortSignal): Promise<Answer> {
    const found = await respond({ ...asked, gone }, sources);
    const response = found.kind === "found" ? await encode(found, coding) : found;
    if (response.kind === "found") keepHit({ ...asked, coding }, response);
    const answer = answerOf(response, policy, asked.ifNoneMatch);
    if (response.kind === "preflight" || !response.circumstances?.metering.counted) return answer;
    const { appKey, metering, saving } = response.circumstances;
    const count = { app: appKey, shape: metering.shape, status: answer.status, saving: saving?.text ?? "" };
    // What cannot be counted is not given: without circumstances, for nothing was counted.
    return (await ledger.count(count)) ? answer : refusalAnswer(databaseUnavailable(), null);
  }

  async function encode(found: Found, coding: Coding | null): Promise<Found> {
    return { ...found, body: await coder.encode(found.body, coding) };
  }

  function keepHit(asked: Omit<HitKey, "appKey">, { body, circumstances, isCurrent }: Found): void {
    if (isCurrent === null) return;
    const { headers } = bodyAnswer(body, circumstances, policy, undefined);
    const { headers: notModified } = bodyAnswer(body, circumstances, policy, body.etag);
    hits.keep(
      { ...asked, appKey: circumstances.appKey },
      {
        isCurrent,
        etag: body.etag,
        headers: rawOf(headers, body.bytes),
        notModified: rawOf(notModified),
        body: hitBody(body.bytes),
      },
    );
  }

  return (incoming, outgoing) => {
    const asked = readAsked(incoming);
    const coding = coder.choose(asked.acceptEncoding);
    const hit = findHit(hits, asked, coding);
    if (hit !== null) return sendHit(outgoing, hit, asked);
    answer(asked, coding, () => departureOf(incoming.socket))
      .catch((error: unknown) => {
        if (error instanceof ClientGone) return null;
        sources.onError(error);
        return refusalAnswer(internalError(), null);
      })
      .then((result) => result !== null && send(outgoing, result))
      .catch(sources.onError);
  };
}

function findHit(hits: Hits, { method, target, appKey }: AskedHttp, coding: Coding | null): Hit | null {
  if (appKey === undefined || (method !== "GET" && method !== "HEAD")) return null;
  return hits.find({ appKey, target, coding });
}

/** Node leaves the body of an answer to HEAD away by itself. */
function sendHit(outgoing: ServerResponse, hit: Hit, { ifNoneMatch }: AskedHttp): void {
  if (isNotModified(hit, ifNoneMatch)) outgoing.writeHead(304, hit.notModified as string[]).end();
  else outgoing.writeHead(200, hit.headers as string[]).end(hit.body, "latin1");
}

function send(outgoing: ServerResponse, { status, headers, body }: Answer): void {
  outgoing.writeHead(status, rawOf(headers, body) as string[]).end(body ?? undefined);
}

/** A body comes with its length. */
function rawOf(headers: Answer["headers"], body: Answer["body"] = null): RawHeaders {
  const raw = Object.entries(headers).flat();
  return body === null ? raw : [...raw, "Content-Length", String(Buffer.byteLength(body))];
}
