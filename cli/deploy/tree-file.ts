/** What a path of a tree names: which app, type and request its file is for. */
import { join } from "node:path";
import { requestOf, segment } from "../../shared/address.ts";
import { isStateFile, STATE_FOLDER } from "../../shared/state.ts";
import { addressIn } from "../build/update/built.ts";

export type TreeFile = {
  /** Null where only a hash of the key is known. */
  readonly app: string | null;
  /** Null for the catalog. */
  readonly type: string | null;
  /** Path and query; null where only a hash of the value is known. */
  readonly request: string | null;
  readonly path: string;
};

/** Other files of a folder are none of ours, nor are those that a path with dots leads to. */
export function isTreeFile(path: string): boolean {
  return (/^[shx]-[a-z0-9_-]*\/v1\/.+\.json$/.test(path) || isStatePath(path)) && !/\/\.\.?\//.test(path);
}

/** What the next build needs to know of this one. Not for clients. */
export function isStatePath(path: string): boolean {
  return path.startsWith(`${STATE_FOLDER}/`) && isStateFile(path.slice(STATE_FOLDER.length + 1));
}

/** Keys of apps by the folders that they have. */
export function byFolder(apps: Iterable<string>): ReadonlyMap<string, string> {
  return new Map([...apps].map((key) => [segment(key), key]));
}

export function ownerOf(path: string, apps: ReadonlyMap<string, string>): Pick<TreeFile, "app" | "type"> {
  const { top, file } = partsOf(path);
  return { app: apps.get(top) ?? null, type: typeOf(file) };
}

/** `out` is where the file lies if it still does. */
export function describeTreeFile(out: string, path: string, apps: ReadonlyMap<string, string>): TreeFile {
  const { top, version, file } = partsOf(path);
  const address = addressIn(join(out, top, version), file);
  return { ...ownerOf(path, apps), request: address === null ? null : requestOf(address), path };
}

function partsOf(path: string): { readonly top: string; readonly version: string; readonly file: string } {
  const [top = "", version = ""] = path.split("/", 2);
  return { top, version, file: path.slice(top.length + version.length + 2) };
}

function typeOf(file: string): string | null {
  if (file === "_schemas.json") return null;
  const [first = "", second = ""] = file.split("/", 2);
  return first === "_schemas" ? second.slice(0, -".json".length) : first;
}
