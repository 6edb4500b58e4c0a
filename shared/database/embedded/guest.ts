/** Uses the embedded database that another process (the host) has open and shares. */
import { connect, type Socket } from "node:net";
import type { Query, Row } from "../../sql/query.ts";
import type { Access, Database, Session } from "../database.ts";
import { HostEndedFault } from "../fault.ts";
import { openMutex } from "./mutex.ts";
import { openPending } from "./pending.ts";
import { type GuestRequest, type HostMessage, isHostOf, readMessages, send, socketOf, unpackError } from "./wire.ts";

/** Milliseconds that the host may take to answer a probe, and to end an aborted query. */
const PROBE_TIMEOUT = 1_000;
const GRACE = 1_500;

type RequestBody = GuestRequest extends infer A ? (A extends GuestRequest ? Omit<A, "id"> : never) : never;

export type Guest = Omit<Database, "listen"> & {
  /** Whether the connection to the host has ended. From then on every request fails with a HostEndedFault. */
  readonly hasEnded: () => boolean;
  /** Calls `onHostEnd` when the host has ended, so that `onChange` is not called any more. */
  readonly listen: (onChange: () => void, onHostEnd?: () => void) => ReturnType<Database["listen"]>;
};

/** Connects to the host of a folder. Null when no process shares the database of this folder. */
export async function joinDatabase(dataDir: string): Promise<Guest | null> {
  const address = socketOf(dataDir);
  const socket = isHostOf(dataDir, address) ? await connectTo(address) : null;
  return socket === null ? null : guestOf(socket);
}

function connectTo(address: string): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect(address);
    socket.once("connect", () => resolve(socket));
    socket.once("error", () => resolve(null));
  });
}

function guestOf(socket: Socket): Guest {
  const pending = openPending<Row[]>();
  const listeners = new Set<{ readonly onChange: () => void; readonly onHostEnd: () => void }>();
  // The host runs every request of a guest inside the guest's open transaction, so requests from outside it must wait.
  const inTurn = openMutex();

  readMessages<HostMessage>(socket, (message) => {
    if ("heard" in message) {
      for (const { onChange } of listeners) onChange();
      return;
    }
    if ("rows" in message) pending.resolve(message.id, message.rows);
    else pending.reject(message.id, unpackError(message.error));
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    pending.rejectAll(new HostEndedFault());
    for (const { onHostEnd } of listeners) onHostEnd();
  });

  async function ask(body: RequestBody, id = pending.next()): Promise<Row[]> {
    if (!socket.writable) throw new HostEndedFault();
    send(socket, { id, ...body } as GuestRequest);
    return pending.answerTo(id);
  }

  /** Treats a host that does not answer in time as ended. */
  const giveUpIn = (milliseconds: number, id: number) =>
    setTimeout(() => pending.reject(id, new HostEndedFault()), milliseconds).unref();

  async function probe(): Promise<void> {
    const id = pending.next();
    const limit = giveUpIn(PROBE_TIMEOUT, id);
    await ask({ probe: true }, id).finally(() => clearTimeout(limit));
  }

  /** Runs a query; on abort asks the host to end it. The host confirms that with its answer to the query. */
  async function cancellable(query: Query, signal?: AbortSignal): Promise<Row[]> {
    const id = pending.next();
    const asking = ask({ query }, id);
    const cancel = () => {
      ask({ cancel: id }).catch(() => {});
      giveUpIn(GRACE, id);
    };
    signal?.addEventListener("abort", cancel, { once: true });
    return asking.finally(() => signal?.removeEventListener("abort", cancel));
  }
  const session: Session = {
    query: (query) => ask({ query }),
    execute: async (script) => void (await ask({ script })),
  };

  async function transaction<T>(access: Access, run: (session: Session) => Promise<T>): Promise<T> {
    await ask({ begin: access });
    try {
      const result = await run(session);
      await ask({ end: "commit" });
      return result;
    } catch (error) {
      await ask({ end: "rollback" }).catch(() => {});
      throw error;
    }
  }

  return {
    kind: "embedded",
    query: (query, signal) => inTurn(() => cancellable(query, signal), signal),
    execute: (script) => inTurn(() => session.execute(script)),
    transaction: (access, run) => inTurn(() => transaction(access, run)),
    listen: (onChange, onHostEnd = () => {}) =>
      inTurn(async () => {
        if (listeners.size === 0) await ask({ listen: true });
        const listener = { onChange, onHostEnd };
        listeners.add(listener);
        return async () => void listeners.delete(listener);
      }),
    probe,
    renewConnections: () => {},
    connections: () => ({ open: 1, idle: 0 }),
    close: async () => void socket.destroySoon(),
    hasEnded: () => !socket.writable,
  };
}
