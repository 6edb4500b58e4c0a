/**
 * What a tree consists of: a folder for each app, and beside them what a build leaves for the server and the next build,
 * a state file for each app and some lists.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { isSegment, segment, textOfSegment } from "./api/address.ts";
import { catalogBody } from "./api/answer.ts";
import { APP_KEY, type App, TYPE_SLUG } from "./api/catalog.ts";
import { exists, isFolder, namesIn, readText } from "./files.ts";
import { once, parseJson } from "./settings/zod.ts";

const FORMAT = 4;

/** Keys and slugs become parts of paths and configurations, so one with other characters makes the whole app invalid. */
const appSchema = once(() =>
  z.object({
    key: z.string().regex(APP_KEY),
    name: z.string(),
    media_base_url: z.string(),
    types: z.array(z.object({ slug: z.string().regex(TYPE_SLUG) })),
  }),
);
const stateSchema = once(() =>
  z
    .object({
      format: z.literal(FORMAT),
      /** Version of Precast that built the tree. Another version may render other bytes. */
      version: z.string(),
      /** Time at which the build read the database, ISO 8601 in UTC. */
      built_at: z.string(),
      /** Identifies the database and the version of its collation. */
      source: z.string(),
      /** The snapshot in which the build read the database: the text of a `pg_snapshot`. */
      snapshot: z.string(),
      /** UUID of the tree, the same for all its apps. */
      tree: z.guid(),
      /**
       * UUID of the build, or UNRECORDED. The database stores it too: one that lacks it may lack content that the build
       * read.
       */
      mark: z.string(),
      files: z.int(),
      /** Published entries. */
      entries: z.int(),
      bytes: z.int(),
      /** Size of the tree by the slug of the type, and by CATALOG for the catalog. */
      sizes: z.record(z.string(), z.object({ files: z.int(), bytes: z.int() })),
      /** Published entries by the slug of their type. */
      counts: z.record(z.string(), z.int()),
      /** As it was written: a build compares its text with that of the database's. */
      app: z.custom<App>((app) => appSchema().safeParse(app).success),
    })
    .transform(({ format: _, ...state }) => state),
);
export type TreeState = Readonly<z.output<ReturnType<typeof stateSchema>>>;

/** The number of files and their size in bytes. */
export type FileSizes = TreeState["sizes"][string];

/** What stands for the catalog where other files have the slug of their type, which never begins so. */
export const CATALOG = "_schemas";

/** In place of the mark of a build that its database could not record, because the role might not write. */
export const UNRECORDED = "";

export const STATE_FOLDER = ".precast";

/** Lock file of the process that is writing the tree, relative to the tree. */
export const BUILD_LOCK = `${STATE_FOLDER}/build.lock`;

/** Lists what the last build changed. A build replaces it last, so a new one means that the build has ended. */
export const CHANGES_FILE = "changes.json";

/** Lists the files that exist only where the tree was deployed. Absent when the local tree is complete. */
export const REMOTE_FILE = "elsewhere.json";

/** The stage of a build from the moment when all files are there until all are in place, relative to the tree. */
export const READY = `${STATE_FOLDER}/ready`;

/** A file that deploys keep of an app for themselves, relative to where they deploy. `appFolder` is that of the app. */
export function namePrivateFile(
  appFolder: string,
  name: "manifest.json" | "journal.json" | "deploy.lock" | "media.json",
): string {
  return `${STATE_FOLDER}/${appFolder}/${name}`;
}

/** What is there as long as not all files of a build, or of a deploy of the app to a folder, are in place. */
function namesUnderWay(appKey: string): string[] {
  return [READY, namePrivateFile(segment(appKey), "journal.json")];
}

/** The state file of an app, relative to the tree. */
export function nameStateFile(appKey: string): string {
  return `${STATE_FOLDER}/${segment(appKey)}.json`;
}

/** Whether a file name in the state folder is that of an app's state file. */
export function isStateFile(name: string): boolean {
  return /^[shx]-[a-z0-9_-]*\.json$/.test(name);
}

/** The top folder of an app, relative to the tree, by the name of its state file. */
export function findTopFolder(name: string): string {
  return name.slice(0, -".json".length);
}

export function writeState(state: TreeState): string {
  return `${JSON.stringify({ format: FORMAT, ...state }, null, 2)}\n`;
}

/** Null when the text is broken or has another format: the app is then built in full. It may come from a bucket. */
export function readState(text: string): TreeState | null {
  return parseJson(text, stateSchema());
}

/** SHA-256 in lower-case hex, and size in bytes. */
export const digestSchema = once(() => z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), size: z.int() }));
export type FileDigest = Readonly<z.output<ReturnType<typeof digestSchema>>>;
/** By path relative to the tree. */
export type FileDigests = ReadonlyMap<string, FileDigest>;

export function digestBytes(bytes: Uint8Array): FileDigest {
  return { sha256: hash("sha256", bytes, "hex"), size: bytes.length };
}

/** Like readState; null as well for a state that somebody has moved: that of another app than `path` is named after. */
export function readStateAt(path: string, text: string): TreeState | null {
  const state = readState(text);
  return state !== null && nameStateFile(state.app.key) === path ? state : null;
}

const catalogSchema = once(() => z.object({ data: z.array(z.looseObject({ entry_count: z.int() })) }));

/**
 * Whether the catalog in the folder of an app is that of its state: somebody may have moved the folder of another app
 * there. While a build or a deploy is under way, or after it was killed, one of the two may be newer: then one type that
 * is in both is enough. A damaged catalog tells nothing.
 */
export function isCatalogOf({ app, counts }: TreeState, catalog: string, out: string): boolean {
  const found = readCatalog(catalog);
  const own = readCatalog(catalogBody(app, new Map(Object.entries(counts)))) ?? [];
  if (found === null || isDeepStrictEqual(found, own)) return true;
  const describe = ({ entry_count: _, ...type }: (typeof own)[number]) => JSON.stringify(type);
  const known = own.map(describe);
  return (
    namesUnderWay(app.key).some((path) => exists(join(out, path))) &&
    found.some((type) => known.includes(describe(type)))
  );
}

function readCatalog(text: string) {
  return parseJson(text, catalogSchema())?.data ?? null;
}

// Selects the apps that a command works on: apps of the database by key, and apps that a tree has.

export class UnknownAppError extends Error {
  constructor(keys: readonly string[], known: readonly string[]) {
    super(`No app has the key ${keys.join(", ")}. Apps in the database: ${known.join(", ") || "none"}.`);
    this.name = "UnknownAppError";
  }
}

/** The apps with these keys, or all for null. Throws UnknownAppError for a key that no app has. */
export function chooseApps(all: readonly App[], keys: readonly string[] | null): readonly App[] {
  if (keys === null) return all;
  const known = all.map((app) => app.key);
  const unknown = keys.filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new UnknownAppError(unknown, known);
  return all.filter((app) => keys.includes(app.key));
}

/** Keys of the apps of a tree whose state can be read, in byte order. */
export function builtAppKeys(out: string): string[] {
  return byKey(statesIn(out)).flatMap(({ key, state }) => (state === null ? [] : [key]));
}

/** The state that the last build of an app has left; null when there is none or it cannot be read. */
export function readTreeState(out: string, key: string): TreeState | null {
  const path = nameStateFile(key);
  return readStateAt(path, readText(join(out, path)) ?? "");
}

/** An app that a tree has. `state` is null when there is none or it cannot be read. */
export type TreeApp = { readonly key: string; readonly state: TreeState | null };

/** All apps of a tree whose key is known, with or without a state, in byte order of their keys. */
export function appsOfTree(out: string): TreeApp[] {
  const states = statesIn(out);
  const known = states.map(({ key }) => (key === null ? "" : segment(key)));
  const stateless = unknownFoldersIn(out, known).map((name) => ({ key: textOfSegment(name), state: null }));
  return byKey([...states, ...stateless]);
}

/** Apps that the tree has and the database no longer has. */
export function removedApps(treeApps: readonly TreeApp[], all: readonly { readonly key: string }[]): TreeApp[] {
  return treeApps.filter(({ key }) => !all.some((app) => app.key === key));
}

/** `key` is null when the state cannot be read and the file name contains only a hash of the key. */
type FoundState = { readonly key: string | null; readonly state: TreeState | null };

function statesIn(out: string): FoundState[] {
  const folder = join(out, STATE_FOLDER);
  return stateFilesIn(folder).map((name) => {
    // A state file that a build deletes meanwhile counts as one that cannot be read.
    const state = readStateAt(`${STATE_FOLDER}/${name}`, readText(join(folder, name)) ?? "");
    return { key: state?.app.key ?? textOfSegment(findTopFolder(name)), state };
  });
}

/** Drops apps without a key and sorts the others in byte order: keys are ASCII, so comparing strings is enough. */
function byKey(found: readonly FoundState[]): TreeApp[] {
  return found.filter((app): app is TreeApp => app.key !== null).sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** Names of the app folders of a tree that are not in `known`: their states are lost or never existed. */
export function unknownFoldersIn(out: string, known: readonly string[]): string[] {
  const knownNames = new Set(known);
  return namesIn(out).filter((name) => isSegment(name) && !knownNames.has(name) && isFolder(join(out, name, "v1")));
}

/** Names of the state files in a folder, in byte order; none when the folder does not exist. */
export function stateFilesIn(folder: string): string[] {
  return namesIn(folder).filter(isStateFile).sort();
}
