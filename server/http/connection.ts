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
  /** The socket's `bytesWritten` when the client was last known to read: the system may hold all that came after. */
  read: number;
  /** Rises with each request of any connection: the idle one with the smallest number is idle for longest. */
  used: number;
  /** True once the connection takes no more requests. */
  closing: boolean;
};

/** Property of the socket that holds its connection. It is on the socket itself because every request looks it up. */
const CONNECTION = Symbol("connection");
type ConnectedSocket = Socket & { [CONNECTION]?: Connection };

let uses = 0;

function openConnection(socket: Socket): Connection {
  const connection: Connection = { socket, answer: null, pipelined: [], read: 0, used: ++uses, closing: false };
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
 * one connection could cause thousands of answers, which wait in memory until the client reads them. Once `most`
 * requests wait, the connection takes no more, and is closed behind the last of them.
 */
export function beginInTurn(
  connection: Connection,
  exchange: Exchange,
  begin: Begin,
  limits: Pick<Limits, "unread" | "linger" | "stall">,
  most: number,
): void {
  const { answer, pipelined, socket } = connection;
  // Requests may wait although the answer before them has been sent, because it is not their turn yet.
  if (pipelined.length === 0 && (answer === null || answer.writableFinished)) {
    start(connection, exchange, begin);
    return;
  }
  pipelined.push(exchange);
  if (pipelined.length === 1) {
    connection.read = socket.bytesWritten;
    startNext(connection, answer as ServerResponse, begin, limits);
  }
  if (pipelined.length < most) return;
  lingerOnClose(socket, limits.linger);
  finish(connection);
}

/**
 * Drops the reference to an answer that has been sent: thousands of idle connections would otherwise each hold a
 * request, its answer and their text. An answer that the system does not take at once is taken as the client reads.
 */
export function release(outgoing: ServerResponse): void {
  const { socket } = outgoing.req;
  const connection = (socket as ConnectedSocket)[CONNECTION];
  if (connection?.answer !== outgoing) return;
  if (outgoing.writableFinished) connection.answer = null;
  else connection.read = socket.bytesWritten;
}

function start(connection: Connection, exchange: Exchange, begin: Begin): void {
  connection.used = ++uses;
  connection.answer = exchange.outgoing;
  begin(connection, exchange);
}

/**
 * Starts the next request one turn of the event loop after the answer before it: all connections with waiting requests
 * then take turns with each other, and with new requests.
 */
function startNext(
  connection: Connection,
  answer: ServerResponse,
  begin: Begin,
  limits: Pick<Limits, "unread" | "stall">,
): void {
  const { socket, pipelined } = connection;
  const next = () => {
    const exchange = pipelined.shift();
    if (exchange === undefined || socket.destroyed) return;
    const isUnread = socket.bytesWritten - connection.read > limits.unread;
    if (isUnread && pipelined.length > 0) closeAfter(connection, exchange.outgoing, limits.stall);
    start(connection, exchange, begin);
    if (pipelined.length > 0) startNext(connection, exchange.outgoing, begin, limits);
  };
  answer.once("close", () => setImmediate(next));
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
export function closeWithLinger(socket: Socket, linger: number): void {
  if (socket.writableEnded) return;
  socket.end();
  if (socket.isPaused()) socket.once("resume", () => discardInput(socket)).resume();
  else discardInput(socket);
  const limit = setTimeout(() => reset(socket), linger);
  socket.once("close", () => clearTimeout(limit));
}

/**
 * Closes the connection at once. Of a socket that is only destroyed, the system keeps what the client has not read for as
 * long as the client is there, and no limit counts it any more.
 */
export function reset(socket: Socket): void {
  // Otherwise Node.js first waits until everything is written.
  socket.destroySoon = () => socket.destroy();
  socket.resetAndDestroy();
}

/**
 * Discards all input. Adding a `data` listener makes node:http stop reading requests from the socket; removing all
 * listeners then removes the parser's own as well.
 */
function discardInput(socket: Socket): void {
  socket.on("data", () => {}).removeAllListeners("data");
  socket.resume();
}

// Bounds how many connections are open.

export type ConnectionCounts = {
  readonly open: number;
  /** Numbers since the start: of new connections that were closed, and of idle ones that were closed for new ones. */
  readonly refused: number;
  readonly evicted: number;
};

/** Share of the limit below which reaching it is reported again. */
const RELIEVED = 0.9;

export type Connections = {
  /** Stays current. */
  readonly open: ReadonlySet<Connection>;
  /** At the limit, the connection that is idle for longest makes room. Null when none is idle. */
  readonly admit: (socket: Socket) => Connection | null;
  readonly counts: () => ConnectionCounts;
};

export function openConnections(limit: number, report: (text: string) => void): Connections {
  const open = new Set<Connection>();
  let [refused, evicted, isReported] = [0, 0, false];

  function admit(socket: Socket): Connection | null {
    if (open.size >= limit && !makeRoom()) {
      refused++;
      return null;
    }
    const connection = openConnection(socket);
    open.add(connection);
    socket.once("close", () => {
      open.delete(connection);
      if (open.size < limit * RELIEVED) isReported = false;
    });
    return connection;
  }

  function makeRoom(): boolean {
    if (!isReported) report(describeCrowd(limit));
    isReported = true;
    let longest: Connection | null = null;
    for (const one of open) if (isIdle(one) && one.used < (longest?.used ?? Number.POSITIVE_INFINITY)) longest = one;
    if (longest === null) return false;
    evicted++;
    // Its place is free now, although the event `close` comes later.
    open.delete(longest);
    finish(longest);
    return true;
  }

  return { open, admit, counts: () => ({ open: open.size, refused, evicted }) };
}

function isIdle({ answer, pipelined, socket }: Connection): boolean {
  return pipelined.length === 0 && (answer === null || answer.writableFinished) && socket.writableLength === 0;
}

function describeCrowd(limit: number): string {
  return `This process has ${limit} connections open, its share of --max-connections. For new ones it closes those that are idle for longest, and refuses them while none is idle. If clients need more, raise --max-connections, and the limit of open files (ulimit -n) with it; otherwise limit the connections of each client in the proxy or firewall before it.`;
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
  /** The same for all connections together, which get equal shares. */
  readonly waiting: number;
  /** Bytes of answers that are sent to a client, while more of its requests wait, without a sign that it reads them. */
  readonly unread: number;
};
