/** Tells from the path of a file of a tree what it is: which app, content type and request it is for. */
import { join } from "node:path";
import * as z from "zod";
import { type Address, addressOfFile, isSegment, segment, textOfSegment, writeRequest } from "./api/address.ts";
import { readText } from "./files.ts";
import { once, parseJson } from "./settings/zod.ts";
import { findTopFolder, isStateFile, STATE_FOLDER } from "./tree.ts";

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

/** Whether a path is the state file of an app, which the next build reads. It is not for clients. */
export function isStatePath(path: string): boolean {
  return path.startsWith(`${STATE_FOLDER}/`) && isStateFile(path.slice(STATE_FOLDER.length + 1));
}

/** The name of the folder of the app that a file belongs to; for a state file as well. */
export function findAppFolder(path: string): string {
  return isStatePath(path) ? findTopFolder(path.slice(STATE_FOLDER.length + 1)) : splitPath(path).appFolder;
}

/** Keys of the apps by the name of their folder. */
export function keysByFolder(apps: Iterable<string>): ReadonlyMap<string, string> {
  return new Map([...apps].map((key) => [segment(key), key]));
}

export function findOwner(path: string, apps: ReadonlyMap<string, string>): Pick<TreeFile, "app" | "type"> {
  const { appFolder, file } = splitPath(path);
  return { app: apps.get(appFolder) ?? textOfSegment(appFolder), type: findType(file) };
}

/** `out` is the folder of the local tree. The file is read there, if it exists, when its name has only a hash. */
export function describeTreeFile(out: string, path: string, apps: ReadonlyMap<string, string>): TreeFile {
  const { appFolder, version, file } = splitPath(path);
  const address = addressIn(join(out, appFolder, version), file);
  return { ...findOwner(path, apps), request: address === null ? null : writeRequest(address), path };
}

function splitPath(path: string): { readonly appFolder: string; readonly version: string; readonly file: string } {
  const [appFolder = "", version = ""] = path.split("/", 2);
  return { appFolder, version, file: path.slice(appFolder.length + version.length + 2) };
}

function findType(file: string): string | null {
  if (file === "_schemas.json") return null;
  const [first = "", second = ""] = file.split("/", 2);
  return first === "_schemas" ? second.slice(0, -".json".length) : first;
}

/**
 * The address of a file below `root`; null when it is unknown. If the file name contains only the hash of a filter
 * value, the value is looked up in the items of the list.
 */
export function addressIn(root: string, file: string): Address | null {
  const address = addressOfFile(file);
  const [, slug, field, name] = /^([^/]+)\/filter\/([^/]+)\/(h-[0-9a-f]+)\.json$/.exec(file) ?? [];
  if (address !== null || slug === undefined || field === undefined) return address;
  const value = shownIn(readText(join(root, file)) ?? "", field).find((text) => segment(text) === name);
  return value === undefined ? null : { kind: "filter", slug, field, value };
}

const listSchema = once(() => z.object({ data: z.array(z.record(z.string(), z.unknown())) }));

/** The string values of a field in the items of a list. */
function shownIn(listFile: string, field: string): string[] {
  const items = parseJson(listFile, listSchema())?.data ?? [];
  return items.flatMap((item) => item[field]).filter((value) => typeof value === "string");
}
