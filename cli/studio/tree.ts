/**
 * What the studio's page on the tree shows: how large and how old the tree of an app is, what its last builds wrote, and
 * of how many files and bytes each part consists.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Address, nameFolder } from "../../shared/api/address.ts";
import { isFile, isFolder, readSize, yieldToEventLoop } from "../../shared/files.ts";
import { type FileSizes, readTreeState, UNRECORDED } from "../../shared/tree.ts";
import { describeBehind, readTreeStatus, type TreeStatus } from "../builder/delta.ts";
import { type BuildRecord, readHistory } from "../builder/history.ts";
import { readRemoteFiles } from "../builder/remote.ts";
import { readViewedApp, type Site, type View } from "./view.ts";

export type Tree = {
  /** Null when the app has no tree. */
  readonly status: TreeStatus | null;
  /** How far the tree is behind its database, in words. */
  readonly behind: string;
  /** The last builds first. */
  readonly history: readonly BuildRecord[];
};

export async function readTreeView(site: Site, query: URLSearchParams): Promise<Tree> {
  const { database, settings } = site;
  const { key } = await readViewedApp(site, query);
  const status = await database.transaction("read", (session) => readTreeStatus(session, key, settings));
  const history = readHistory(settings.out).filter(({ app }) => app === key);
  const isUnrecorded = readTreeState(settings.out, key)?.mark === UNRECORDED;
  return { status, behind: status === null ? "" : describeBehind(status, isUnrecorded), history };
}

export type Kind = Address["kind"];

/** `type` is null for the catalog, and `field` for all but filters and sorts. */
export type TreePart = FileSizes & { readonly type: string | null; readonly kind: Kind; readonly field: string | null };

/**
 * The view of the parts of a tree. No state has their numbers, and looking at 100,000 files takes a second: what was found
 * is kept until the next build.
 */
export function openPartsView(site: Site): View {
  const found = new Map<string, { readonly build: string; readonly parts: Promise<readonly TreePart[]> }>();
  return async (query) => {
    const { key } = await readViewedApp(site, query);
    const { out } = site.settings;
    const build = readTreeState(out, key)?.built_at ?? "";
    const kept = found.get(key);
    if (kept?.build === build) return kept.parts;
    const parts = measureParts(out, key);
    found.set(key, { build, parts });
    parts.catch(() => found.delete(key));
    return parts;
  };
}

/** The largest parts first. What is only where the tree was deployed belongs to it. */
export async function measureParts(out: string, appKey: string): Promise<readonly TreePart[]> {
  const folder = nameFolder(appKey);
  const parts = new Map<string, TreePart & { files: number; bytes: number }>();
  const add = (path: string, size: number) => {
    const names = namePart(path);
    if (names === null) return;
    const id = `${names.type} ${names.kind} ${names.field}`;
    const part = parts.get(id) ?? { ...names, files: 0, bytes: 0 };
    parts.set(id, part);
    part.files += 1;
    part.bytes += size;
  };
  for (const path of isFolder(join(out, folder)) ? pathsIn(join(out, folder)) : []) {
    add(path, readSize(join(out, folder, path)) ?? 0);
    await yieldToEventLoop();
  }
  for (const [path, { size }] of readRemoteFiles(out) ?? [])
    if (path.startsWith(`${folder}/`) && !isFile(join(out, path))) add(path.slice(folder.length + 1), size);
  return [...parts.values()].sort((a, b) => b.files - a.files);
}

/** Takes a tenth of the time of filesIn, which matters to whoever looks at a page. */
function* pathsIn(root: string, below = ""): Generator<string> {
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) yield* pathsIn(root, path);
    else yield path;
  }
}

/** `path` is relative to the folder of the app. Null for a file that no build has written. */
function namePart(path: string): Omit<TreePart, keyof FileSizes> | null {
  const [first = "", second = "", third = ""] = path.replace(/\.json$/, "").split("/");
  if (path === "_schemas.json") return { type: null, kind: "catalog", field: null };
  if (first === "_schemas") return { type: second, kind: "schema", field: null };
  switch (second) {
    case "page":
    case "entry":
      return { type: first, kind: second, field: null };
    case "filter":
      return { type: first, kind: second, field: third };
    case "sort":
      return { type: first, kind: second, field: third.replace(/^-/, "") };
    default:
      return null;
  }
}
