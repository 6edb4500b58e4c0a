/** Listens for HTTP requests, and stops without losing any: open ones are finished, and no new ones are taken. */
import cluster from "node:cluster";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Listener } from "listhen";
import {
  MAX_HEADERS,
  MAX_HEADERS_SIZE,
  MAX_TARGET_SIZE,
  methodNotAllowed,
  type Refusal,
} from "../../shared/api/errors.ts";
import {
  acceptingConnection,
  type Begin,
  beginInTurn,
  type Connection,
  type ConnectionCounts,
  type Connections,
  closeAfter,
  closeWithLinger,
  finish,
  finishWith,
  type Limits,
  openConnections,
  reset,
} from "./connection.ts";
import { encodeRefusal, send } from "./encode.ts";
import { inspect, type ParseError, refuseParseError } from "./malformed.ts";
import { describeExchange, type HttpRequest, noteArrival, type Observe, readHttpRequest } from "./observe.ts";

export type Listening = { readonly url: string; readonly stop: () => Promise<void> };

export async function listen(
  app: RequestListener,
  host: string,
  port: number,
  limits: Limits = LIMITS,
  observe: Observe | null = null,
  warn: (text: string) => void = () => {},
): Promise<Listening & { readonly connections: () => ConnectionCounts }> {
  const server = createServer({
    headersTimeout: limits.headers,
    requestTimeout: limits.request,
    keepAliveTimeout: limits.idle,
    connectionsCheckingInterval: Math.min(1_000, limits.headers),
    // Three times what is allowed, so that a request that is too large reaches the check in malformed.ts, which says what
    // is too long. Less than node:http reads at once: of an even larger request, the first read shows whether the
    // target is too long.
    maxHeaderSize: MAX_TARGET_SIZE + 2 * MAX_HEADERS_SIZE,
    requireHostHeader: false,
  });
  // One more than allowed: node:http silently drops the headers beyond this number.
  server.maxHeadersCount = MAX_HEADERS + 1;
  const { open, counts } = guardServer(server, { app, limits, observe, warn });
  return {
    url: await listenOn(server, host, port),
    stop: () => drain(server, open, limits.drain),
    connections: counts,
  };
}

/**
 * Finishes open requests and closes all connections, after `time` milliseconds by force. `server.close` alone keeps
 * connections that never sent a request, and goes on serving those that were busy when it was called.
 */
function drain(server: Server, open: ReadonlySet<Connection>, time: number): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => {
      for (const { socket } of open) socket.destroy();
    }, time);
    // node:http takes a connection for idle, and would close it, once it holds the whole answer, even if the client has
    // not received all of it.
    server.closeIdleConnections = () => {};
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    for (const connection of open) finish(connection);
  });
}

// Makes a server listen on a port, and returns its URL.

/**
 * Resolves to the server's URL, and opens it in the browser if `opens`. Throws the system's error (such as EADDRINUSE)
 * when it cannot listen there.
 */
export async function listenOn(server: Server, host: string, port: number, opens = false): Promise<string> {
  const listener = await openPort(host, port);
  const opened = listener?.server ?? null;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    if (opened === null) server.listen(port, host, resolve);
    else server.listen(opened, resolve);
  });
  if (opens) await listener?.open();
  const { address, family, port: bound } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`;
}

/** Hosts that listhen takes. It would listen on localhost in place of any other. */
const LISTHEN_HOST = /^(?!-)[\d.:A-Za-z-]{1,63}(?<!-)$/;
/** listhen prints nothing, opens no browser, and leaves signals to the program. */
const QUIET = { isProd: true, isTest: true, showURL: false, autoClose: false } as const;

/**
 * Opens the port with listhen, and returns the server that holds it. Another server takes its port over, because the
 * limits of a server are set when it is created, and listhen creates one without any. Null when node:http has to open
 * the port, or to say why it cannot be opened: the errors of listhen have no code.
 */
async function openPort(host: string, port: number): Promise<Listener | null> {
  // To find out whether a port is free, listhen opens and closes it, but a worker shares its port with others.
  if (cluster.isWorker || !LISTHEN_HOST.test(host)) return null;
  const listhen = await import("listhen");
  const asked = { port, random: port === 0 };
  const opened = await listhen.listen(() => {}, { ...QUIET, hostname: host, port: asked }).catch(() => null);
  if (opened === null || port === 0 || opened.address.port === port) return opened;
  // It opens 3000 in place of a port that browsers refuse, such as 6000.
  await opened.close();
  return null;
}

// Guards the HTTP server: passes requests to the app, refuses malformed ones, and limits connections.

/** Stands for a request that could not be parsed. */
const UNREADABLE: HttpRequest = {
  method: "-",
  target: "-",
  appKey: undefined,
  ifNoneMatch: undefined,
  acceptEncoding: undefined,
  requestId: undefined,
};

/** Milliseconds between two checks for stalled clients. */
const STALL_CHECK_INTERVAL = 1_000;

type GuardOptions = {
  /** Answers the requests that are not refused here. */
  readonly app: RequestListener;
  readonly limits: Limits;
  /** Called for each request that is refused here; null when nothing observes requests. */
  readonly observe: Observe | null;
  /** Called when all connections are in use. */
  readonly warn: (text: string) => void;
};

function guardServer(server: Server, { app, limits, observe, warn }: GuardOptions): Connections {
  const connections = openConnections(limits.connections, warn);

  const begin: Begin = (connection, { incoming, outgoing }) => {
    const found = inspect(incoming);
    // The connection takes no more requests after this one: only the client says where a body ends, and what follows
    // may be a request that nobody meant to send (request smuggling).
    if (found !== null) closeAfter(connection, outgoing, limits.linger);
    if (found === null || found === "body") app(incoming, outgoing);
    else refuse(outgoing, found, readHttpRequest(incoming));
  };

  function onConnection(socket: Socket): void {
    if (connections.admit(socket) === null) socket.destroy();
  }

  /** Closes a connection whose client reads nothing, or that has been idle for too long. */
  function onTimeout(socket: Socket): void {
    if (socket.writableLength > 0) reset(socket);
    else closeWithLinger(socket, limits.linger);
  }

  function onRequest(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = acceptingConnection(incoming.socket);
    if (connection !== null)
      beginInTurn(connection, { incoming, outgoing }, begin, limits, shareWaiting(limits, connections.open.size));
    // Further requests would wait in memory until the last answer has been sent, so reading is paused. This runs in
    // setImmediate because node:http resumes reading after each request.
    else setImmediate(() => incoming.socket.pause());
  }

  /** Handles input that node:http cannot parse, and its timeouts. */
  function onUnreadable(error: ParseError, socket: Socket): void {
    const refusal = refuseParseError(error, limits.headers / 1_000);
    const connection = acceptingConnection(socket);
    // A client that has sent nothing needs no answer.
    if (refusal === null || socket.bytesRead === 0) socket.destroy();
    // Input behind a request with `Connection: close` is ignored: the answer to that request ends the connection.
    else if (connection !== null && error.code !== "HPE_CLOSED_CONNECTION") refuseRest(connection, refusal);
  }

  /** Refuses CONNECT, for which node:http hands over the socket so that the server can act as a proxy. */
  function onConnect({ method = "CONNECT" }: IncomingMessage, socket: Socket): void {
    socket.on("error", () => socket.destroy());
    const connection = acceptingConnection(socket);
    if (connection === null) socket.destroy();
    else refuseRest(connection, methodNotAllowed(method));
  }

  function refuseRest(connection: Connection, refusal: Refusal): void {
    finishWith(connection, limits.linger, (outgoing) => refuse(outgoing, refusal, UNREADABLE));
  }

  function refuse(outgoing: ServerResponse, refusal: Refusal, request: HttpRequest): void {
    const arrival = noteArrival(outgoing.req, request);
    const response = encodeRefusal(refusal, null);
    send(outgoing, response, arrival.id);
    observe?.(describeExchange(arrival, response, null));
  }

  const stallCheck = setInterval(() => limitStalled(connections.open, limits.stall), STALL_CHECK_INTERVAL).unref();
  server.once("close", () => clearInterval(stallCheck));
  server.on("connection", onConnection);
  server.on("timeout", onTimeout);
  // The header `Expect` changes nothing, because no body is waited for.
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, onRequest);
  server.on("clientError", onUnreadable);
  server.on("connect", onConnect);
  return connections;
}

/**
 * Disconnects clients that stop reading: sets a timeout on sockets with unsent bytes. Nearly every answer is sent at
 * once; a timer for each, as `server.timeout` has it, costs a twentieth of an answer from memory. Node restarts the
 * timeout whenever the client takes bytes, and ends it when the answer has been sent.
 */
function limitStalled(open: ReadonlySet<Connection>, stall: number): void {
  for (const { socket } of open) {
    if (socket.writableLength > 0 && socket.timeout !== stall) socket.setTimeout(stall);
  }
}

// Limits of HTTP connections: how long clients may take, and how much they may send ahead.

export const LIMITS: Limits = {
  // A phone that changes networks in the middle of a request needs seconds; no client needs more.
  headers: 10_000,
  // Bodies are not waited for; this only limits how long a body, which is discarded, may take to arrive.
  request: 15_000,
  // Load balancers keep connections for 60 seconds (AWS, nginx, HAProxy). If the server closed first, a request that
  // the load balancer has just sent would be lost.
  idle: 65_000,
  // Longer than any live query, during which no byte is sent.
  stall: 20_000,
  // A connection that is closed with unread input is reset, and the client may never see why it was refused.
  linger: 2_000,
  drain: 10_000,
  // Each uses a file descriptor, and the tree and the ledger need some as well.
  connections: 10_000,
  // More than any client needs. Each waiting request is held in memory.
  pipelined: 100,
  // About 40 MB of requests, besides the few that each connection may always have.
  waiting: 10_000,
  // What a client does not read is held in the system's memory, up to several megabytes for each connection.
  unread: 262_144,
};

/** Number of pipelined requests that each connection may always have waiting. */
const FEW = 8;

/** How many pipelined requests of a connection may wait while so many are open. */
function shareWaiting({ pipelined, waiting }: Limits, open: number): number {
  return Math.min(pipelined, Math.max(FEW, Math.floor(waiting / open)));
}

/** Share that one of several workers has of a limit for all of them: at least 1, unless `total` is 0. */
export function shareLimit(total: number, workers: number): number {
  return Math.max(Math.min(1, total), Math.floor(total / workers));
}
