/**
 * Shares an embedded database between processes of this machine: the one that has it open is the server, the others are
 * its clients. Every query, script, transaction and listening has a connection of its own, over which orders and replies
 * go as lines of JSON. When the connection ends, its query is aborted and its transaction is rolled back.
 */
import { createHash } from "node:crypto";
import { on, once } from "node:events";
import { chmodSync, lstatSync, realpathSync, rmSync, statSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Database, Listening, Session } from "../database.ts";
import { DatabaseFault, notBegunFault, ServerEndedFault } from "../errors.ts";
import { type ChangeReport, type Order, openReplies, packError, type Reply, runTransaction } from "./orders.ts";

/** An embedded database that is open, in this process or in another one that shares it. */
export type Opened = Pick<Database, "query" | "execute" | "transaction" | "probe" | "close"> & {
  readonly listen: (onChange: () => void) => Promise<Listening>;
};

/** Beside the orders: aborts the query that runs on the connection, or asks whether the server answers. */
type Request = Order | { readonly cancel: true } | { readonly probe: true };
export type ServerMessage = Reply | ChangeReport;

/** Largest size in bytes of the path of a Unix socket that every system supports. */
const LONGEST_NAME = 103;

/**
 * The address on which the server of a folder listens: in the folder, which is as private as its data, or in the
 * temporary folder of the system if the path would be too long. On Windows it is a named pipe.
 */
export function findSocket(dataDir: string): string {
  const folder = realpathSync(dataDir);
  const name = `precast-${createHash("sha256").update(folder).digest("hex").slice(0, 24)}`;
  if (process.platform === "win32") return `\\\\.\\pipe\\${name}`;
  const own = join(folder, "database.sock");
  return Buffer.byteLength(own) <= LONGEST_NAME ? own : join(tmpdir(), `${name}.sock`);
}

function send(socket: Socket, message: Request | ServerMessage): void {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
}

/** Ends the connection at a line that is no message: whoever sends one must not end the process that reads it. */
export function readMessages<M extends Request | ServerMessage>(
  socket: Socket,
  onMessage: (message: M) => unknown,
): void {
  // A large message arrives in many chunks, which are joined only once.
  let parts: string[] = [];
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const [end = "", ...lines] = chunk.split("\n");
    parts.push(end);
    for (const line of lines) {
      let message: unknown = null;
      try {
        message = JSON.parse(parts.join(""));
      } catch {}
      if (typeof message !== "object" || message === null) return void socket.destroy();
      onMessage(message as M);
      parts = [line];
    }
  });
}

/** Serves clients until the returned function is called. */
export async function shareDatabase(database: Opened, dataDir: string): Promise<() => Promise<void>> {
  const address = findSocket(dataDir);
  rmSync(address, { force: true });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    serveConnection(database, socket).catch(() => socket.destroy());
  });
  await once(server.listen(address), "listening");
  if (process.platform !== "win32") chmodSync(address, 0o600);
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
}

async function serveConnection(database: Opened, socket: Socket): Promise<void> {
  const abandoned = new AbortController();
  const abandon = () => abandoned.abort();
  const requests = on(socket, "request", { close: ["close"] }) as AsyncIterable<Order[]> as AsyncIterable<[Order]>;
  readMessages<Request>(socket, (request) => ("cancel" in request ? abandon() : socket.emit("request", request)));
  socket.once("close", abandon);
  const reply = async (answer: Promise<unknown>) => {
    const message = answer.then(
      (rows = []) => ({ rows }) as Reply,
      (error: unknown) => ({ error: packError(error) }),
    );
    send(socket, await message);
  };

  async function serveTransaction(session: Session): Promise<void> {
    await reply(Promise.resolve());
    for await (const [request] of requests) {
      if ("query" in request) await reply(session.query(request.query));
      else if ("script" in request) await reply(session.execute(request.script));
      else if ("commit" in request) return;
      else break;
    }
    throw new DatabaseFault("unavailable", "the client has left without a commit");
  }

  async function listen(): Promise<void> {
    const { close } = await database.listen(() => send(socket, { heard: true }));
    if (socket.destroyed) close();
    else socket.once("close", close);
  }

  for await (const [request] of requests) {
    if ("query" in request) await reply(database.query(request.query, abandoned.signal));
    else if ("script" in request) await reply(database.execute(request.script));
    else if ("begin" in request) await reply(database.transaction(request.begin, serveTransaction));
    else await reply("listen" in request ? listen() : database.probe());
  }
}

/** Milliseconds that the server may take to answer a probe, and to end an aborted query. */
const PROBE_TIMEOUT = 1_000;
const GRACE = 1_500;

/** Uses the database of a folder through the process that shares it; null when none does. */
export async function joinDatabase(dataDir: string): Promise<Opened | null> {
  const address = findSocket(dataDir);
  const sockets = new Set<Socket>();
  let closed = false;

  async function open(onHeard: () => void = () => {}) {
    const socket = await connectTo(dataDir, address);
    if (socket === null) throw new ServerEndedFault({ hasBegun: false });
    const replies = openReplies();
    sockets.add(socket);
    readMessages<ServerMessage>(socket, (message) => ("heard" in message ? onHeard() : replies.settle(message)));
    const closing = new Promise((resolve) => socket.once("close", resolve));
    const ended = closing.then(() => {
      sockets.delete(socket);
      replies.end(new ServerEndedFault());
    });
    if (closed) socket.destroy();
    const ask = (request: Request) => {
      send(socket, request);
      return replies.next();
    };
    const close = () => void socket.destroy();
    // A server that does not reply in time counts as one that has ended.
    const closeIn = (milliseconds: number) => void setTimeout(close, milliseconds).unref();
    const cancel = () => {
      send(socket, { cancel: true });
      closeIn(GRACE);
    };
    return { ask, cancel, ended, close, closeIn };
  }

  async function use<T>(work: (connection: Awaited<ReturnType<typeof open>>) => Promise<T>): Promise<T> {
    const connection = await open();
    return work(connection).finally(connection.close);
  }

  const first = await connectTo(dataDir, address);
  first?.destroy();
  if (first === null) return null;
  return {
    query: (query, signal) =>
      use(async ({ ask, cancel }) => {
        if (signal?.aborted) throw notBegunFault();
        signal?.addEventListener("abort", cancel, { once: true });
        return ask({ query }).finally(() => signal?.removeEventListener("abort", cancel));
      }),
    execute: async (script) => void (await use(({ ask }) => ask({ script }))),
    // A server rolls back the transaction of a connection that closes.
    transaction: (access, work) => use(({ ask, close }) => runTransaction(ask, access, work, close)),
    listen: async (onChange) => {
      const { ask, ended, close } = await open(onChange);
      await ask({ listen: true }).catch((error: unknown) => {
        close();
        throw error;
      });
      return { ended, close };
    },
    probe: () =>
      use(async ({ ask, closeIn }) => {
        closeIn(PROBE_TIMEOUT);
        await ask({ probe: true });
      }),
    close: async () => {
      closed = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * Connects to the server; null when there is none. In the temporary folder of the system anybody may have created the
 * socket, to read and answer the queries of clients: there it must belong to this user, to the owner of the data or to
 * root.
 */
async function connectTo(dataDir: string, address: string): Promise<Socket | null> {
  if (process.platform !== "win32" && dirname(address) === tmpdir()) {
    const owner = lstatSync(address, { throwIfNoEntry: false })?.uid;
    if (owner === undefined || ![0, process.getuid?.(), statSync(dataDir).uid].includes(owner)) return null;
  }
  return new Promise((resolve) => {
    const socket = connect(address);
    socket.once("connect", () => resolve(socket));
    socket.on("error", () => resolve(null));
  });
}
