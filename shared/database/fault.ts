/** The ways in which a database can fail a caller who did nothing wrong. */

export type FaultReason = "unavailable" | "timeout" | "overloaded";

export class DatabaseFault extends Error {
  readonly reason: FaultReason;

  constructor(reason: FaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "DatabaseFault";
    this.reason = reason;
  }
}

const CANCELLED = "57014";
const AWAY = /^(08|28|57P|53|3D|58)/;

/** Reads an error of the PostgreSQL client: a fault of the database, or an error of ours that is passed on as it is. */
export function faultOf(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseFault) return error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === CANCELLED) return new DatabaseFault("timeout", "the query was cancelled by its time limit", error);
  const fromServer = "severity" in error;
  if (!fromServer || AWAY.test(code)) return new DatabaseFault("unavailable", error.message || code, error);
  return error;
}
