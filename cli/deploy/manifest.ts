/**
 * What a store holds of an app. For certain what its manifest lists: `.precast/<app folder>/manifest.json`, replaced after
 * all uploads of a deploy and before its deletions. While a deploy is under way, `journal.json` beside it marks what it
 * changes: it is written before anything is touched and again now and then during the uploads, and removed when everything is
 * done and no purge is owed. The same tree gives the same manifest, except for the generation.
 */
import * as z from "zod";
import { APP_KEY } from "../../shared/api/catalog.ts";
import { once, parseJson } from "../../shared/settings/zod.ts";
import { digestSchema, type FileDigests, namePrivateFile } from "../../shared/tree.ts";
import { findAppFolder, isTreeFile } from "../../shared/tree-file.ts";
import type { Store } from "./store.ts";

const FORMAT = 2;

/** Headers of the files. A deploy with other values uploads all files again. */
type CacheHeaders = { readonly cacheControl: string; readonly cdnCacheControl: string };

export type UploadOptions = CacheHeaders & {
  /** Uploads every file again, whatever manifest and journal say. */
  readonly force: boolean;
};

/** What both files begin with. */
const head = () => ({
  format: z.literal(FORMAT),
  /**
   * The fencing token of the deploy: higher than that of every deploy which had the lock before and wrote anything. A journal
   * belongs to the manifest of its deploy.
   */
  generation: z.int(),
  cache_control: z.string(),
  cdn_cache_control: z.string(),
  /** Its key; null when only a hash of it is known. */
  app: z.string().regex(APP_KEY).nullable(),
});
/** A deploy may delete these. */
export const paths = () => z.array(z.string().refine(isTreeFile)).readonly();
/** A SHA-256 and a size by path. */
export const digests = () =>
  z
    .record(z.string().refine(isTreeFile), z.tuple([digestSchema().shape.sha256, digestSchema().shape.size]))
    .transform(
      (list): FileDigests => new Map(Object.entries(list).map(([path, [sha256, size]]) => [path, { sha256, size }])),
    );

/** In the names of this program. */
export function nameHeaders<T extends { readonly cache_control: string; readonly cdn_cache_control: string }>(
  content: T,
) {
  const { cache_control: cacheControl, cdn_cache_control: cdnCacheControl, ...rest } = content;
  return { ...rest, cacheControl, cdnCacheControl };
}

const manifestSchema = once(() => z.object({ ...head(), files: digests() }).transform(nameHeaders));
/** `files` are sorted by path. */
export type Manifest = Readonly<Omit<z.output<ReturnType<typeof manifestSchema>>, "format">>;

/** What a journal says beside its head. */
export const journalParts = () => ({
  /** Unique id of the deploy. */
  deploy: z.string(),
  /** In the order in which they are uploaded. */
  writes: digests(),
  /** So many of `writes`, from the first on, are uploaded for certain, by this deploy or interrupted ones before it. */
  uploaded: z.int(),
  removes: paths(),
  /** Whether the deploy purges a CDN: then a purge of `writes` and `removes` is owed. */
  purging: z.boolean(),
  /** Paths that earlier deploys changed and did not purge. */
  purges: paths(),
});
const journalSchema = once(() => z.object({ ...head(), ...journalParts() }).transform(nameHeaders));
export type Journal = Readonly<Omit<z.output<ReturnType<typeof journalSchema>>, "format">>;

/** Paths of which a CDN may still have an old version. */
export function unpurgedIn({ writes, removes, purges }: Journal): readonly string[] {
  return [...new Set([...writes.keys(), ...removes, ...purges])];
}

/** Paths whose purge is owed. A deploy that does not purge must keep them in the journal. */
export function owedIn(journal: Journal): readonly string[] {
  return journal.purging ? unpurgedIn(journal) : journal.purges;
}

/** The manifest and the journal of an app as a store has them. */
export type Notes = {
  readonly manifest: Manifest | null;
  readonly journal: Journal | null;
  /** ETags of the two files, even if they cannot be used; null for a file that does not exist. */
  readonly etags: { readonly manifest: string | null; readonly journal: string | null };
};

export const NO_NOTES: Notes = { manifest: null, journal: null, etags: { manifest: null, journal: null } };

export type StoreContents = Notes & {
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
export class UnreadableStoreError extends Error {
  constructor(store: Store, key: string) {
    const advice = "Deploy with --force to upload every file again and replace it.";
    super(`${key} in ${store.name} is corrupt or was written by another version of Precast. ${advice}`);
    this.name = "UnreadableStoreError";
  }
}

/** Throws UnreadableStoreError, unless `force` is set. */
export async function readNotes(
  store: Store,
  appFolder: string,
  { force }: Pick<UploadOptions, "force">,
): Promise<Notes> {
  const names = ["manifest.json", "journal.json"] as const;
  const [manifestKey, journalKey] = names.map((name) => namePrivateFile(appFolder, name)) as [string, string];
  const [manifest, journal] = await Promise.all([
    readPrivateFile(store, manifestKey, (text) => readManifest(text, appFolder), force),
    readPrivateFile(store, journalKey, (text) => readJournal(text, appFolder), force),
  ]);
  return {
    manifest: manifest.content,
    journal: journal.content,
    etags: { manifest: manifest.etag, journal: journal.etag },
  };
}

export async function readPrivateFile<T>(store: Store, key: string, read: (text: string) => T | null, force: boolean) {
  const stored = await store.get(key);
  if (stored === null) return { content: null, etag: null };
  const content = read(stored.bytes.toString("utf8"));
  if (content === null && !force) throw new UnreadableStoreError(store, key);
  return { content, etag: stored.etag };
}

/** `list` lists the files of the app in the store: it is asked for when no manifest tells. */
export async function readContents(
  { manifest, journal, etags }: Notes,
  wanted: UploadOptions,
  list: () => Promise<Iterable<string>>,
): Promise<StoreContents> {
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
  if (manifest === null || wanted.force) for (const path of await list()) visiblePaths.add(path);
  return { ...common, certain: uploaded, uncertainPaths: new Set([...visiblePaths, ...uncertainPaths]), visiblePaths };
}

function hasHeaders({ cacheControl, cdnCacheControl }: CacheHeaders, wanted: CacheHeaders): boolean {
  return cacheControl === wanted.cacheControl && cdnCacheControl === wanted.cdnCacheControl;
}

export function writeManifest({ generation, cacheControl, cdnCacheControl, app, files }: Manifest): string {
  const head = { format: FORMAT, generation, cache_control: cacheControl, cdn_cache_control: cdnCacheControl, app };
  const lines = [...files].map(([path, { sha256, size }]) => `${JSON.stringify(path)}:["${sha256}",${size}]`);
  return `${JSON.stringify(head).slice(0, -1)},"files":{\n${lines.join(",\n")}\n}}\n`;
}

export function writeJournal({ cacheControl, cdnCacheControl, writes, ...rest }: Journal): string {
  const headers = { cache_control: cacheControl, cdn_cache_control: cdnCacheControl };
  const digests = [...writes].map(([path, { sha256, size }]) => [path, [sha256, size] as const] as const);
  return `${JSON.stringify({ format: FORMAT, ...rest, ...headers, writes: Object.fromEntries(digests) })}\n`;
}

/** Null if broken, of another format, or with a path that is no file of the app: a deploy may delete the paths in it. */
export function readManifest(text: string, appFolder: string): Manifest | null {
  const manifest = parseJson(text, manifestSchema());
  return manifest !== null && areOf(appFolder, manifest.files.keys()) ? manifest : null;
}

/** Null as for a manifest. */
export function readJournal(text: string, appFolder: string): Journal | null {
  const journal = parseJson(text, journalSchema());
  return journal !== null && areOf(appFolder, unpurgedIn(journal)) ? journal : null;
}

function areOf(appFolder: string, paths: Iterable<string>): boolean {
  for (const path of paths) if (findAppFolder(path) !== appFolder) return false;
  return true;
}
