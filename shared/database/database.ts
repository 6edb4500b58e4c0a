/** Defines the interface through which the rest of Precast uses a database: sessions that run SQL. */
import type { Query, Row } from "../sql/query.ts";

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
   * listened. Once the promise resolves, no change is missed; it resolves to a function that ends the listening.
   */
  readonly listen: (onChange: () => void) => Promise<() => Promise<void>>;
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
