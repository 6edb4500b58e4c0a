/** Tells from the path of a tree file which app, content type and request the file is for. */
import { join } from "node:path";
import { isSegment, requestOf, segment, textOfSegment } from "../../shared/address.ts";
import { APP_KEY } from "../../shared/catalog.ts";
import { isStateFile, STATE_FOLDER, topFolderOf } from "../../shared/state.ts";
import { addressIn } from "../build/update/built.ts";

export type TreeFile = {
  /** Key of the app; null when the folder has only a hash of it, and belongs to none of the known apps. */
  readonly app: string | null;
  /** Null for the catalog. */
  readonly type: string | null;
  /** Path and query; null when the name has only a hash of the filter value and the file does not show the value. */
  readonly request: string | null;
  readonly path: string;
};

/**
 * Whether a path is named like a file of a tree. Their names have no character with a meaning to a file system (dot
 * segments, the backslash of Windows) or to a terminal.
 */
export function isTreeFile(path: string): boolean {
  return /^[shx]-[a-z0-9_-]*\/v1\/[a-z0-9_/-]+\.json$/.test(path) || isStatePath(path);
}

/** Whether a folder is named like those at the top of a tree: one for each app, and one for their state files. */
export function isTopFolder(name: string): boolean {
  return name === STATE_FOLDER || isSegment(name);
}

/** Whether a value that a store has sent is a list of app keys. */
export function areAppKeys(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((key) => typeof key === "string" && APP_KEY.test(key));
}

/** Whether a path is the state file of an app, which the next build reads. It is not for clients. */
export function isStatePath(path: string): boolean {
  return path.startsWith(`${STATE_FOLDER}/`) && isStateFile(path.slice(STATE_FOLDER.length + 1));
}

/** The name of the folder of the app that a file belongs to; for a state file as well. */
export function appFolderOf(path: string): string {
  return isStatePath(path) ? topFolderOf(path.slice(STATE_FOLDER.length + 1)) : partsOf(path).appFolder;
}

/** Keys of the apps by the name of their folder. */
export function keysByFolder(apps: Iterable<string>): ReadonlyMap<string, string> {
  return new Map([...apps].map((key) => [segment(key), key]));
}

export function ownerOf(path: string, apps: ReadonlyMap<string, string>): Pick<TreeFile, "app" | "type"> {
  const { appFolder, file } = partsOf(path);
  return { app: apps.get(appFolder) ?? textOfSegment(appFolder), type: typeOf(file) };
}

/** `out` is the folder of the local tree. The file is read there, if it exists, when its name has only a hash. */
export function describeTreeFile(out: string, path: string, apps: ReadonlyMap<string, string>): TreeFile {
  const { appFolder, version, file } = partsOf(path);
  const address = addressIn(join(out, appFolder, version), file);
  return { ...ownerOf(path, apps), request: address === null ? null : requestOf(address), path };
}

function partsOf(path: string): { readonly appFolder: string; readonly version: string; readonly file: string } {
  const [appFolder = "", version = ""] = path.split("/", 2);
  return { appFolder, version, file: path.slice(appFolder.length + version.length + 2) };
}

function typeOf(file: string): string | null {
  if (file === "_schemas.json") return null;
  const [first = "", second = ""] = file.split("/", 2);
  return first === "_schemas" ? second.slice(0, -".json".length) : first;
}
