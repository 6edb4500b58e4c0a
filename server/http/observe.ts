/** What is known of a request over HTTP: what its answer depends on, its id, and what log and metrics are told of it. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RequestContext } from "../../shared/api/answer.ts";
import type { Shape } from "../../shared/api/pricing.ts";
import type { EncodedResponse } from "./encode.ts";

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

// Chooses the id of a request: the one that the client sent, or a new UUID. It is in the answer and in the log.

/** Only characters that have no special meaning in a header, a log line or a terminal. */
const ACCEPTED = /^[A-Za-z0-9._~:/+=@-]{1,128}$/;

export function chooseRequestId(given: string | undefined): string {
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

/** A request from its arrival on. */
export type Arrival = {
  readonly request: HttpRequest;
  readonly id: string;
  readonly client: string | undefined;
  readonly start: number;
};

/** The address is read now, because a closed connection has none. */
export function noteArrival(incoming: IncomingMessage, request = readHttpRequest(incoming)): Arrival {
  return {
    request,
    id: chooseRequestId(request.requestId),
    client: incoming.socket.remoteAddress,
    start: performance.now(),
  };
}

/** `response` is null when the client has gone away, `context` as in app.ts. */
export function describeExchange(
  { request, id, client, start }: Arrival,
  response: EncodedResponse | null,
  context: RequestContext | null,
): Observation {
  return {
    id,
    client,
    start,
    method: request.method,
    target: request.target,
    appKey: request.appKey,
    status: response === null ? CLIENT_GONE : response.status,
    shape: context === null ? null : context.price.shape,
    counted: context?.price.counted ?? false,
    source: context === null ? "none" : context.fromTree ? "tree" : "live",
    bytes: request.method === "HEAD" ? 0 : (response?.body?.length ?? 0),
  };
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
