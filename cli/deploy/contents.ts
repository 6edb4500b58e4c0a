/** Reads what a store holds: for certain by its manifest, and perhaps by the journal of an interrupted deploy. */
import { type FileDigest, type FileDigests, isTreeFile } from "../../shared/tree.ts";
import { JOURNAL, type Journal, readCheckpoints, readJournal, type StoreContents, uncertainIn } from "./journal.ts";
import { MANIFEST, type Manifest, readManifest, type UploadOptions } from "./manifest.ts";
import type { Store } from "./store.ts";

/** The manifest or the journal in the store cannot be read. */
class UnreadableStoreError extends Error {
  constructor(store: Store, key: string) {
    const advice = "Deploy with --force to upload every file again and replace it.";
    super(`${key} in ${store.name} is corrupt or was written by another version of Precast. ${advice}`);
    this.name = "UnreadableStoreError";
  }
}

/** Throws UnreadableStoreError, unless `force` is set. */
export async function readContents(store: Store, wanted: UploadOptions): Promise<StoreContents> {
  const [manifest, journal] = await Promise.all([
    readPrivateFile(store, MANIFEST, readManifest, wanted.force),
    readPrivateFile(store, JOURNAL, readJournal, wanted.force),
  ]);
  const etags = { manifest: manifest.etag, journal: journal.etag };
  const manifestFiles = manifest.content?.files ?? new Map<string, FileDigest>();
  const generation = manifest.content?.generation ?? 0;
  const uncertainPaths = new Set(journal.content === null ? [] : uncertainIn(journal.content, generation));
  const checkpoints =
    journal.etag === null ? NO_CHECKPOINTS : await readCheckpoints(store, journal.content?.deploy ?? null);
  const uploaded = uploadedBy(journal.content, checkpoints.files, generation, wanted);
  const common = {
    manifest: manifest.content,
    journal: journal.content,
    etags,
    uploaded,
    checkpointCount: checkpoints.checkpointCount,
  };
  if (manifest.content !== null && !wanted.force && hasHeaders(manifest.content, wanted)) {
    const certain = new Map([...without(manifestFiles, uncertainPaths), ...uploaded]);
    return { ...common, certain, uncertainPaths, visiblePaths: new Set([...manifestFiles.keys(), ...uploaded.keys()]) };
  }
  // Without a manifest that is trusted, the store has to list its files.
  const listed = manifest.content === null || wanted.force ? await listFiles(store) : [];
  const visiblePaths = new Set([...manifestFiles.keys(), ...uploaded.keys(), ...listed]);
  return { ...common, certain: uploaded, uncertainPaths: new Set([...visiblePaths, ...uncertainPaths]), visiblePaths };
}

const NO_CHECKPOINTS = { files: new Map<string, FileDigest>(), checkpointCount: 0 };

/** Files that interrupted deploys have uploaded with the wanted headers, and that the manifest does not list yet. */
function uploadedBy(
  journal: Journal | null,
  checkpointed: FileDigests,
  generation: number,
  wanted: UploadOptions,
): FileDigests {
  const isInManifest = journal === null || journal.generation <= generation;
  if (isInManifest || wanted.force || !hasHeaders(journal, wanted)) return NO_CHECKPOINTS.files;
  const writes = new Set(journal.writes);
  return new Map([...journal.uploaded, ...checkpointed].filter(([path]) => writes.has(path)));
}

async function readPrivateFile<T>(
  store: Store,
  key: string,
  read: (text: string) => T | null,
  force: boolean,
): Promise<{ readonly content: T | null; readonly etag: string | null }> {
  const stored = await store.get(key);
  if (stored === null) return { content: null, etag: null };
  const content = read(stored.bytes.toString("utf8"));
  if (content === null && !force) throw new UnreadableStoreError(store, key);
  return { content, etag: stored.etag };
}

function hasHeaders({ cacheControl, cdnCacheControl }: Manifest | Journal, wanted: UploadOptions): boolean {
  return cacheControl === wanted.cacheControl && cdnCacheControl === wanted.cdnCacheControl;
}

function without(files: FileDigests, uncertainPaths: ReadonlySet<string>): Map<string, FileDigest> {
  return new Map([...files].filter(([path]) => !uncertainPaths.has(path)));
}

/** Lists tree files only: files of others in the same place are left alone. */
async function listFiles(store: Store): Promise<string[]> {
  const files: string[] = [];
  for await (const key of store.list()) if (isTreeFile(key)) files.push(key);
  return files;
}
