/** Tells whether the tree to deploy is older than the deployed one, by what both have read of their database. */
import { readStateAt, STATE_FOLDER, type TreeState } from "../../shared/tree.ts";
import { isStatePath } from "../../shared/tree-file.ts";
import type { LocalTree } from "./local-tree.ts";
import type { Notes } from "./manifest.ts";
import { type Plan, touchedBy } from "./plan.ts";
import type { Store } from "./store.ts";

export class OlderTreeError extends Error {
  constructor({ app, built_at, source }: Deployed, own: Local, store: Store) {
    const how = own.source === source ? "from a later state of the same database" : "from another database";
    const what = `${store.name} has a newer tree of ${app.key}: it was built ${how} at ${built_at}, and this one at ${own.built_at}`;
    super(
      `${what}. Nothing was changed. Run \`precast build\`, and deploy again. If the database was put back to an earlier state, or the older tree is meant, deploy with --allow-older.`,
    );
    this.name = "OlderTreeError";
  }
}

type Deployed = Pick<TreeState, "app" | "built_at" | "source" | "snapshot">;
/** Of an app that the tree lacks, nothing is known but when the tree was built. */
type Local = Pick<TreeState, "built_at"> & Partial<Pick<TreeState, "source" | "snapshot">>;

/**
 * The error that refuses to replace a newer tree of an app; null when there is none. Trees differ if files for clients would
 * change: two builds of the same content are both welcome.
 */
export async function findNewer(
  store: Store,
  { builtAt }: Pick<LocalTree, "builtAt">,
  plan: Plan,
  { manifest }: Pick<Notes, "manifest">,
): Promise<OlderTreeError | null> {
  const path = `${STATE_FOLDER}/${plan.appFolder}.json`;
  if (manifest?.files.has(path) !== true || touchedBy(plan).every(isStatePath)) return null;
  const deployed = readStateAt(path, (await store.get(path))?.bytes.toString("utf8") ?? "");
  const own = plan.app?.state ?? (builtAt === null ? null : { built_at: builtAt });
  return deployed !== null && own !== null && isOlder(own, deployed) ? new OlderTreeError(deployed, own, store) : null;
}

/**
 * Two snapshots of one database can be compared, whatever the clocks of the machines say that built from them. Of two
 * databases only these are known.
 */
export function isOlder(own: Local, other: Deployed): boolean {
  if (own.source !== other.source || own.snapshot === undefined) return own.built_at < other.built_at;
  const [before, after] = [readSnapshot(own.snapshot), readSnapshot(other.snapshot)];
  return seesAllOf(after, before) && !seesAllOf(before, after);
}

/** A `pg_snapshot`: it sees the transactions before `end`, but for those that were `running`. */
type Snapshot = { readonly end: bigint; readonly running: ReadonlySet<bigint> };

function readSnapshot(text: string): Snapshot {
  const [, end = "0", running = ""] = /^\d+:(\d+):([\d,]*)$/.exec(text) ?? [];
  const ids = running.split(",").filter((id) => id !== "");
  return { end: BigInt(end), running: new Set(ids.map(BigInt)) };
}

function seesAllOf(one: Snapshot, other: Snapshot): boolean {
  const isSeen = (id: bigint) => id < other.end && !other.running.has(id);
  if ([...one.running].some(isSeen)) return false;
  const unseen = [...other.running].filter((id) => id >= one.end).length;
  return other.end - one.end <= BigInt(unseen);
}
