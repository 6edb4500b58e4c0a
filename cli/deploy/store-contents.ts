/** Reads what a store holds: for certain by its manifest, and perhaps by the journal of an interrupted deploy. */
import type { FileDigest, FileDigests } from "../build/file-digest.ts";
import { readCheckpoints } from "./checkpoint.ts";
import { doubtfulIn, JOURNAL, type Journal, readJournal } from "./journal.ts";
import { MANIFEST, type Manifest, readManifest } from "./manifest.ts";
import type { Store } from "./store/store.ts";
import { isTreeFile } from "./tree-file.ts";

export type StoreContents = {
  readonly manifest: Manifest | null;
  readonly journal: Journal | null;
  /** ETags of the two files, even if they cannot be used; null for a file that does not exist. */
  readonly etags: { readonly manifest: string | null; readonly journal: string | null };
  /** Files that certainly exist with this content and the wanted headers. */
  readonly known: FileDigests;
  /** Those of `known` that the manifest does not list: interrupted deploys have uploaded them. */
  readonly uploaded: FileDigests;
  /** Number of checkpoint files in the store. */
  readonly checkpoints: number;
  /** Paths that may exist, with any content and headers. */
  readonly doubtful: ReadonlySet<string>;
  /** Paths at which clients find a file already, whatever its content. */
  readonly found: ReadonlySet<string>;
};

export type Wanted = {
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  /** Uploads every file again, whatever manifest, journal and checkpoints say. */
  readonly force: boolean;
};

/** The manifest or the journal in the store cannot be read. */
export class UnreadableStoreError extends Error {
  constructor(store: Store, key: string) {
    const advice = "--force uploads every file anew and writes it again.";
    super(`${key} in ${store.name} is broken or of another version of Precast. ${advice}`);
    this.name = "UnreadableStoreError";
  }
}

/** Throws UnreadableStoreError, unless `force` is set. */
export async function readContents(store: Store, wanted: Wanted): Promise<StoreContents> {
  const [manifest, journal] = await Promise.all([
    readNote(store, MANIFEST, readManifest, wanted.force),
    readNote(store, JOURNAL, readJournal, wanted.force),
  ]);
  const etags = { manifest: manifest.etag, journal: journal.etag };
  const noted = manifest.note?.files ?? new Map<string, FileDigest>();
  const generation = manifest.note?.generation ?? 0;
  const doubtful = new Set(journal.note === null ? [] : doubtfulIn(journal.note, generation));
  const checkpoints =
    journal.etag === null ? NO_CHECKPOINTS : await readCheckpoints(store, journal.note?.deploy ?? null);
  const uploaded = uploadedBy(journal.note, checkpoints.files, generation, wanted);
  const notes = { manifest: manifest.note, journal: journal.note, etags, uploaded, checkpoints: checkpoints.notes };
  if (manifest.note !== null && !wanted.force && hasHeaders(manifest.note, wanted)) {
    const known = new Map([...without(noted, doubtful), ...uploaded]);
    return { ...notes, known, doubtful, found: new Set([...noted.keys(), ...uploaded.keys()]) };
  }
  // Without a manifest that is trusted, the store has to list its files.
  const listed = manifest.note === null || wanted.force ? await listFiles(store) : [];
  const found = new Set([...noted.keys(), ...uploaded.keys(), ...listed]);
  return { ...notes, known: uploaded, doubtful: new Set([...found, ...doubtful]), found };
}

const NO_CHECKPOINTS = { files: new Map<string, FileDigest>(), notes: 0 };

/** Files that interrupted deploys have uploaded with the wanted headers, and that the manifest does not list yet. */
function uploadedBy(journal: Journal | null, since: FileDigests, generation: number, wanted: Wanted): FileDigests {
  const isTold = journal === null || journal.generation <= generation;
  if (isTold || wanted.force || !hasHeaders(journal, wanted)) return NO_CHECKPOINTS.files;
  const writes = new Set(journal.writes);
  return new Map([...journal.uploaded, ...since].filter(([path]) => writes.has(path)));
}

async function readNote<T>(
  store: Store,
  key: string,
  read: (text: string) => T | null,
  force: boolean,
): Promise<{ readonly note: T | null; readonly etag: string | null }> {
  const stored = await store.get(key);
  if (stored === null) return { note: null, etag: null };
  const note = read(stored.bytes.toString("utf8"));
  if (note === null && !force) throw new UnreadableStoreError(store, key);
  return { note, etag: stored.etag };
}

function hasHeaders({ cacheControl, cdnCacheControl }: Manifest | Journal, wanted: Wanted): boolean {
  return cacheControl === wanted.cacheControl && cdnCacheControl === wanted.cdnCacheControl;
}

function without(files: FileDigests, doubtful: ReadonlySet<string>): Map<string, FileDigest> {
  return new Map([...files].filter(([path]) => !doubtful.has(path)));
}

/** Lists tree files only: files of others in the same place are left alone. */
async function listFiles(store: Store): Promise<string[]> {
  const files: string[] = [];
  for await (const key of store.list()) if (isTreeFile(key)) files.push(key);
  return files;
}
