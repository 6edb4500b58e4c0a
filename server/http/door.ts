/** The door of a server: who may come in, and in which words everybody else is refused. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { methodNotAllowed, type Refusal } from "../../shared/refusal.ts";
import { type AskedHttp, readAsked } from "./asked.ts";
import {
  type Begin,
  type Connection,
  closeBehind,
  finishWith,
  inTurn,
  openConnection,
  takingConnection,
} from "./connection.ts";
import { faultOf, inspect, type ParseError } from "./fault.ts";
import type { Limits } from "./limits.ts";
import { type Observe, observationOf } from "./observation.ts";
import { readyRefusal, send } from "./ready.ts";
import { requestIdOf } from "./request-id.ts";

/** Of a request that cannot be read nothing is known. */
const UNREADABLE: AskedHttp = {
  method: "-",
  target: "-",
  appKey: undefined,
  ifNoneMatch: undefined,
  acceptEncoding: undefined,
  requestId: undefined,
};

/** Milliseconds between two looks at what waits to be taken. */
const LOOK = 1_000;

export type DoorOptions = {
  /** What is let in goes there. */
  readonly app: RequestListener;
  readonly limits: Limits;
  /** Is told of what is refused. */
  readonly observe: Observe | null;
};

/** Gives the connections that are open. */
export function openDoor(server: Server, { app, limits, observe }: DoorOptions): ReadonlySet<Connection> {
  const open = new Set<Connection>();

  const begin: Begin = (connection, { incoming, outgoing }) => {
    const found = inspect(incoming);
    // Where a body ends is the client's claim: what stands behind it may be a request that nobody meant to send.
    if (found !== null) closeBehind(connection, outgoing, limits.linger);
    if (found === null || found === "body") app(incoming, outgoing);
    else refuse(outgoing, found, readAsked(incoming));
  };

  function onConnection(socket: Socket): void {
    if (open.size >= limits.connections) return void socket.destroy();
    const connection = openConnection(socket);
    open.add(connection);
    socket.once("close", () => open.delete(connection));
  }

  function onRequest(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = takingConnection(incoming.socket);
    if (connection !== null) inTurn(connection, { incoming, outgoing }, begin, limits);
    // Each would wait in memory until the last answer has left. Later than node:http reads on, which is behind each request.
    else setImmediate(() => incoming.socket.pause());
  }

  /** node:http could not read what came. */
  function onUnreadable(error: ParseError, socket: Socket): void {
    const refusal = faultOf(error, limits.headers / 1_000);
    const connection = takingConnection(socket);
    // One that has never asked needs no answer.
    if (refusal === null || socket.bytesRead === 0) socket.destroy();
    // Behind `Connection: close` nothing is read, and its answer ends the connection.
    else if (connection !== null && error.code !== "HPE_CLOSED_CONNECTION") refuseRest(connection, refusal);
  }

  /** node:http has handed the connection over, for us to be a proxy. */
  function onConnect({ method = "CONNECT" }: IncomingMessage, socket: Socket): void {
    socket.on("error", () => socket.destroy());
    const connection = takingConnection(socket);
    if (connection === null) socket.destroy();
    else refuseRest(connection, methodNotAllowed(method));
  }

  function refuseRest(connection: Connection, refusal: Refusal): void {
    finishWith(connection, limits.linger, (outgoing) => refuse(outgoing, refusal, UNREADABLE));
  }

  function refuse(outgoing: ServerResponse, refusal: Refusal, asked: AskedHttp): void {
    const start = performance.now();
    const id = requestIdOf(asked.requestId, asked.appKey);
    const client = outgoing.req.socket.remoteAddress;
    const ready = readyRefusal(refusal, null);
    send(outgoing, ready, id);
    observe?.(observationOf({ id, client, start }, asked, ready, null));
  }

  const look = setInterval(() => limitStalled(open, limits.stall), LOOK).unref();
  server.once("close", () => clearInterval(look));
  server.on("connection", onConnection);
  // An expectation changes nothing: no body is waited for.
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, onRequest);
  server.on("clientError", onUnreadable);
  server.on("connect", onConnect);
  return open;
}

/**
 * Nearly every answer leaves at once, so the clock runs only for those that a look finds waiting: one that runs for each, as
 * `server.timeout` would have it, costs a twentieth of an answer from memory. Node sets it back with every byte that is
 * taken, and stops it when the answer has left.
 */
function limitStalled(open: ReadonlySet<Connection>, stall: number): void {
  for (const { socket } of open) {
    if (socket.writableLength > 0 && socket.timeout !== stall) socket.setTimeout(stall);
  }
}
