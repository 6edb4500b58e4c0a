/** Whether a server is ready for requests: what load balancers ask before they send any. */
import type { TreeStanding } from "./tree-standing.ts";

export type Readiness = {
  readonly status: "ok" | "degraded" | "unavailable";
  /** It was told to stop: it finishes what it has and wants no more. */
  readonly draining: boolean;
  readonly tree: TreeStanding;
  readonly database: DatabaseStanding;
};

/** `error` says why it is not ready. */
export type DatabaseStanding = { readonly ready: boolean; readonly error: string | null };

/**
 * One of the two is enough. From the tree all that is free is answered, and were a server taken out because the database is away,
 * all would be taken out at once, with nobody left for what needs none. Without a tree all is answered live, as it is
 * before the first build.
 */
export function readinessOf(tree: TreeStanding, database: DatabaseStanding, draining: boolean): Readiness {
  const ready = [tree, database].filter((part) => part.ready).length;
  const status = draining || ready === 0 ? "unavailable" : ready === 1 ? "degraded" : "ok";
  return { status, draining, tree, database };
}
