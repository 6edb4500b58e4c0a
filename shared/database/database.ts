/**
 * The interface through which the rest of Precast uses a database, and what is the same for every database: reading a
 * large result in batches, and listening for changes without an end.
 */
import { pause } from "../async.ts";
import { type Query, type Row, sql } from "../sql/query.ts";
import { DatabaseFault } from "./errors.ts";

export type Session = {
  /** Runs one statement. Throws a DatabaseFault when the database is unavailable, too slow or too busy. */
  readonly query: (query: Query) => Promise<Row[]>;
  /** Runs a script of several statements, without values. */
  readonly execute: (script: string) => Promise<void>;
};

export type Access = "read" | "write";

export type Database = Omit<Session, "query"> & {
  readonly kind: "postgres" | "embedded";
  /**
   * Runs one statement. When `signal` aborts it, throws a DatabaseFault: `overloaded` if the query had not begun,
   * `timeout` if it was running. By then the database no longer runs it. If the database does not confirm that in time
   * (about a second), the fault is `unavailable`.
   */
  readonly query: (query: Query, signal?: AbortSignal) => Promise<Row[]>;
  /**
   * Checks whether the database is available: resolves when a new connection is answered or is refused because all
   * connections are taken, or when an idle connection is answered. Otherwise throws a DatabaseFault, after a few
   * seconds at most.
   */
  readonly probe: () => Promise<void>;
  /** Uses no connection again that was made before this call: its other end may have vanished without closing it. */
  readonly renewConnections: () => void;
  /** Number of open connections, and of idle ones among them. The embedded database always reports 1 and 0. */
  readonly connections: () => { readonly open: number; readonly idle: number };
  /** Runs `run` in a transaction; rolls back when it throws. `read` sees one snapshot throughout and cannot write. */
  readonly transaction: <T>(access: Access, run: (session: Session) => Promise<T>) => Promise<T>;
  /**
   * Listens for changes of content. Calls `onChange` when one was committed, or may have been while no connection
   * listened. Once the promise resolves, no change is missed; it resolves to a function that ends the listening. A
   * PostgreSQL may be listened to for other announcements, on a channel of another name.
   */
  readonly listen: (onChange: () => void, channel?: string) => Promise<() => Promise<void>>;
  readonly close: () => Promise<void>;
};

export type DatabaseOptions = {
  /** `postgres://…`; null for the embedded database. */
  readonly url: string | null;
  /** The folder of the embedded database and its lock. */
  readonly dataDir: string;
  /** Milliseconds after which a statement is cancelled; null for never. Embedded: only outside of transactions. */
  readonly queryTimeout: number | null;
  /** Maximum number of connections. Used by PostgreSQL only. */
  readonly connections: number;
  /** Lets other processes on this machine use the embedded database while it is open here. */
  readonly share?: boolean;
};

/** The notification channel on which the triggers of the schema announce changes. */
export const CHANNEL = "precast";

/** Rows of the first batch; rows of a batch at most; characters that a batch of large rows should have. */
const FIRST_ROWS = 50;
const MAX_ROWS = 250;
const BATCH_CHARACTERS = 1 << 22;
let opened = 0;

/**
 * Yields the rows of a query in batches, inside a transaction, with memory that does not grow with the result. Requests
 * the next batch before it yields one, so that the database reads while the caller works.
 */
export async function* readBatches(session: Session, { text, values }: Query): AsyncGenerator<Row[]> {
  const name = `cursor_${++opened}`;
  const fetch = (size: number) => {
    const fetched = session.query(sql(`FETCH ${size} FROM ${name}`));
    // A failure is thrown where the batch is awaited. Unhandled until then, it would end the process.
    fetched.catch(() => {});
    return fetched;
  };
  await session.query(sql(`DECLARE ${name} NO SCROLL CURSOR FOR ${text}`, values));
  let size = FIRST_ROWS;
  let next = fetch(size);
  try {
    for (let rows = await next; rows.length > 0; rows = await next) {
      const isLast = rows.length < size;
      size = sizeAfter(rows);
      next = isLast ? Promise.resolve([]) : fetch(size);
      yield rows;
    }
  } finally {
    // A caller that stops early leaves a batch that is still being fetched.
    await next.catch(() => {});
    await session.query(sql(`CLOSE ${name}`)).catch(() => {});
  }
}

/** Number of rows of the next batch, if its rows are as large as these. */
function sizeAfter(rows: readonly Row[]): number {
  const characters = rows.flat().reduce((sum, value) => sum + (value?.length ?? 0), 1);
  return Math.max(1, Math.min(MAX_ROWS, Math.floor((BATCH_CHARACTERS * rows.length) / characters)));
}

/** A connection that listens. */
export type Listening = {
  /** Resolves when the connection has ended, for whatever reason. */
  readonly ended: Promise<unknown>;
  readonly close: () => void;
};

type Connect = () => Promise<Listening>;

/** Milliseconds before the first attempt to reconnect, and the limit to which later waits double. */
const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;

/**
 * Keeps a listening connection open and returns a function that ends it. Throws when the first `connect` fails with
 * anything but a DatabaseFault; if the database is unavailable, retries in the background. Calls `onChange` when a
 * connection is lost and when the next one listens, because notifications in between were missed.
 */
export async function keepListening(connect: Connect, onChange: () => void): Promise<() => Promise<void>> {
  const stop = new AbortController();
  let listening = await connect().catch((error: unknown) => {
    if (!(error instanceof DatabaseFault)) throw error;
    return null;
  });

  async function keepOpen(): Promise<void> {
    for (;;) {
      await listening?.ended;
      if (stop.signal.aborted) return;
      onChange();
      listening = await reconnect(connect, stop.signal);
      if (stop.signal.aborted) return listening?.close();
      onChange();
    }
  }

  const kept = keepOpen();
  return async () => {
    stop.abort();
    listening?.close();
    await kept;
  };
}

/** Retries with backoff until the database is back. Null when `signal` aborts before that. */
async function reconnect(connect: Connect, signal: AbortSignal): Promise<Listening | null> {
  for (let wait = FIRST_WAIT; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    await pause(wait, signal);
    if (signal.aborted) return null;
    const listening = await connect().catch(() => null);
    if (listening !== null) return listening;
  }
  return null;
}
