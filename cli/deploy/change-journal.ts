/**
 * The journal of a change to a store: what is written before the change, and what of it stays behind it. The format is
 * that of journal.ts.
 */
import { removeCheckpoints } from "./checkpoint.ts";
import { JOURNAL, type Journal, writeJournal } from "./journal.ts";
import type { LocalTree } from "./local-tree.ts";
import type { Plan } from "./plan.ts";
import { putPrivateFile } from "./store/private-file.ts";
import type { Store } from "./store/store.ts";
import type { StoreContents, UploadOptions } from "./store-contents.ts";

/** What a deploy changes in a store, and why. */
export type StoreChange = Pick<UploadOptions, "cacheControl" | "cdnCacheControl"> & {
  readonly tree: LocalTree;
  readonly before: StoreContents;
  readonly plan: Plan;
  /** Generation number of the manifest that the store has after this deploy. */
  readonly generation: number;
  /** Unique id of this deploy. Its journal and its checkpoints contain it. */
  readonly deploy: string;
  /**
   * Whether the store has to change at all. This can be true for an empty plan: the manifest may lack files that an
   * interrupted deploy uploaded.
   */
  readonly hasChanges: boolean;
  /** Whether this deploy purges a CDN. */
  readonly purging: boolean;
  /** Paths that earlier deploys left to be purged. */
  readonly unpurged: readonly string[];
  /** Keys of all apps that the paths in this change may belong to. */
  readonly apps: readonly string[];
};

/** The journal that a change begins with. */
export function journalOf({ plan, before, ...change }: StoreChange): Journal {
  const { generation, deploy, cacheControl, cdnCacheControl, purging, unpurged, apps } = change;
  const [planned, removes] = [plan.writes.flat().map(({ path }) => path), plan.removes.flat()];
  const touched = new Set([...planned, ...removes]);
  // Uploads of interrupted deploys that still count: the manifest lists them only once this deploy has replaced it.
  const uploaded = new Map([...before.uploaded].filter(([path]) => !touched.has(path)));
  const writes = [...planned, ...uploaded.keys()];
  return {
    generation,
    deploy,
    cacheControl,
    cdnCacheControl,
    writes,
    removes,
    uploaded,
    purging,
    purges: unpurged,
    apps,
  };
}

/**
 * The last step of a deploy: removes checkpoints and journal. A deploy that does not purge leaves a journal if earlier
 * deploys owe a purge: the next deploy that purges makes up for it.
 */
export async function endJournal(
  store: Store,
  change: StoreChange,
  checkpointCount: number,
  throwIfStopped: () => void,
): Promise<void> {
  const { purging, unpurged, before, hasChanges } = change;
  // Checkpoints go first: without a journal, no deploy looks for them.
  await removeCheckpoints(store, checkpointCount, throwIfStopped);
  if (purging || unpurged.length === 0) {
    if (before.journal !== null || hasChanges) await store.remove(JOURNAL, throwIfStopped);
  } else if (hasChanges) {
    await writeOwed(store, change, unpurged, throwIfStopped);
  }
}

/** Replaces the journal with one that lists nothing but paths to purge: all uploads and deletions are done. */
export async function writeOwed(
  store: Store,
  change: StoreChange,
  unpurged: readonly string[],
  throwIfStopped: () => void,
): Promise<void> {
  const text = writeJournal({ ...journalOf(change), writes: [], removes: [], uploaded: new Map(), purges: unpurged });
  await putPrivateFile(store, JOURNAL, text, { throwIfStopped });
}
