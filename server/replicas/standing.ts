/** Whether a replica may answer live requests, and what people are told of it when it may not. */

export type Standing =
  /** `lag`: the milliseconds for which it lacks something at most; null while there is no primary to compare it with. */
  | { readonly kind: "used"; readonly lag: number | null }
  /** Nothing has shown yet that it is near enough. */
  | { readonly kind: "new" }
  | { readonly kind: "behind"; readonly lag: number | null }
  | { readonly kind: "away"; readonly why: string }
  /** It lacks tables that queries need. */
  | { readonly kind: "unmigrated" }
  /** It takes writes of its own. */
  | { readonly kind: "detached" }
  /** It follows a server that was promoted, while the primary is there: what it has is not what the primary has. */
  | { readonly kind: "diverged" }
  /** Its library orders texts in another way than that of the primary, whose indexes it has. */
  | { readonly kind: "disordered" }
  | { readonly kind: "foreign" };

/** Null for one that is used. */
export function describeStanding(standing: Standing): string | null {
  switch (standing.kind) {
    case "used":
      return null;
    case "new":
      return "it is not known yet how far it is behind";
    case "behind":
      return standing.lag === null
        ? "it is behind by more than --max-replica-lag allows"
        : `it is ${Math.ceil(standing.lag / 1_000)} s behind, which is more than --max-replica-lag allows`;
    case "away":
      return `it does not answer (${standing.why})`;
    case "unmigrated":
      return "it lacks the current schema of Precast";
    case "detached":
      return "it takes writes of its own and follows nobody";
    case "diverged":
      return "it follows a server that was promoted, and not the primary";
    case "disordered":
      return "it orders texts by another version of ICU than the primary, whose indexes it has";
    case "foreign":
      return "it is another database, and no copy of the one that --database-url names";
  }
}

/** For machines: `error` says why it is not used, and `lag_seconds` is null where it is not known. */
export type StandingReading = {
  readonly ready: boolean;
  readonly lag_seconds: number | null;
  readonly error: string | null;
};

export function readStanding(standing: Standing): StandingReading {
  const lag = "lag" in standing && standing.lag !== null ? Math.round(standing.lag) / 1_000 : null;
  return { ready: standing.kind === "used", lag_seconds: lag, error: describeStanding(standing) };
}
