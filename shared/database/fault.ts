/** The ways in which a database can fail a caller who did nothing wrong. */

export type FaultReason = "unavailable" | "timeout" | "overloaded";

export class DatabaseFault extends Error {
  readonly reason: FaultReason;
  /** What the server or the system called it: an SQLSTATE, `ECONNREFUSED`. */
  readonly code: string | undefined;

  constructor(reason: FaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "DatabaseFault";
    this.reason = reason;
    this.code = (cause as { code?: string } | undefined)?.code;
  }
}

/** The embedded database was another process's, which has ended or does not answer. */
export class HostEndedFault extends DatabaseFault {
  constructor() {
    super("unavailable", "the process that shared the embedded database has ended");
    this.name = "HostEndedFault";
  }
}

/** The embedded database cannot be used. The message is for people, and says what helps. */
export class EmbeddedFault extends DatabaseFault {
  constructor(message: string, cause?: unknown) {
    super("unavailable", message, cause);
    this.name = "EmbeddedFault";
  }
}

/** What was given up while it waited. */
export function notBegun(): DatabaseFault {
  return new DatabaseFault("overloaded", "the query was given up before its turn came");
}

const CANCELLED = "57014";
const READ_ONLY = "25006";
/** too_many_connections */
const NO_SLOT = "53300";
/** A prepared statement is not where it was prepared, or is where somebody else has prepared it. */
const NOT_PREPARED = ["26000", "42P05"];
/** feature_not_supported */
const NOT_SUPPORTED = "0A000";
/** Its connections, its resources, a conflict with recovery or with others (40), a lock or a transaction that it waits for no longer. */
const AWAY = /^(08|25P0[34]|28|40|57P|53|3D|55P03|58)/;

/**
 * Reads an error of the PostgreSQL client: a fault of the database, or an error of ours that is passed on as it is.
 * `late` says that the time limit of the query had passed: before that, an administrator has cancelled it.
 */
function faultOf(error: unknown, late: boolean): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseFault) return error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === CANCELLED) {
    return late ? new DatabaseFault("timeout", "the query was cancelled by its time limit", error) : unavailable(error);
  }
  if (NOT_PREPARED.includes(code)) {
    const remedy = "connect to the server itself, or have the pooler lend connections by session";
    return new Error(
      `a pooler lends connections by transaction, so statements that were prepared are not where they were: ${remedy}`,
      {
        cause: error,
      },
    );
  }
  const fromServer = "severity" in error;
  return fromServer && !AWAY.test(code) ? error : unavailable(error);
}

function unavailable(error: Error & { readonly code?: string }): DatabaseFault {
  return new DatabaseFault("unavailable", error.message || (error.code ?? ""), error);
}

/** Begins a transaction. A standby calls one that may write not supported; what writes without it calls it read-only. */
export async function begun(begin: () => Promise<unknown>): Promise<void> {
  try {
    await answered(begin);
  } catch (error) {
    const { code } = error as { readonly code?: string };
    throw code === NOT_SUPPORTED ? Object.assign(error as Error, { code: READ_ONLY }) : error;
  }
}

/** What goes wrong while a connection is made is a fault of the database, whatever it is: it takes none. */
export async function connected<T>(connect: () => Promise<T>): Promise<T> {
  try {
    return await connect();
  } catch (error) {
    throw unavailable(error as Error & { readonly code?: string });
  }
}

/** What the client of PostgreSQL throws, as a fault where it is one. `limit` is what the server allows a query to take. */
export async function answered<T>(ask: () => Promise<T>, limit: number | null = null): Promise<T> {
  // Before it is asked: the database may begin to count at once.
  const start = performance.now();
  try {
    return await ask();
  } catch (error) {
    throw faultOf(error, limit !== null && performance.now() - start >= limit);
  }
}

/** serialization_failure, deadlock_detected, lock_not_available. */
const IN_THE_WAY = ["40001", "40P01", "55P03"];

/** Whether the database is there, and somebody else was in the way: another time it may go well. */
export function isInTheWay({ code }: DatabaseFault): boolean {
  return IN_THE_WAY.includes(code ?? "");
}

/** Whether the database is there, and the query was cancelled: by its time limit, or by somebody. */
export function isCancelled({ code }: DatabaseFault): boolean {
  return code === CANCELLED;
}

/** Whether the database is there, and all the connections that it allows are taken. */
export function hasNoSlot({ code }: DatabaseFault): boolean {
  return code === NO_SLOT;
}

/** Whether the database may only be read: to who reads that is no fault. */
export function isReadOnly(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === READ_ONLY;
}

/** invalid_schema_name, undefined_table, undefined_column, undefined_function, insufficient_privilege. */
const LACKING = ["3F000", "42P01", "42703", "42883", "42501"];

/** Whether the database lacks what is asked of it, or the role the right to it: it is the same whatever the values are. */
export function isLacking(error: unknown): boolean {
  return error instanceof Error && "code" in error && LACKING.includes(String(error.code));
}
