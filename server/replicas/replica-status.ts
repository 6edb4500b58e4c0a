/** Says whether a replica may answer live requests, and describes for operators why not. */

export type ReplicaStatus =
  /** `lag` is its maximum lag in milliseconds; null when it is unknown because the primary has never answered. */
  | { readonly kind: "used"; readonly lag: number | null }
  /** The checks have not run long enough yet to prove that its lag is small enough. */
  | { readonly kind: "new" }
  /** `lag` is in milliseconds; null when it is longer than can be measured. */
  | { readonly kind: "behind"; readonly lag: number | null }
  | { readonly kind: "away"; readonly why: string }
  /** It lacks migrations of the current schema. */
  | { readonly kind: "unmigrated" }
  /** It accepts writes, so it does not follow the primary. */
  | { readonly kind: "detached" }
  /** It follows a server that was promoted while the primary still answers, so their data may differ. */
  | { readonly kind: "diverged" }
  /** It has log that the primary lacks, as after a failover to another replica that had received less. */
  | { readonly kind: "ahead" }
  /** Its version of ICU orders texts differently from the primary's, whose indexes it has. */
  | { readonly kind: "disordered" }
  | { readonly kind: "foreign" };

/** Null for a replica that is used. */
export function describeStatus(status: ReplicaStatus): string | null {
  switch (status.kind) {
    case "used":
      return null;
    case "new":
      return "its lag is not known yet";
    case "behind":
      return status.lag === null
        ? "its lag exceeds --max-replica-lag"
        : `its lag of ${Math.ceil(status.lag / 1_000)} s exceeds --max-replica-lag`;
    case "away":
      return `it does not answer (${status.why})`;
    case "unmigrated":
      return "it lacks the current schema of Precast";
    case "detached":
      return "it accepts writes and does not follow the primary";
    case "diverged":
      return "it follows a promoted server instead of the primary";
    case "ahead":
      return "it has changes that the primary lacks, so it does not follow the primary";
    case "disordered":
      return "it has a different ICU version than the primary, so its copies of the primary's indexes may be in the wrong order";
    case "foreign":
      return "it is not a copy of the database at --database-url";
  }
}

/** For health and metrics: `error` says why the replica is not used, and `lag_seconds` is null when it is unknown. */
export type ReplicaHealth = {
  readonly ready: boolean;
  readonly lag_seconds: number | null;
  readonly error: string | null;
};

export function healthOf(status: ReplicaStatus): ReplicaHealth {
  const lag = "lag" in status && status.lag !== null ? Math.round(status.lag) / 1_000 : null;
  return { ready: status.kind === "used", lag_seconds: lag, error: describeStatus(status) };
}
