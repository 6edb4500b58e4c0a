/**
 * Uploads media beside the tree, to where their addresses lead. What a store has of them is written down in it, so that each
 * is sent once; none is ever deleted, for answers that clients have kept may still lead to it.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { segment } from "../../shared/api/address.ts";
import { runConcurrently } from "../../shared/async.ts";
import { findMediaFolder, listMedia, loadMediaTypes, nameMediaFolder } from "../../shared/media.ts";
import { once, parseJson } from "../../shared/settings/zod.ts";
import { digestBytes, digestSchema, type FileDigest, namePrivateFile } from "../../shared/tree.ts";
import { explainFailure } from "./change.ts";
import { putPrivateFile, STORE_FOLDER, type Store } from "./store.ts";

export type MediaOptions = {
  readonly dataDir: string;
  readonly concurrency: number;
  /** Uploads what the store has as well. */
  readonly force: boolean;
  /** Called with the path of each file that is uploaded, or would be. */
  readonly onMedia?: ((path: string) => void) | undefined;
};

export type MediaDeployed = { readonly written: number; readonly unchanged: number; readonly bytes: number };

const FORMAT = 1;
export const EARLIER_LIST = `${STORE_FOLDER}/media.json`;
/** Files after which the list is written: an interruption loses no more uploads than these. */
const FILES_PER_LIST = 500;
/** Videos are held in memory while they are sent. */
const MOST_AT_ONCE = 4;
/** A week: a file may be replaced by another one of its name, and then it is seen by then at the latest. */
const CACHE_CONTROL = "public, max-age=604800";

/** Throws an Error when there are no media of any of these apps. */
export function requireMedia(appKeys: readonly string[], { dataDir }: Pick<MediaOptions, "dataDir">): void {
  if (appKeys.every((key) => listMedia(dataDir, key).length === 0)) throw new Error(describeAbsence(appKeys, dataDir));
}

/** `check` throws when nothing more may be written; null in a dry run. Throws DeployError. */
export async function deployMedia(
  store: Store,
  appKey: string,
  options: MediaOptions & { readonly check: (() => void) | null },
): Promise<MediaDeployed> {
  const paths = listMedia(options.dataDir, appKey).map((name) => `${nameMediaFolder(appKey)}/${name}`);
  if (paths.length === 0) return { written: 0, unchanged: 0, bytes: 0 };
  const list = namePrivateFile(segment(appKey), "media.json");
  const listed = await readList(store, list);
  const again = "The tree was not changed. Run the deploy again: it uploads the rest.";
  return explainFailure(again, () => uploadAll(store, list, paths, listed, options));
}

function describeAbsence(appKeys: readonly string[], dataDir: string): string {
  const what = `There are no media of ${appKeys.join(", ")} in ${findMediaFolder(dataDir)}. Nothing was changed.`;
  return `${what} Import a bundle that has a folder of media, with the same --data-dir, or deploy without --media.`;
}

async function uploadAll(
  store: Store,
  list: string,
  paths: readonly string[],
  listed: Map<string, FileDigest>,
  { dataDir, concurrency, force, check, onMedia }: Parameters<typeof deployMedia>[2],
): Promise<MediaDeployed> {
  const findType = await loadMediaTypes();
  let [written, bytes] = [0, 0];
  const upload = async (path: string) => {
    const content = await readFile(join(findMediaFolder(dataDir), path));
    const digest = digestBytes(content);
    if (!force && listed.get(path)?.sha256 === digest.sha256) return;
    onMedia?.(path);
    written += 1;
    bytes += digest.size;
    if (check === null) return;
    const headers = { cacheControl: CACHE_CONTROL, cdnCacheControl: null, tags: [], contentType: findType(path) };
    await store.put(path, content, { headers, sha256: digest.sha256, throwIfStopped: check });
    listed.set(path, digest);
  };
  for (let start = 0; start < paths.length; start += FILES_PER_LIST) {
    const before = written;
    await runConcurrently(paths.slice(start, start + FILES_PER_LIST), Math.min(concurrency, MOST_AT_ONCE), upload);
    if (check !== null && written > before)
      await putPrivateFile(store, list, writeList(listed), { throwIfStopped: check });
  }
  return { written, unchanged: paths.length - written, bytes };
}

// The list of the media that a store has. A broken one costs no more than to upload them again.

const listSchema = once(() =>
  z.object({
    format: z.literal(FORMAT),
    files: z.record(z.string(), z.tuple([digestSchema().shape.sha256, digestSchema().shape.size])),
  }),
);

async function readList(store: Store, list: string): Promise<Map<string, FileDigest>> {
  const stored = await store.get(list);
  const files = stored === null ? {} : (parseJson(stored.bytes.toString("utf8"), listSchema())?.files ?? {});
  return new Map(Object.entries(files).map(([path, [sha256, size]]) => [path, { sha256, size }]));
}

function writeList(listed: ReadonlyMap<string, FileDigest>): string {
  const files = [...listed].sort(([one], [other]) => (one < other ? -1 : 1));
  const digests = files.map(([path, { sha256, size }]) => [path, [sha256, size] as const] as const);
  return `${JSON.stringify({ format: FORMAT, files: Object.fromEntries(digests) })}\n`;
}

/** The list that an earlier version has kept for all apps, as the keys and texts of their own. */
export async function splitEarlierList(store: Store): Promise<ReadonlyMap<string, string>> {
  const byApp = new Map<string, Map<string, FileDigest>>();
  for (const [path, digest] of await readList(store, EARLIER_LIST)) {
    const list = namePrivateFile(segment(path.slice(0, path.indexOf("/"))), "media.json");
    byApp.set(list, (byApp.get(list) ?? new Map()).set(path, digest));
  }
  return new Map([...byApp].map(([list, files]) => [list, writeList(files)]));
}
