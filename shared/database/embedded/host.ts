/** Shares an open embedded database with other processes on this machine, such as `build` while `serve` is running. */
import { chmodSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import type { Query, Row } from "../../sql/query.ts";
import type { Access, Database, Session } from "../database.ts";
import { type GuestRequest, packError, readMessages, send, socketOf } from "./wire.ts";

export async function shareDatabase(database: Database, dataDir: string): Promise<{ close: () => Promise<void> }> {
  const address = socketOf(dataDir);
  rmSync(address, { force: true });
  const guests = new Set<Socket>();
  const server = createServer((socket) => {
    guests.add(socket);
    socket.on("close", () => guests.delete(socket));
    socket.on("error", () => {});
    serveGuest(database, socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(address, resolve);
  });
  if (process.platform !== "win32") chmodSync(address, 0o600);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of guests) socket.destroy();
    });
  return { close };
}

/** An open transaction of a guest, which has the database to itself until it ends. */
type OpenTransaction = {
  readonly session: Session;
  readonly end: (commit: boolean) => void;
  readonly ended: Promise<unknown>;
};

function serveGuest(database: Database, socket: Socket): void {
  let transaction: OpenTransaction | null = null;
  let listening: ReturnType<Database["listen"]> | null = null;
  /** The running queries that can be aborted, by request id. */
  const queries = new Map<number, AbortController>();

  async function answer(request: GuestRequest): Promise<Row[]> {
    if ("begin" in request) {
      transaction = await begin(database, request.begin);
      // The guest may have disconnected while it waited for its turn.
      if (socket.destroyed) transaction.end(false);
    } else if ("end" in request) {
      const ending = transaction;
      transaction = null;
      ending?.end(request.end === "commit");
      await ending?.ended;
    } else if ("listen" in request) {
      listening ??= database
        .listen(() => send(socket, { heard: true }))
        .catch((error: unknown) => {
          // The guest will ask again.
          listening = null;
          throw error;
        });
      await listening;
    } else if ("cancel" in request) queries.get(request.cancel)?.abort();
    else if ("probe" in request) return [];
    else if ("script" in request) await (transaction?.session ?? database).execute(request.script);
    else return transaction === null ? query(request.id, request.query) : transaction.session.query(request.query);
    return [];
  }

  function query(id: number, asked: Query): Promise<Row[]> {
    const controller = new AbortController();
    queries.set(id, controller);
    return database.query(asked, controller.signal).finally(() => queries.delete(id));
  }

  readMessages<GuestRequest>(socket, (request) => {
    answer(request).then(
      (rows) => send(socket, { id: request.id, rows }),
      (error) => send(socket, { id: request.id, error: packError(error) }),
    );
  });
  // When a guest disconnects, its queries are aborted and its transaction is rolled back.
  socket.on("close", () => {
    for (const controller of queries.values()) controller.abort();
    transaction?.end(false);
    listening?.then((stop) => stop()).catch(() => {});
  });
}

class RolledBack extends Error {}

function begin(database: Database, access: Access): Promise<OpenTransaction> {
  return new Promise((resolve, reject) => {
    const ended = database.transaction(access, async (session) => {
      const commit = await new Promise<boolean>((end) => resolve({ session, end, ended: settled }));
      if (!commit) throw new RolledBack();
    });
    const settled = ended.catch((error: unknown) => {
      if (!(error instanceof RolledBack)) throw error;
    });
    settled.catch(reject);
  });
}
