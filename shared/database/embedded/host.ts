/** Shares an open embedded database with other processes on this machine, such as `build` while `serve` is running. */
import { chmodSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import type { Access, Database, Query, Row, Session } from "../database.ts";
import { type Ask, listenTo, packError, say, socketOf } from "./wire.ts";

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
type Open = { readonly session: Session; readonly end: (commit: boolean) => void; readonly ended: Promise<unknown> };

function serveGuest(database: Database, socket: Socket): void {
  let open: Open | null = null;
  let listening: ReturnType<Database["listen"]> | null = null;
  /** The running queries that can be aborted, by request id. */
  const queries = new Map<number, AbortController>();

  async function answer(ask: Ask): Promise<Row[]> {
    if ("begin" in ask) {
      open = await begin(database, ask.begin);
      // The guest may have disconnected while it waited for its turn.
      if (socket.destroyed) open.end(false);
    } else if ("end" in ask) {
      const ending = open;
      open = null;
      ending?.end(ask.end === "commit");
      await ending?.ended;
    } else if ("listen" in ask) {
      listening ??= database
        .listen(() => say(socket, { heard: true }))
        .catch((error: unknown) => {
          // The guest will ask again.
          listening = null;
          throw error;
        });
      await listening;
    } else if ("cancel" in ask) queries.get(ask.cancel)?.abort();
    else if ("probe" in ask) return [];
    else if ("script" in ask) await (open?.session ?? database).execute(ask.script);
    else return open === null ? query(ask.id, ask.query) : open.session.query(ask.query);
    return [];
  }

  function query(id: number, asked: Query): Promise<Row[]> {
    const controller = new AbortController();
    queries.set(id, controller);
    return database.query(asked, controller.signal).finally(() => queries.delete(id));
  }

  listenTo<Ask>(socket, (ask) => {
    answer(ask).then(
      (rows) => say(socket, { id: ask.id, rows }),
      (error) => say(socket, { id: ask.id, error: packError(error) }),
    );
  });
  // When a guest disconnects, its queries are aborted and its transaction is rolled back.
  socket.on("close", () => {
    for (const controller of queries.values()) controller.abort();
    open?.end(false);
    listening?.then((stop) => stop()).catch(() => {});
  });
}

class RolledBack extends Error {}

function begin(database: Database, access: Access): Promise<Open> {
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
