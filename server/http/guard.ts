/** Guards the HTTP server: passes requests to the app, refuses malformed ones, and limits connections. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { methodNotAllowed, type Refusal } from "../../shared/refusal.ts";
import {
  acceptingConnection,
  type Begin,
  beginInTurn,
  type Connection,
  closeAfter,
  finishWith,
  openConnection,
} from "./connection.ts";
import { faultOf, inspect, type ParseError } from "./fault.ts";
import { type HttpRequest, readHttpRequest } from "./http-request.ts";
import type { Limits } from "./limits.ts";
import { type Observe, observationOf } from "./observation.ts";
import { readyRefusal, send } from "./ready.ts";
import { requestIdOf } from "./request-id.ts";

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

export type GuardOptions = {
  /** Answers the requests that are not refused here. */
  readonly app: RequestListener;
  readonly limits: Limits;
  /** Called for each request that is refused here; null when nothing observes requests. */
  readonly observe: Observe | null;
};

/** Returns the set of open connections, which stays current. */
export function guardServer(server: Server, { app, limits, observe }: GuardOptions): ReadonlySet<Connection> {
  const open = new Set<Connection>();

  const begin: Begin = (connection, { incoming, outgoing }) => {
    const found = inspect(incoming);
    // The connection takes no more requests after this one: only the client says where a body ends, and what follows
    // may be a request that nobody meant to send (request smuggling).
    if (found !== null) closeAfter(connection, outgoing, limits.linger);
    if (found === null || found === "body") app(incoming, outgoing);
    else refuse(outgoing, found, readHttpRequest(incoming));
  };

  function onConnection(socket: Socket): void {
    if (open.size >= limits.connections) return void socket.destroy();
    const connection = openConnection(socket);
    open.add(connection);
    socket.once("close", () => open.delete(connection));
  }

  function onRequest(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = acceptingConnection(incoming.socket);
    if (connection !== null) beginInTurn(connection, { incoming, outgoing }, begin, limits);
    // Further requests would wait in memory until the last answer has been sent, so reading is paused. This runs in
    // setImmediate because node:http resumes reading after each request.
    else setImmediate(() => incoming.socket.pause());
  }

  /** Handles input that node:http cannot parse, and its timeouts. */
  function onUnreadable(error: ParseError, socket: Socket): void {
    const refusal = faultOf(error, limits.headers / 1_000);
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
    const start = performance.now();
    const id = requestIdOf(request.requestId, request.appKey);
    const client = outgoing.req.socket.remoteAddress;
    const ready = readyRefusal(refusal, null);
    send(outgoing, ready, id);
    observe?.(observationOf({ id, client, start }, request, ready, null));
  }

  const stallCheck = setInterval(() => limitStalled(open, limits.stall), STALL_CHECK_INTERVAL).unref();
  server.once("close", () => clearInterval(stallCheck));
  server.on("connection", onConnection);
  // The header `Expect` changes nothing, because no body is waited for.
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, onRequest);
  server.on("clientError", onUnreadable);
  server.on("connect", onConnect);
  return open;
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
