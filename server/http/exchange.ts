/** Reads the parts of an HTTP request that its answer depends on. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Answer, type Circumstances, refusalAnswer } from "../../shared/api/answer.ts";
import { isTemporary, type Refusal } from "../../shared/api/errors.ts";
import type { Shape } from "../../shared/api/pricing.ts";
import { release } from "./connection.ts";

export type HttpRequest = {
  readonly method: string;
  readonly target: string;
  readonly appKey: string | undefined;
  readonly ifNoneMatch: string | undefined;
  readonly acceptEncoding: string | undefined;
  readonly requestId: string | undefined;
};

/**
 * Reads the target raw. The URL of a web Request would have dot segments and backslashes normalised, and the contract
 * (section 3) normalises nothing.
 */
export function readHttpRequest({ method = "GET", url = "/", headers }: IncomingMessage): HttpRequest {
  return {
    method,
    target: url,
    appKey: joinRepeated(headers["x-app-key"]),
    ifNoneMatch: headers["if-none-match"],
    acceptEncoding: joinRepeated(headers["accept-encoding"]),
    requestId: joinRepeated(headers["x-request-id"]),
  };
}

/** A repeated header is one list (RFC 9110 section 5.3). Node joins these headers itself, whatever their types say. */
function joinRepeated(header: string | string[] | undefined): string | undefined {
  return typeof header === "object" ? header.join(", ") : header;
}

// Turns an answer into the form in which node:http sends it fastest, and sends it.

export type Ready = {
  readonly status: number;
  /** Names and values alternate, which is the form that node:http processes fastest. */
  readonly headers: readonly string[];
  readonly body: Buffer | null;
};

export function readyOf({ status, headers, body }: Answer): Ready {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const raw: string[] = [];
  for (const [name, value] of Object.entries(headers)) raw.push(name, value);
  if (bytes !== null) raw.push("Content-Length", String(bytes.length));
  return { status, headers: raw, body: bytes };
}

const refusals = new WeakMap<Refusal, Map<string, Ready>>();

/**
 * Builds the answer to a refused request. A temporary refusal (5xx) may go to many clients at once, so its answer is
 * built once for each set of headers that it can have. `circumstances` is null when the app is not known.
 */
export function readyRefusal(refusal: Refusal, circumstances: Circumstances | null, tagged = false): Ready {
  const isSpecial = circumstances === null || circumstances.likeFields.length > 0;
  if (isSpecial || !isTemporary(refusal)) return readyOf(refusalAnswer(refusal, circumstances, tagged));
  const ways = refusals.get(refusal) ?? new Map<string, Ready>();
  const { metering, fromTree } = circumstances;
  const way = `${metering.shape} ${metering.counted} ${fromTree}`;
  const ready = ways.get(way) ?? readyOf(refusalAnswer(refusal, circumstances));
  refusals.set(refusal, ways.set(way, ready));
  return ready;
}

/** Node itself omits the body of an answer to HEAD. */
export function send(outgoing: ServerResponse, { status, headers, body }: Ready, requestId: string): void {
  outgoing.writeHead(status, [...headers, "X-Request-Id", requestId]).end(body ?? undefined);
  release(outgoing);
}

// Chooses the id of a request: the one that the client sent, or a new UUID. It is in the answer and in the log.

/** Only characters that have no special meaning in a header, a log line or a terminal. */
const ACCEPTED = /^[A-Za-z0-9._~:/+=@-]{1,128}$/;

export function requestIdOf(given: string | undefined): string {
  return given !== undefined && ACCEPTED.test(given) ? given : randomUUID();
}

// Describes an answered request as plain data, for the log and the metrics.

/** Where the answer comes from; `none` when the app is not known, or the client did not wait for the database. */
export type AnswerSource = "tree" | "live" | "none";

export type Observation = {
  readonly id: string;
  readonly method: string;
  /** As the client sent it. */
  readonly target: string;
  /** As the client sent it, whether or not an app has this key; undefined when none was sent. */
  readonly appKey: string | undefined;
  readonly client: string | undefined;
  /** 499 when the client went away before there was an answer. */
  readonly status: number;
  /** Null when the app is not known, or the client did not wait for the database. */
  readonly shape: Shape | null;
  readonly counted: boolean;
  readonly source: AnswerSource;
  /** Number of bytes of the body as it is sent, 0 for HEAD. */
  readonly bytes: number;
  /** When the request arrived: a reading of `performance.now()`. */
  readonly start: number;
};

export type Observe = (observation: Observation) => void;

/** Status in the log for a client that did not wait for its answer. */
const CLIENT_GONE = 499;

/** `ready` is null when the client has gone away, `circumstances` as in app.ts. */
export function observationOf(
  about: Pick<Observation, "id" | "client" | "start">,
  { method, target, appKey }: HttpRequest,
  ready: Ready | null,
  circumstances: Circumstances | null,
): Observation {
  return {
    id: about.id,
    client: about.client,
    start: about.start,
    method,
    target,
    appKey,
    status: ready === null ? CLIENT_GONE : ready.status,
    shape: circumstances === null ? null : circumstances.metering.shape,
    counted: circumstances?.metering.counted ?? false,
    source: sourceOf(circumstances),
    bytes: method === "HEAD" ? 0 : (ready?.body?.length ?? 0),
  };
}

function sourceOf(circumstances: Circumstances | null): AnswerSource {
  if (circumstances === null) return "none";
  return circumstances.fromTree ? "tree" : "live";
}

/** Combines observers, of which some may be null, into one function; null when all are null. */
export function combineObservers(...observers: readonly (Observe | null)[]): Observe | null {
  const [first, ...rest] = observers.filter((observer) => observer !== null);
  if (first === undefined) return null;
  const others = combineObservers(...rest);
  if (others === null) return first;
  return (observation) => {
    first(observation);
    others(observation);
  };
}
