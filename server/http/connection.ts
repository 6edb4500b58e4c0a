/** Manages one connection: its requests are answered one at a time, and it is closed behind the last answer. */
import { setMaxListeners } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { ClientGone } from "../../shared/api/respond.ts";

type Exchange = { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse };

export type Connection = {
  readonly socket: Socket;
  /** The answer that was begun last; null once it is known to have been sent. */
  answer: ServerResponse | null;
  /** Pipelined requests that wait for that answer, in the order in which they came. */
  readonly pipelined: Exchange[];
  /** True once the connection takes no more requests. */
  closing: boolean;
};

/** Property of the socket that holds its connection. It is on the socket itself because every request looks it up. */
const CONNECTION = Symbol("connection");
type ConnectedSocket = Socket & { [CONNECTION]?: Connection };

export function openConnection(socket: Socket): Connection {
  const connection: Connection = { socket, answer: null, pipelined: [], closing: false };
  (socket as ConnectedSocket)[CONNECTION] = connection;
  return connection;
}

/** Returns the socket's connection; null when it has none, or one that takes no more requests. */
export function acceptingConnection(socket: Socket): Connection | null {
  const connection = (socket as ConnectedSocket)[CONNECTION];
  return connection === undefined || connection.closing ? null : connection;
}

export type Begin = (connection: Connection, exchange: Exchange) => void;

/**
 * Begins a request now, or queues it behind those before it. Pipelined requests are answered one at a time: otherwise
 * one connection could cause thousands of answers, which wait in memory until the client reads them. Once
 * `limits.pipelined` requests wait, the connection takes no more, and is closed behind the last of them.
 */
export function beginInTurn(
  connection: Connection,
  exchange: Exchange,
  begin: Begin,
  limits: Pick<Limits, "pipelined" | "linger">,
): void {
  const { answer, pipelined } = connection;
  if (answer === null || (answer.writableFinished && pipelined.length === 0)) start(connection, exchange, begin);
  else {
    pipelined.push(exchange);
    if (pipelined.length === 1) startNext(connection, answer, begin);
    if (pipelined.length < limits.pipelined) return;
    lingerOnClose(connection.socket, limits.linger);
    finish(connection);
  }
}

/**
 * Drops the reference to an answer that has been sent: thousands of idle connections would otherwise each hold a
 * request, its answer and their text.
 */
export function release(outgoing: ServerResponse): void {
  const connection = (outgoing.req.socket as ConnectedSocket)[CONNECTION];
  if (connection?.answer === outgoing && outgoing.writableFinished) connection.answer = null;
}

function start(connection: Connection, exchange: Exchange, begin: Begin): void {
  connection.answer = exchange.outgoing;
  begin(connection, exchange);
}

function startNext(connection: Connection, answer: ServerResponse, begin: Begin): void {
  answer.once("close", () => {
    const next = connection.pipelined.shift();
    if (next === undefined || connection.socket.destroyed) return;
    start(connection, next, begin);
    if (connection.pipelined.length > 0) startNext(connection, next.outgoing, begin);
  });
}

/** Takes no more requests, and closes the connection once those that have come are answered. */
export function finish(connection: Connection): void {
  if (connection.closing) return;
  connection.closing = true;
  const { socket } = connection;
  const last = findLast(connection);
  if (last === null || last.writableFinished) return void socket.destroy();
  last.shouldKeepAlive = false;
  // Its headers may already have been sent, and may promise to keep the connection open.
  last.once("close", () => socket.destroySoon());
}

/**
 * Takes no more requests, answers those that have come, then calls `send` for one last answer and closes the
 * connection. `linger` is in milliseconds.
 */
export function finishWith(connection: Connection, linger: number, send: (outgoing: ServerResponse) => void): void {
  const { socket } = connection;
  connection.closing = true;
  const end = () => {
    if (!socket.writable) return void socket.destroy();
    const outgoing = new ServerResponse(new IncomingMessage(socket));
    outgoing.shouldKeepAlive = false;
    outgoing.assignSocket(socket);
    outgoing.once("finish", () => closeWithLinger(socket, linger));
    send(outgoing);
  };
  const last = findLast(connection);
  // An answer that was sent a moment ago keeps the socket until node:http has processed the end of it.
  if (last === null) setImmediate(end);
  else if (last.closed) end();
  else last.once("close", end);
}

/** Makes `outgoing` the last answer. Waiting requests are dropped, and what the client still sends is discarded. */
export function closeAfter(connection: Connection, outgoing: ServerResponse, linger: number): void {
  const { socket } = connection;
  connection.closing = true;
  connection.pipelined.length = 0;
  outgoing.shouldKeepAlive = false;
  lingerOnClose(socket, linger);
}

/** Makes the socket close through closeWithLinger, also when node:http calls `destroySoon` behind the last answer. */
function lingerOnClose(socket: Socket, linger: number): void {
  socket.destroySoon = () => closeWithLinger(socket, linger);
}

function findLast({ answer, pipelined }: Connection): ServerResponse | null {
  return pipelined.at(-1)?.outgoing ?? answer;
}

/**
 * Ends the connection and discards input for at most `linger` milliseconds. A connection that is closed with unread
 * input is reset, and the client may lose the answer that is in transit.
 */
function closeWithLinger(socket: Socket, linger: number): void {
  if (socket.writableEnded) return;
  socket.end();
  if (socket.isPaused()) socket.once("resume", () => discardInput(socket)).resume();
  else discardInput(socket);
  const limit = setTimeout(() => socket.destroy(), linger);
  socket.once("close", () => clearTimeout(limit));
}

/**
 * Discards all input. Adding a `data` listener makes node:http stop reading requests from the socket; removing all
 * listeners then removes the parser's own as well.
 */
function discardInput(socket: Socket): void {
  socket.on("data", () => {}).removeAllListeners("data");
  socket.resume();
}

// Signals when a client has gone away. Each connection has one signal, which is created on first use.

const signals = new WeakMap<Socket, AbortSignal>();

export function signalGone(socket: Socket): AbortSignal {
  const known = signals.get(socket);
  if (known !== undefined) return known;
  const controller = new AbortController();
  const gone = () => controller.abort(new ClientGone());
  if (socket.destroyed) gone();
  else socket.once("close", gone);
  // A client may have any number of requests in flight on one connection, and each adds a listener.
  setMaxListeners(0, controller.signal);
  signals.set(socket, controller.signal);
  return controller.signal;
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

export type Limits = {
  /** Milliseconds for the request line and the headers. */
  readonly headers: number;
  /** Milliseconds for a whole request. */
  readonly request: number;
  /** Milliseconds that a connection may be idle between two requests. */
  readonly idle: number;
  /** Milliseconds after which a client that reads nothing of its answer is disconnected. */
  readonly stall: number;
  /** Milliseconds for which input behind the last answer is discarded before the connection is closed. */
  readonly linger: number;
  /** Milliseconds that open requests may take after the server is told to stop. */
  readonly drain: number;
  /** Number of connections that may be open at once. */
  readonly connections: number;
  /** Number of pipelined requests of one connection that may wait behind the one being answered. */
  readonly pipelined: number;
};
