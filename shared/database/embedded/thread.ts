/** Starts and controls the thread of the embedded database, and defines the messages to and from it. */
import { Worker } from "node:worker_threads";
import type { Query, Row } from "../../sql/query.ts";
import type { Access } from "../database.ts";
import { DatabaseFault, EmbeddedFault } from "../fault.ts";
import { diskFullFault, mayBeStuck } from "./disk-space.ts";
import { explainOpenFailure, isMemoryFailure } from "./open-failure.ts";
import { openPending } from "./pending.ts";

export type Job = { readonly id: number } & Order;
export type Reply = { readonly id: number } & ({ readonly rows: Row[] } | { readonly error: SqlError });
/** Reports a change of content; not an answer to a job. */
export type ChangeReport = { readonly heard: true };
/** The last message of a thread that cannot open the database: the reason, as a message to users. */
export type OpenFailure = { readonly unopened: string };
export type SqlError = { readonly message: string; readonly code: string };

export type Order =
  | { readonly query: Query }
  | { readonly script: string }
  | { readonly begin: Access }
  | { readonly end: "commit" | "rollback" }
  | { readonly listen: true }
  | { readonly close: true };

export type Thread = {
  readonly run: (order: Order) => Promise<Row[]>;
  /** Terminates the thread, which accepts no more orders from now on. Resolves when it has ended. */
  readonly end: () => Promise<unknown>;
  readonly hasEnded: () => boolean;
  /** Resolves when the database is open, which takes seconds the first time; rejects when it cannot be opened. */
  readonly ready: Promise<unknown>;
};

/** A thread inherits no module loader: when tests run the TypeScript sources directly, the compiled worker is used. */
const WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/threads/embedded.js" : "../threads/embedded.js",
  import.meta.url,
);

/** Milliseconds between checks whether a running order is stuck on a full disk. */
const STUCK_CHECK_INTERVAL = 3_000;

/** Whether PGlite may be stuck for good after this error: it goes on after errors that would end PostgreSQL. */
function isBroken({ message, code }: SqlError): boolean {
  return code.startsWith("XX") || message.includes("pg_wal");
}

export function startThread(folder: string, onChange: () => void): Thread {
  const worker = new Worker(WORKER, { workerData: folder });
  const pending = openPending<Row[]>();
  let ended = false;

  worker.on("message", (reply: Reply | ChangeReport | OpenFailure) => {
    if ("heard" in reply) return onChange();
    if ("unopened" in reply) return giveUp(new EmbeddedFault(reply.unopened));
    if ("rows" in reply) return pending.resolve(reply.id, reply.rows);
    const { message, code } = reply.error;
    if (isBroken(reply.error)) giveUpIfStuck();
    pending.reject(reply.id, Object.assign(new Error(message), { code }));
  });
  const end = (fault: DatabaseFault) => {
    ended = true;
    pending.rejectAll(fault);
  };
  worker.on("error", (cause) => end(errorFault(folder, cause)));
  worker.on("exit", () => end(endedFault()));

  function giveUp(fault: DatabaseFault): void {
    end(fault);
    void worker.terminate();
  }

  function giveUpIfStuck(): void {
    if (mayBeStuck(folder)) giveUp(diskFullFault(folder));
  }

  async function run(order: Order): Promise<Row[]> {
    if (ended) throw endedFault();
    const id = pending.next();
    worker.postMessage({ id, ...order } satisfies Job);
    const watch = setInterval(giveUpIfStuck, STUCK_CHECK_INTERVAL).unref();
    return pending.answerTo(id).finally(() => clearInterval(watch));
  }

  const ready = run({ script: "" });
  ready.catch(() => {});
  const terminate = () => {
    ended = true;
    return worker.terminate();
  };
  return { run, end: terminate, hasEnded: () => ended, ready };
}

/** The fault of a thread that has ended with an error, as when it could not reserve memory while its modules loaded. */
export function errorFault(folder: string, cause: unknown): DatabaseFault {
  const message = cause instanceof Error ? cause.message : "";
  return isMemoryFailure(message) ? new EmbeddedFault(explainOpenFailure(folder, message), cause) : endedFault(cause);
}

function endedFault(cause?: unknown): DatabaseFault {
  return new DatabaseFault("unavailable", "the embedded database has stopped", cause);
}
