/** Classifies database errors: separates faults of the database from errors that a statement itself causes. */

export type FaultReason = "unavailable" | "timeout" | "overloaded";

export class DatabaseFault extends Error {
  readonly reason: FaultReason;
  /** Code of the error that caused the fault: an SQLSTATE, or one of the system such as `ECONNREFUSED`. */
  readonly code: string | undefined;

  constructor(reason: FaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "DatabaseFault";
    this.reason = reason;
    this.code = (cause as { code?: string } | undefined)?.code;
  }
}

/** The process that shared the embedded database has ended or does not answer. */
export class ServerEndedFault extends DatabaseFault {
  /** Whether the query or the transaction may have begun. */
  readonly hasBegun: boolean;

  constructor({ hasBegun } = { hasBegun: true }) {
    super("unavailable", "the process that shared the embedded database has ended");
    this.name = "ServerEndedFault";
    this.hasBegun = hasBegun;
  }
}

/** The embedded database cannot be used. The message is shown to users and says what to do. */
export class EmbeddedFault extends DatabaseFault {
  constructor(message: string, cause?: unknown) {
    super("unavailable", message, cause);
    this.name = "EmbeddedFault";
  }
}

/** The fault of a query that was aborted before it began. */
export function notBegunFault(): DatabaseFault {
  return new DatabaseFault("overloaded", "the query was cancelled before it began");
}

const CANCELLED = "57014";
const READ_ONLY = "25006";
/** too_many_connections */
const TOO_MANY_CONNECTIONS = "53300";
/** invalid_sql_statement_name, duplicate_prepared_statement: a pooler has switched the server connection. */
const NOT_PREPARED = ["26000", "42P05"];
/** What to do about a pooler that loses what a session has set up. */
export const SESSION_POOLING = "connect to the server directly, or switch the pooler to session pooling";
/** feature_not_supported */
const NOT_SUPPORTED = "0A000";
/**
 * SQLSTATEs that mean the database is unavailable: connection (08), time limits of transactions (25P03, 25P04), login
 * (28), conflicts with recovery or with other transactions (40), shutdown (57P), resources (53), unknown
 * database (3D), lock not available (55P03), system (58).
 */
const UNAVAILABLE = /^(08|25P0[34]|28|40|57P|53|3D|55P03|58)/;

/**
 * Turns an error of the PostgreSQL client into a DatabaseFault, or returns it as it is if the statement caused it.
 * `late` says that the time limit of the query had passed; a query that was cancelled earlier was cancelled by an
 * administrator.
 */
function classifyError(error: unknown, late: boolean): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseFault) return error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === CANCELLED) {
    return late
      ? new DatabaseFault("timeout", "the query was cancelled because it exceeded its time limit", error)
      : unavailable(error);
  }
  if (NOT_PREPARED.includes(code)) {
    return new Error(`a pooler with transaction pooling loses prepared statements: ${SESSION_POOLING}`, {
      cause: error,
    });
  }
  const fromServer = "severity" in error;
  return fromServer && !UNAVAILABLE.test(code) ? error : unavailable(error);
}

function unavailable(error: Error & { readonly code?: string }): DatabaseFault {
  return new DatabaseFault("unavailable", error.message || (error.code ?? ""), error);
}

/**
 * Begins a transaction. A standby reports a transaction that may write as not supported, and a write outside of a
 * transaction as read-only; here both get the code for read-only.
 */
export async function withBeginFaults(begin: () => Promise<unknown>): Promise<void> {
  try {
    await withFaults(begin);
  } catch (error) {
    const { code } = error as { readonly code?: string };
    throw code === NOT_SUPPORTED ? Object.assign(error as Error, { code: READ_ONLY }) : error;
  }
}

/** Connects. Every error while connecting becomes a DatabaseFault `unavailable`, whatever its code. */
export async function withConnectFaults<T>(connect: () => Promise<T>): Promise<T> {
  try {
    return await connect();
  } catch (error) {
    throw unavailable(error as Error & { readonly code?: string });
  }
}

/**
 * Runs `ask`, which uses the PostgreSQL client, and throws a DatabaseFault for errors that are faults of the database.
 * `limit` is the server's time limit for the query in milliseconds; null for none.
 */
export async function withFaults<T>(ask: () => Promise<T>, limit: number | null = null): Promise<T> {
  // Taken before the query is sent: the clock of the server may start at once.
  const start = performance.now();
  try {
    return await ask();
  } catch (error) {
    throw classifyError(error, limit !== null && performance.now() - start >= limit);
  }
}

/** Whether an error means that the connection is unusable: no server sent it, or a server that ends the connection. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof DatabaseFault) || error.reason !== "unavailable") return false;
  const { severity, code } = (error.cause ?? {}) as { severity?: string; code?: string };
  return severity === undefined || severity === "FATAL" || /^(08|57P)/.test(code ?? "");
}

/** serialization_failure, deadlock_detected, lock_not_available. */
const CONFLICTS = ["40001", "40P01", "55P03"];

/** Whether another transaction got in the way, while the database is available: a retry may succeed. */
export function isConflict({ code }: DatabaseFault): boolean {
  return CONFLICTS.includes(code ?? "");
}

/** invalid_authorization_specification, invalid_password, invalid_catalog_name (of the database), insufficient_privilege */
const LOGIN_REFUSED = ["28000", "28P01", "3D000", "42501"];

/** Whether the server answered, but refused the login: the user, the password or the database is wrong. */
export function isLoginRefused({ code, message }: DatabaseFault): boolean {
  // The client itself gives up, without a code, when the server asks for a password and the address has none.
  return LOGIN_REFUSED.includes(code ?? "") || message.startsWith("SASL: ");
}

/** Says for operators that the database cannot be used, and why. */
export function describeOutage(error: unknown): string {
  const isRefused = error instanceof DatabaseFault && isLoginRefused(error);
  const why = error instanceof Error ? error.message : String(error);
  return `The database ${isRefused ? "refuses the login" : "does not answer"} (${why})`;
}

/** Whether the query was cancelled, by its time limit or by an administrator, while the database is available. */
export function isCancelled({ code }: DatabaseFault): boolean {
  return code === CANCELLED;
}

/** Whether all connections that the database allows are taken, while the database is available. */
export function hasTooManyConnections({ code }: DatabaseFault): boolean {
  return code === TOO_MANY_CONNECTIONS;
}

/** Whether a write failed because the database is read-only. That is not a DatabaseFault, since reads succeed. */
export function isReadOnly(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === READ_ONLY;
}

/** insufficient_privilege */
const FORBIDDEN = "42501";

/** Whether the role lacks a right to what the statement does. */
export function isForbidden(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === FORBIDDEN;
}

/** invalid_schema_name, undefined_table, undefined_column, undefined_function, insufficient_privilege. */
const MISSING_OR_FORBIDDEN = ["3F000", "42P01", "42703", "42883", FORBIDDEN];

/** Whether the database lacks what the statement names, or the role a right to it: it fails whatever its values are. */
export function isMissingOrForbidden(error: unknown): boolean {
  return error instanceof Error && "code" in error && MISSING_OR_FORBIDDEN.includes(String(error.code));
}

/** duplicate_schema, duplicate_table (also of an index), duplicate_column, duplicate_object, duplicate_function. */
const DUPLICATE = ["42P06", "42P07", "42701", "42710", "42723"];

/** Whether a statement creates what exists. */
export function isDuplicate(error: unknown): error is Error {
  return error instanceof Error && "code" in error && DUPLICATE.includes(String(error.code));
}
