/**
 * What the rest of Precast knows of a database: sessions that run SQL.
 * Every value goes in as text and comes out as text, so PostgreSQL and the embedded database read alike.
 */
export type Value = string | null | readonly string[];
export type Row = readonly (string | null)[];

/** SQL with `$1`… and what they stand for. Select lists cast to text. */
export type Query = {
  readonly text: string;
  readonly values: readonly Value[];
  /**
   * Comes again with other values, so that it is worth to keep it. With `any` values one plan does; with `some` another may be
   * better, and PostgreSQL is to weigh that.
   */
  readonly recurs?: "any" | "some";
  /** Writes outside of a transaction: the embedded database has to look whether there is room. */
  readonly writes?: true;
};

export type Session = {
  /** Runs one statement. Throws a DatabaseFault when the database is away, too slow or too busy. */
  readonly query: (query: Query) => Promise<Row[]>;
  /** Runs a script of several statements, without values. */
  readonly execute: (script: string) => Promise<void>;
};

export type Access = "read" | "write";

export type Database = Omit<Session, "query"> & {
  readonly kind: "postgres" | "embedded";
  /**
   * A query that its signal aborts is a fault: `overloaded` when it had not begun, `timeout` when it ran. It is gone from
   * the database by then. Where the database does not even say so in a second, the fault is `unavailable`.
   */
  readonly query: (query: Query, signal?: AbortSignal) => Promise<Row[]>;
  /**
   * Resolves when a newcomer is answered, or is refused because all connections are taken, or when one that is open and idle is
   * answered. Throws a DatabaseFault when not, after a few seconds at most.
   */
  readonly probe: () => Promise<void>;
  /** Uses no connection again that was made before: the other end of one may have vanished without a word. */
  readonly renew: () => void;
  /** Connections that are open, and how many of them do nothing. The embedded database has one, and does not tell. */
  readonly connections: () => { readonly open: number; readonly idle: number };
  /** One transaction, rolled back when `run` throws. A read sees one snapshot from start to end and cannot write. */
  readonly transaction: <T>(access: Access, run: (session: Session) => Promise<T>) => Promise<T>;
  /**
   * Resolves when every later change is sure to be heard, with what ends the listening. `heard` is called when a change of content
   * was committed, or may have been while nobody listened.
   */
  readonly listen: (heard: () => void) => Promise<() => Promise<void>>;
  readonly close: () => Promise<void>;
};

export type DatabaseOptions = {
  /** `postgres://…`; null for the embedded database. */
  readonly url: string | null;
  /** Where the embedded database lives. */
  readonly dataDir: string;
  /** Milliseconds after which a statement is cancelled, by the embedded database outside of transactions alone; null for never. */
  readonly queryTimeout: number | null;
  /** Connections at most. PostgreSQL alone. */
  readonly connections: number;
  /** Lets other processes of this machine use the embedded database as long as it is open here. */
  readonly share?: boolean;
};

export function sql(text: string, values: readonly Value[] = []): Query {
  return { text, values };
}

/** Where the triggers of the schema announce changes. */
export const CHANNEL = "precast";
