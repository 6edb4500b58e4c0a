/** Decides whether a server is ready for requests, which load balancers check before they send any. */
import type { TreeHealth } from "./tree-health.ts";

export type Readiness = {
  readonly status: "ok" | "degraded" | "unavailable";
  /** True once the server is told to stop: it finishes open requests and should get no new ones. */
  readonly draining: boolean;
  readonly tree: TreeHealth;
  readonly database: Health;
  readonly ledger: Health;
  /** Absent when no replicas are configured. */
  readonly replicas?: readonly Health[];
};

/** `error` says why the database, or the folder of the ledger, is not ready; null when it is. */
export type Health = { readonly ready: boolean; readonly error: string | null };

/**
 * The tree or a database alone is enough. With a tree, all free requests are answered: if servers counted as
 * unavailable without the database, all would be removed at once, and nobody would answer requests that do not need it.
 * Without a tree, as before the first build, everything is answered live. Replicas answer live requests while the
 * primary is unavailable, but counts do not arrive then, so the server is degraded. Nor is it healthy while it cannot
 * store counts, and refuses the requests that it would have to count.
 */
export function readinessOf(
  tree: TreeHealth,
  database: Health,
  ledger: Health,
  replicas: readonly Health[],
  draining: boolean,
): Readiness {
  const answers = [tree, database, ...replicas].some(({ ready }) => ready);
  const isHealthy = [tree, database, ledger].every(({ ready }) => ready);
  const status = draining || !answers ? "unavailable" : isHealthy ? "ok" : "degraded";
  return { status, draining, tree, database, ledger, ...(replicas.length === 0 ? {} : { replicas }) };
}
