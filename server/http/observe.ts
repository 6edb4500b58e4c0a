/** What is known of a request over HTTP: what its answer depends on, its id, and what log and metrics are told of it. */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";
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
  /** The address of the connection. */
  readonly client: string | undefined;
  readonly headers: IncomingHttpHeaders;
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
  readonly headers: IncomingHttpHeaders;
  readonly start: number;
};

/** The address is read now, because a closed connection has none. */
export function noteArrival(incoming: IncomingMessage, request = readHttpRequest(incoming)): Arrival {
  return {
    request,
    id: chooseRequestId(request.requestId),
    client: incoming.socket.remoteAddress,
    headers: incoming.headers,
    start: performance.now(),
  };
}

/** `response` is null when the client has gone away, `context` as in app.ts. */
export function describeExchange(
  { request, id, client, headers, start }: Arrival,
  response: EncodedResponse | null,
  context: RequestContext | null,
): Observation {
  return {
    id,
    client,
    headers,
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

// Turns an observed request into a line of the access log: fields for machines, or a sentence.

type AccessLine = {
  readonly id: string;
  readonly client: string | undefined;
  /** The first characters of the app key. */
  readonly app: string | undefined;
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly shape: string | null;
  readonly counted: boolean;
  readonly source: string;
  /** Milliseconds from the request's arrival until its answer was handed to the system. */
  readonly ms: number;
  readonly bytes: number;
  /** What proxies say of the client, where the connection is that of one which is trusted. */
  readonly forwarded_for: string | undefined;
  readonly referer: string | undefined;
  readonly user_agent: string | undefined;
};

/**
 * Null when `write` is, because the log level leaves requests out: they cost the log nothing then. `proxies` are
 * addresses and ranges of trusted proxies.
 */
export function openAccessLog(
  write: ((line: AccessLine) => void) | null,
  proxies: readonly string[] = [],
): Observe | null {
  if (write === null) return null;
  const isTrusted = proxies.length === 0 ? () => false : readProxies(proxies);
  return (observation) => write(accessLine(observation, isTrusted, performance.now()));
}

type IsTrusted = (address: string) => boolean;

function readProxies(proxies: readonly string[]): IsTrusted {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = "", bits] = proxy.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** An address as proxies write it, perhaps with a port. A socket that takes both families writes IPv4 as IPv6. */
const FORWARDED = /^\s*(?:\[([\dA-Fa-f:.]+)\](?::\d+)?|(\d+(?:\.\d+){3})(?::\d+)?|([\dA-Fa-f:.]+))\s*$/;
const MAPPED = /^::ffff:(?=\d+\.)/i;

/**
 * The last address of the chain that no trusted proxy has: each proxy appends the address from which its connection
 * came, and what stands before that of an unknown one may be made up.
 */
function findClient(address: string, forwarded: string, isTrusted: IsTrusted): string {
  let client = address;
  for (const part of forwarded.split(",").reverse()) {
    const [, bracketed, plain, other] = FORWARDED.exec(part) ?? [];
    const before = bracketed ?? plain ?? other ?? "";
    if (isIP(before) === 0 || !isTrusted(client)) return client;
    client = before.replace(MAPPED, "");
  }
  return client;
}

/** `now` and the start are readings of the same clock, in milliseconds. */
function accessLine(observation: Observation, isTrusted: IsTrusted, now: number): AccessLine {
  const { id, client, headers, appKey, method, target, status, shape, counted, source, bytes, start } = observation;
  const address = client?.replace(MAPPED, "");
  const given = address !== undefined && isTrusted(address) ? joinRepeated(headers["x-forwarded-for"]) : undefined;
  return {
    id,
    client: address === undefined || given === undefined ? client : findClient(address, given, isTrusted),
    app: appKey === undefined ? undefined : beginningOfKey(appKey),
    method,
    target: printTarget(target),
    status,
    shape,
    counted,
    source,
    ms: Math.round((now - start) * 1_000) / 1_000,
    bytes,
    forwarded_for: printHeader(given),
    referer: printHeader(headers.referer),
    user_agent: printHeader(headers["user-agent"]),
  };
}

/** Number of characters of a key that are shown, but at most half of the key. */
const SHOWN_LENGTH = 4;
const MAX_TARGET = 1_024;
/** Node gives each byte of the target as one character, and a terminal might execute some of them as control codes. */
const UNPRINTABLE = /[^\x21-\x7e]/g;

/** The first characters of an app key, which tell an operator's apps apart. */
export function beginningOfKey(key: string): string {
  const shown = key.slice(0, Math.min(SHOWN_LENGTH, key.length >> 1));
  return `${shown.replace(/[^A-Za-z0-9_-]/g, "?")}…`;
}

/** The target as the log shows it: printable ASCII, and not too long. */
export function printTarget(target: string): string {
  const printed = target.replace(UNPRINTABLE, encodeByte);
  return printed.length <= MAX_TARGET ? printed : `${printed.slice(0, MAX_TARGET)}…`;
}

const MAX_HEADER = 256;

/** A header as the log shows it: on one line, without what a terminal would obey, and not too long. */
function printHeader(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const printed = value.slice(0, MAX_HEADER + 1).replace(/[^\x20-\x7e]/g, encodeByte);
  return printed.length <= MAX_HEADER ? printed : `${printed.slice(0, MAX_HEADER)}…`;
}

function encodeByte(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/** The fields that the sentence of `describeLine` already shows. */
export const SHOWN_IN_WORDS: readonly (keyof AccessLine)[] = [
  "method",
  "target",
  "status",
  "ms",
  "source",
  "bytes",
  "shape",
  "counted",
];

/** Null for a line that is not about a request. */
export function describeLine(line: Partial<AccessLine>): string | null {
  const { method, target, status, shape, counted, source, ms, bytes } = line;
  if (method === undefined || status === undefined) return null;
  const meaning = shape === null ? "" : ` ${shape} ${counted ? "counted" : "free"} ${source}`;
  return `${method} ${target} ${status} ${ms} ms ${bytes} bytes${meaning}`;
}
