/** What a store holds: for sure by its manifest, and perhaps by the journal of a deploy that did not end. */
import type { FileMark } from "../build/file-mark.ts";
import { doubtfulIn, JOURNAL, type Journal, readJournal } from "./journal.ts";
import { MANIFEST, type Manifest, readManifest } from "./manifest.ts";
import type { Store } from "./store/store.ts";
import { isTreeFile } from "./tree-file.ts";

export type StoreContents = {
  readonly manifest: Manifest | null;
  readonly journal: Journal | null;
  /** Of what is there, whatever it is worth; null where nothing is. */
  readonly etags: { readonly manifest: string | null; readonly journal: string | null };
  /** What is there for sure. */
  readonly known: ReadonlyMap<string, FileMark>;
  /** Paths that may be there, in any form. */
  readonly doubtful: ReadonlySet<string>;
  /** Paths that clients find there already, with whatever in them. */
  readonly found: ReadonlySet<string>;
};

export type Wanted = {
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  /** Trusts nothing that was noted. */
  readonly force: boolean;
};

/** The notes of the store can't be used. */
export class UnreadableStoreError extends Error {
  constructor(store: Store, key: string) {
    const advice = "--force uploads every file anew and writes it again.";
    super(`${key} in ${store.name} is broken or of another version of Precast. ${advice}`);
    this.name = "UnreadableStoreError";
  }
}

/** Throws UnreadableStoreError, unless forced. */
export async function readContents(store: Store, wanted: Wanted): Promise<StoreContents> {
  const [manifest, journal] = await Promise.all([
    readNote(store, MANIFEST, readManifest, wanted.force),
    readNote(store, JOURNAL, readJournal, wanted.force),
  ]);
  const etags = { manifest: manifest.etag, journal: journal.etag };
  const notes = { manifest: manifest.note, journal: journal.note, etags };
  const noted = manifest.note?.files ?? new Map<string, FileMark>();
  const doubtful = new Set(journal.note === null ? [] : doubtfulIn(journal.note, manifest.note?.generation ?? 0));
  if (manifest.note !== null && !wanted.force && hasHeaders(manifest.note, wanted)) {
    return { ...notes, known: without(noted, doubtful), doubtful, found: new Set(noted.keys()) };
  }
  // Without a manifest the store itself has to tell.
  const listed = manifest.note === null || wanted.force ? await listFiles(store) : [];
  const found = new Set([...noted.keys(), ...listed]);
  return { ...notes, known: new Map(), doubtful: new Set([...found, ...doubtful]), found };
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

function hasHeaders({ cacheControl, cdnCacheControl }: Manifest, wanted: Wanted): boolean {
  return cacheControl === wanted.cacheControl && cdnCacheControl === wanted.cdnCacheControl;
}

function without(files: ReadonlyMap<string, FileMark>, doubtful: ReadonlySet<string>): Map<string, FileMark> {
  return new Map([...files].filter(([path]) => !doubtful.has(path)));
}

/** What others keep in the same place is left alone. */
async function listFiles(store: Store): Promise<string[]> {
  const files: string[] = [];
  for await (const key of store.list()) if (isTreeFile(key)) files.push(key);
  return files;
}
