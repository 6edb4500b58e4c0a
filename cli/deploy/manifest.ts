/**
 * What a store holds. For certain what its manifest lists: `.precast/manifest.json`, replaced after all uploads of a deploy
 * and before its deletions. While a deploy is under way, `.precast/journal.json` marks what it changes: it is written
 * before anything is touched and again now and then during the uploads, and removed when everything is done and no purge
 * is owed. The same tree gives the same manifest, except for the generation number.
 */
import { areAppKeys, type FileDigest, type FileDigests, isTreeFile } from "../../shared/tree.ts";
import { STORE_FOLDER, type Store } from "./store.ts";

const FORMAT = 1;

export const MANIFEST = `${STORE_FOLDER}/manifest.json`;
export const JOURNAL = `${STORE_FOLDER}/journal.json`;

/** Headers of the files. A deploy with other values uploads all files again. */
type CacheHeaders = { readonly cacheControl: string; readonly cdnCacheControl: string };

export type UploadOptions = CacheHeaders & {
  /** Uploads every file again, whatever manifest and journal say. */
  readonly force: boolean;
};

export type Manifest = CacheHeaders & {
  /** Counts the deploys that have changed the store. */
  readonly generation: number;
  /** Keys of the apps. */
  readonly apps: readonly string[];
  /** Sorted by path. */
  readonly files: FileDigests;
};

export type Journal = CacheHeaders & {
  /** Generation number of the manifest that the deploy writes. */
  readonly generation: number;
  /** Unique id of the deploy. */
  readonly deploy: string;
  /** In the order in which they are uploaded. */
  readonly writes: FileDigests;
  /** So many of `writes`, from the first on, are uploaded for certain, by this deploy or interrupted ones before it. */
  readonly uploaded: number;
  readonly removes: readonly string[];
  /** Whether the deploy purges a CDN: then a purge of `writes` and `removes` is owed. */
  readonly purging: boolean;
  /** Paths that earlier deploys changed and did not purge. */
  readonly purges: readonly string[];
  /** Keys of the apps that all these paths belong to. The next manifest may lack some of them. */
  readonly apps: readonly string[];
};

/** Paths of which a CDN may still have an old version. */
export function unpurgedIn({ writes, removes, purges }: Journal): readonly string[] {
  return [...new Set([...writes.keys(), ...removes, ...purges])];
}

/** Paths whose purge is owed. A deploy that does not purge must keep them in the journal. */
export function owedIn(journal: Journal): readonly string[] {
  return journal.purging ? unpurgedIn(journal) : journal.purges;
}

export type StoreContents = {
  readonly manifest: Manifest | null;
  readonly journal: Journal | null;
  /** ETags of the two files, even if they cannot be used; null for a file that does not exist. */
  readonly etags: { readonly manifest: string | null; readonly journal: string | null };
  /** Files that certainly exist with this content and the wanted headers. */
  readonly certain: FileDigests;
  /** Those of `certain` that the manifest does not list: interrupted deploys have uploaded them. */
  readonly uploaded: FileDigests;
  /** Paths that may exist, with any content and headers. */
  readonly uncertainPaths: ReadonlySet<string>;
  /** Paths at which clients find a file already, whatever its content. */
  readonly visiblePaths: ReadonlySet<string>;
};

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
  const [{ content: manifest, ...manifestFile }, { content: journal, ...journalFile }] = await Promise.all([
    readPrivateFile(store, MANIFEST, readManifest, wanted.force),
    readPrivateFile(store, JOURNAL, readJournal, wanted.force),
  ]);
  const etags = { manifest: manifestFile.etag, journal: journalFile.etag };
  const listed: FileDigests = manifest?.files ?? new Map();
  // A journal of a deploy that has replaced the manifest says nothing more about uploads.
  const pending = journal !== null && journal.generation > (manifest?.generation ?? 0) ? journal : null;
  const uncertainPaths = new Set([...(pending?.writes.keys() ?? []), ...(journal?.removes ?? [])]);
  const isCounted = pending !== null && !wanted.force && hasHeaders(pending, wanted);
  const uploaded: FileDigests = new Map(isCounted ? [...pending.writes].slice(0, pending.uploaded) : []);
  const visiblePaths = new Set([...listed.keys(), ...uploaded.keys()]);
  const common = { manifest, journal, etags, uploaded };
  if (manifest !== null && !wanted.force && hasHeaders(manifest, wanted)) {
    const trusted = [...listed].filter(([path]) => !uncertainPaths.has(path));
    return { ...common, certain: new Map([...trusted, ...uploaded]), uncertainPaths, visiblePaths };
  }
  // Without a manifest that is trusted, the store has to list its files.
  if (manifest === null || wanted.force) for await (const path of listTreeFiles(store)) visiblePaths.add(path);
  return { ...common, certain: uploaded, uncertainPaths: new Set([...visiblePaths, ...uncertainPaths]), visiblePaths };
}

async function readPrivateFile<T>(store: Store, key: string, read: (text: string) => T | null, force: boolean) {
  const stored = await store.get(key);
  if (stored === null) return { content: null, etag: null };
  const content = read(stored.bytes.toString("utf8"));
  if (content === null && !force) throw new UnreadableStoreError(store, key);
  return { content, etag: stored.etag };
}

function hasHeaders({ cacheControl, cdnCacheControl }: CacheHeaders, wanted: CacheHeaders): boolean {
  return cacheControl === wanted.cacheControl && cdnCacheControl === wanted.cdnCacheControl;
}

/** Files of others in the same place are left alone. */
async function* listTreeFiles(store: Store): AsyncGenerator<string> {
  for await (const key of store.list()) if (isTreeFile(key)) yield key;
}

// The JSON of both files: a SHA-256 and a size by path.

type DigestList = Readonly<Record<string, readonly [sha256: string, size: number]>>;
type HeadersJson = { readonly format: number; readonly cache_control: string; readonly cdn_cache_control: string };
type ManifestJson = HeadersJson & Omit<Manifest, keyof CacheHeaders | "files"> & { readonly files: DigestList };
type JournalJson = HeadersJson & Omit<Journal, keyof CacheHeaders | "writes"> & { readonly writes: DigestList };

export function writeManifest({ generation, cacheControl, cdnCacheControl, apps, files }: Manifest): string {
  const head = { format: FORMAT, generation, cache_control: cacheControl, cdn_cache_control: cdnCacheControl, apps };
  const lines = [...files].map(([path, { sha256, size }]) => `${JSON.stringify(path)}:["${sha256}",${size}]`);
  return `${JSON.stringify(head).slice(0, -1)},"files":{\n${lines.join(",\n")}\n}}\n`;
}

export function writeJournal({ cacheControl, cdnCacheControl, writes, ...rest }: Journal): string {
  const headers = { cache_control: cacheControl, cdn_cache_control: cdnCacheControl };
  const digests = [...writes].map(([path, { sha256, size }]) => [path, [sha256, size] as const] as const);
  const json: JournalJson = { format: FORMAT, ...rest, ...headers, writes: Object.fromEntries(digests) };
  return `${JSON.stringify(json)}\n`;
}

/** Null if broken, of another format, or with a path that is no tree file: a deploy may delete the paths in it. */
export function readManifest(text: string): Manifest | null {
  return readJson<ManifestJson, Manifest>(text, ({ generation, apps, files, ...json }) => {
    return { generation, ...headersIn(json), apps, files: readDigests(files) };
  });
}

/** Null as for a manifest. */
export function readJournal(text: string): Journal | null {
  return readJson<JournalJson, Journal>(text, (json) => {
    const { generation, deploy, uploaded, removes, purging, purges, apps } = json;
    const isWhole = [removes, purges].every((paths) => Array.isArray(paths) && paths.every(isTreeFile));
    if (!isWhole || !Number.isInteger(uploaded)) return null;
    const what = { generation, deploy, writes: readDigests(json.writes), uploaded, removes };
    return { ...what, ...headersIn(json), purging, purges, apps };
  });
}

/** Null when the JSON is broken or of another format, and when `read` returns null or throws. */
function readJson<J extends ManifestJson | JournalJson, T>(text: string, read: (json: J) => T | null): T | null {
  try {
    const json = JSON.parse(text) as J;
    const isKnown = json.format === FORMAT && Number.isInteger(json.generation) && areAppKeys(json.apps);
    return isKnown ? read(json) : null;
  } catch {
    return null;
  }
}

function headersIn({ cache_control, cdn_cache_control }: Omit<HeadersJson, "format">): CacheHeaders {
  return { cacheControl: cache_control, cdnCacheControl: cdn_cache_control };
}

/** Throws for a broken list, and for a path that is no tree file. */
function readDigests(list: DigestList): Map<string, FileDigest> {
  return new Map(Object.entries(list).map(([path, digest]) => [path, readDigest(path, digest)] as const));
}

function readDigest(path: string, [sha256, size]: readonly [string, number]): FileDigest {
  if (!isTreeFile(path) || !/^[0-9a-f]{64}$/.test(sha256) || !Number.isInteger(size)) {
    throw new Error("not the digest of a tree file");
  }
  return { sha256, size };
}
