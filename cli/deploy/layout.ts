/**
 * Which apps a store has, each with its own manifest, journal and lock. An earlier version of Precast kept one of each for
 * all apps: such a store is taken over. `.precast/manifest.json` tells the two apart, and keeps out that version.
 */
import * as z from "zod";
import { isSegment, segment } from "../../shared/api/address.ts";
import { APP_KEY } from "../../shared/api/catalog.ts";
import { once, parseJson } from "../../shared/settings/zod.ts";
import { namePrivateFile } from "../../shared/tree.ts";
import { findAppFolder, isTreeFile } from "../../shared/tree-file.ts";
import {
  digests,
  type Journal,
  journalParts,
  type Manifest,
  NO_NOTES,
  type Notes,
  nameHeaders,
  readPrivateFile,
  unpurgedIn,
  writeJournal,
  writeManifest,
} from "./manifest.ts";
import { EARLIER_LIST, splitEarlierList } from "./media.ts";
import { putPrivateFile, STORE_FOLDER, type Store, type StoreLock } from "./store.ts";

/** Tells how a store is laid out. */
export const MARKER = `${STORE_FOLDER}/manifest.json`;
const EARLIER_JOURNAL = `${STORE_FOLDER}/journal.json`;
/** The lock that an earlier version takes. */
const EARLIER_LOCK = `${STORE_FOLDER}/deploy.lock`;

const FORMAT = 2;
const MARK = `${JSON.stringify({ format: FORMAT })}\n`;

/** By the folder of the app. */
type NotesByApp = ReadonlyMap<string, Notes>;

export type Layout =
  /** Without a manifest of any kind: what is there has to be listed. */
  { readonly kind: "new" } | { readonly kind: "apps" } | { readonly kind: "earlier"; readonly notes: NotesByApp };

/** Only reads. Throws UnreadableStoreError, unless `force` is set. */
export async function readLayout(store: Store, force: boolean): Promise<Layout> {
  const { content: manifest, etag } = await readPrivateFile(store, MARKER, readMarker, force);
  if (manifest === "apps") return { kind: "apps" };
  const { content: journal, etag: journalEtag } = await readPrivateFile(
    store,
    EARLIER_JOURNAL,
    readEarlierJournal,
    force,
  );
  if (etag === null && journalEtag === null) return { kind: "new" };
  return { kind: "earlier", notes: splitNotes(manifest, journal) };
}

/**
 * Gives the store the layout of this version, after which an earlier one refuses it. `takeLock` takes the lock of the earlier
 * version, so that none is at work. Everything before the marker can be repeated.
 */
export async function adoptLayout(
  store: Store,
  layout: Layout,
  force: boolean,
  takeLock: (key: string) => Promise<StoreLock>,
): Promise<void> {
  if (layout.kind === "apps") return;
  if (layout.kind === "new") return void (await writeMarker(store));
  const lock = await takeLock(EARLIER_LOCK);
  try {
    // What was read without the lock may have changed.
    const now = await readLayout(store, force);
    if (now.kind !== "earlier") return await adoptLayout(store, now, force, takeLock);
    for (const [appFolder, { manifest, journal }] of now.notes) {
      lock.check();
      if (journal !== null)
        await putPrivateFile(store, namePrivateFile(appFolder, "journal.json"), writeJournal(journal), {});
      if (manifest !== null)
        await putPrivateFile(store, namePrivateFile(appFolder, "manifest.json"), writeManifest(manifest), {});
    }
    for (const [key, list] of await splitEarlierList(store)) await putPrivateFile(store, key, list, {});
    await store.remove(EARLIER_LIST);
    lock.check();
    await writeMarker(store);
    // Not before: the earlier version must not trust its manifest meanwhile.
    await store.remove(EARLIER_JOURNAL);
  } finally {
    await lock.release().catch(() => {});
  }
}

async function writeMarker(store: Store): Promise<void> {
  await putPrivateFile(store, MARKER, MARK, {});
}

/** Folders of the apps that the store has anything of, by its private files. */
export async function listAppFolders(store: Store): Promise<string[]> {
  const folders = new Set<string>();
  for await (const key of store.list(`${STORE_FOLDER}/`)) {
    const [, folder = "", file] = key.split("/");
    if (file !== undefined && isSegment(folder)) folders.add(folder);
  }
  return [...folders].sort();
}

/** The files of trees in the store, or below a folder of it, by the folder of their app. Files of others are left out. */
export async function listTreeFiles(store: Store, prefix = ""): Promise<Map<string, Set<string>>> {
  const files = new Map<string, Set<string>>();
  for await (const key of store.list(prefix)) {
    if (!isTreeFile(key)) continue;
    const folder = findAppFolder(key);
    files.set(folder, (files.get(folder) ?? new Set()).add(key));
  }
  return files;
}

// The manifest and the journal of an earlier version, which are those of all apps.

const EARLIER_FORMAT = 1;
const head = () => ({
  format: z.literal(EARLIER_FORMAT),
  generation: z.int(),
  cache_control: z.string(),
  cdn_cache_control: z.string(),
  apps: z.array(z.string().regex(APP_KEY)).readonly(),
});
const markerSchema = once(() =>
  z.union([
    z.object({ format: z.literal(FORMAT) }).transform(() => "apps" as const),
    z.object({ ...head(), files: digests() }).transform(nameHeaders),
  ]),
);
const journalSchema = once(() => z.object({ ...head(), ...journalParts() }).transform(nameHeaders));
type EarlierManifest = Exclude<z.output<ReturnType<typeof markerSchema>>, "apps">;
type EarlierJournal = z.output<ReturnType<typeof journalSchema>>;

/** "apps" for the layout of this version. Null when it is of neither. */
export function readMarker(text: string): EarlierManifest | "apps" | null {
  return parseJson(text, markerSchema());
}

function readEarlierJournal(text: string): EarlierJournal | null {
  return parseJson(text, journalSchema());
}

/** An app that a part of them does not mention gets none of that part. */
function splitNotes(manifest: EarlierManifest | null, journal: EarlierJournal | null): NotesByApp {
  const apps = [...new Set([...(manifest?.apps ?? []), ...(journal?.apps ?? [])])].sort();
  return new Map(
    apps.map((app) => {
      const folder = segment(app);
      const isOwn = (path: string) => findAppFolder(path) === folder;
      return [
        folder,
        { ...NO_NOTES, manifest: ownManifest(manifest, app, isOwn), journal: ownJournal(journal, app, isOwn) },
      ];
    }),
  );
}

function ownManifest(whole: EarlierManifest | null, app: string, isOwn: (path: string) => boolean): Manifest | null {
  if (whole === null) return null;
  const { generation, cacheControl, cdnCacheControl } = whole;
  const files = new Map([...whole.files].filter(([path]) => isOwn(path)));
  return files.size === 0 ? null : { app, generation, cacheControl, cdnCacheControl, files };
}

function ownJournal(whole: EarlierJournal | null, app: string, isOwn: (path: string) => boolean): Journal | null {
  if (whole === null) return null;
  const { apps: _, format: __, ...rest } = whole;
  const writes = [...whole.writes];
  const own: Journal = {
    ...rest,
    app,
    writes: new Map(writes.filter(([path]) => isOwn(path))),
    uploaded: writes.slice(0, whole.uploaded).filter(([path]) => isOwn(path)).length,
    removes: whole.removes.filter(isOwn),
    purges: whole.purges.filter(isOwn),
  };
  return unpurgedIn(own).length === 0 ? null : own;
}
