/** One connection: its requests are answered one after the other, and it is closed when the last of them is. */
import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Limits } from "./limits.ts";

export type Exchange = { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse };

export type Connection = {
  readonly socket: Socket;
  /** The answer that was begun last; null when it is known to have left. */
  answer: ServerResponse | null;
  /** Requests that the client has sent ahead of it, in their order. */
  readonly ahead: Exchange[];
  /** Nothing that comes from now on is a request. */
  closing: boolean;
};

/** On the socket itself, because every request looks it up. */
const CONNECTION = Symbol("connection");
type Known = Socket & { [CONNECTION]?: Connection };

export function openConnection(socket: Socket): Connection {
  const connection: Connection = { socket, answer: null, ahead: [], closing: false };
  (socket as Known)[CONNECTION] = connection;
  return connection;
}

/** Null where there is none, or none that takes requests. */
export function takingConnection(socket: Socket): Connection | null {
  const connection = (socket as Known)[CONNECTION];
  return connection === undefined || connection.closing ? null : connection;
}

export type Begin = (connection: Connection, exchange: Exchange) => void;

/**
 * A client that sends ahead has one request answered at a time, as every other has. Else one connection could have
 * thousands of answers made, which wait in memory until it takes them. When as many wait as may, it is closed behind them.
 */
export function inTurn(
  connection: Connection,
  exchange: Exchange,
  begin: Begin,
  limits: Pick<Limits, "ahead" | "linger">,
): void {
  const { answer, ahead } = connection;
  if (answer === null || (answer.writableFinished && ahead.length === 0)) start(connection, exchange, begin);
  else {
    ahead.push(exchange);
    if (ahead.length === 1) startNext(connection, answer, begin);
    if (ahead.length < limits.ahead) return;
    hearNoMore(connection.socket, limits.linger);
    finish(connection);
  }
}

/** What has left is held no longer: thousands of connections that rest would each hold a request, its answer and their text. */
export function release(outgoing: ServerResponse): void {
  const connection = (outgoing.req.socket as Known)[CONNECTION];
  if (connection?.answer === outgoing && outgoing.writableFinished) connection.answer = null;
}

function start(connection: Connection, exchange: Exchange, begin: Begin): void {
  connection.answer = exchange.outgoing;
  begin(connection, exchange);
}

function startNext(connection: Connection, answer: ServerResponse, begin: Begin): void {
  answer.once("close", () => {
    const next = connection.ahead.shift();
    if (next === undefined || connection.socket.destroyed) return;
    start(connection, next, begin);
    if (connection.ahead.length > 0) startNext(connection, next.outgoing, begin);
  });
}

/** The requests that have come are answered, and the connection ends with the last of them: at once, if there is none. */
export function finish(connection: Connection): void {
  if (connection.closing) return;
  connection.closing = true;
  const { socket } = connection;
  const last = lastOf(connection);
  if (last === null || last.writableFinished) return void socket.destroy();
  last.shouldKeepAlive = false;
  // Its headers may have left already, with another word.
  last.once("close", () => socket.destroySoon());
}

/** What was asked before is answered, and then this is the last answer. */
export function finishWith(connection: Connection, linger: number, send: (outgoing: ServerResponse) => void): void {
  const { socket } = connection;
  connection.closing = true;
  const end = () => {
    if (!socket.writable) return void socket.destroy();
    const outgoing = new ServerResponse(new IncomingMessage(socket));
    outgoing.shouldKeepAlive = false;
    outgoing.assignSocket(socket);
    outgoing.once("finish", () => closeUnheard(socket, linger));
    send(outgoing);
  };
  const last = lastOf(connection);
  // What has left a moment ago still has the socket, until node:http has heard of it.
  if (last === null) setImmediate(end);
  else if (last.closed) end();
  else last.once("close", end);
}

/** This answer is the last, and what the client still sends is thrown away. */
export function closeBehind(connection: Connection, outgoing: ServerResponse, linger: number): void {
  const { socket } = connection;
  connection.closing = true;
  connection.ahead.length = 0;
  outgoing.shouldKeepAlive = false;
  hearNoMore(socket, linger);
}

/** `destroySoon` is what node:http, too, calls behind the last answer. */
function hearNoMore(socket: Socket, linger: number): void {
  socket.destroySoon = () => closeUnheard(socket, linger);
}

function lastOf({ answer, ahead }: Connection): ServerResponse | null {
  return ahead.at(-1)?.outgoing ?? answer;
}

/** A connection that is closed with unread input is reset, and its client may lose the answer that is on its way. */
function closeUnheard(socket: Socket, linger: number): void {
  if (socket.writableEnded) return;
  socket.end();
  if (socket.isPaused()) socket.once("resume", () => throwAway(socket)).resume();
  else throwAway(socket);
  const limit = setTimeout(() => socket.destroy(), linger);
  socket.once("close", () => clearTimeout(limit));
}

/** To who listens node:http hands over what comes, and reads no requests from it any more; without a listener it is gone. */
function throwAway(socket: Socket): void {
  socket.on("data", () => {}).removeAllListeners("data");
  socket.resume();
}
