/** Whether a server is ready for requests: what load balancers ask before they send any. */
import type { TreeStanding } from "./tree-standing.ts";

export type Readiness = {
  readonly status: "ok" | "degraded" | "unavailable";
  /** It was told to stop: it finishes what it has and wants no more. */
  readonly draining: boolean;
  readonly tree: TreeStanding;
  readonly database: DatabaseStanding;
  /** Left out where there are none. */
  readonly replicas?: readonly DatabaseStanding[];
};

/** `error` says why it is not ready. */
export type DatabaseStanding = { readonly ready: boolean; readonly error: string | null };

/**
 * One of the two is enough. From the tree all that is free is answered, and were a server taken out because the database is away,
 * all would be taken out at once, with nobody left for what needs none. Without a tree all is answered live, as it is
 * before the first build. Replicas answer live while the database is away, but without it nothing counted arrives.
 */
export function readinessOf(
  tree: TreeStanding,
  database: DatabaseStanding,
  replicas: readonly DatabaseStanding[],
  draining: boolean,
): Readiness {
  const answers = [tree, database, ...replicas].some(({ ready }) => ready);
  const status = draining || !answers ? "unavailable" : tree.ready && database.ready ? "ok" : "degraded";
  return { status, draining, tree, database, ...(replicas.length === 0 ? {} : { replicas }) };
}
