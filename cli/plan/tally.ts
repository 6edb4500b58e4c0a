/** Adds up what a build would change: files and bytes by type and kind of answer, and what a CDN has to be purged of. */
import { ownTag } from "../../shared/api/answer.ts";
import type { TreeFile } from "../../shared/tree-file.ts";
import type { Change } from "../builder/changes.ts";
import type { ChangeSize } from "../builder/stage.ts";
import { invalidationPaths, MAX_FILES_OF_TYPE } from "../deploy/purge.ts";

/** `other` are files that are no answers: an app that is removed may have some. */
type Kind = "entries" | "pages" | "filters" | "sorts" | "schemas" | "other";

export type ChangedFiles = {
  readonly added: number;
  readonly changed: number;
  readonly gone: number;
  /** Bytes to upload, and by how many the tree grows. */
  readonly written: number;
  readonly growth: number;
};
export type ChangedKind = ChangedFiles & { readonly app: string; readonly type: string | null; readonly kind: Kind };

/** What `deploy --purge` would ask of a CDN: tags, paths of CloudFront, or one request for each address. */
export type Purges = { readonly tags: number; readonly paths: number; readonly addresses: number };

export type Tally = ReturnType<typeof openTally>;

export function openTally() {
  const kinds = new Map<string, ChangedKind>();
  const tags = new Set<string>();
  const folders = new Map<string, number>();
  const purged: TreeFile[] = [];
  let addresses = 0;

  const add = ({ change, app, type, request, file: path }: Change, { written, growth }: ChangeSize) => {
    const kind = findKind(path);
    const name = JSON.stringify([app, type ?? "", kind]);
    const sum = kinds.get(name) ?? { app, type, kind, ...NOTHING };
    kinds.set(name, addFiles(sum, { ...NOTHING, [change]: 1, written, growth }));
    tags.add(ownTag(app, type));
    if (request !== null) addresses += 1;
    // One path stands for more files of a folder than these.
    const folder = path.split("/", 3).join("/");
    const count = (folders.get(folder) ?? 0) + 1;
    folders.set(folder, count);
    if (count <= MAX_FILES_OF_TYPE + 1) purged.push({ app, type, request, path });
  };
  const reset = () => {
    for (const collection of [kinds, tags, folders]) collection.clear();
    purged.length = 0;
    addresses = 0;
  };
  /** Sorted by app, type and kind. */
  const list = () => [...kinds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
  const purges = (): Purges => ({ tags: tags.size, paths: invalidationPaths(purged).length, addresses });
  return { add, reset, list, purges };
}

const NOTHING: ChangedFiles = { added: 0, changed: 0, gone: 0, written: 0, growth: 0 };

function addFiles<T extends ChangedFiles>(sum: T, files: ChangedFiles): T {
  const names = Object.keys(NOTHING) as (keyof ChangedFiles)[];
  return { ...sum, ...Object.fromEntries(names.map((name) => [name, sum[name] + files[name]])) };
}

export function sumFiles(all: readonly ChangedFiles[]): ChangedFiles {
  return all.reduce(addFiles, NOTHING);
}

const KINDS: Readonly<Record<string, Kind>> = { entry: "entries", page: "pages", filter: "filters", sort: "sorts" };

/** `path` is that of a file relative to the tree. */
function findKind(path: string): Kind {
  const [, version, first, second] = path.replace(/\.json$/, "").split("/");
  if (version !== "v1") return "other";
  return first === "_schemas" ? "schemas" : (KINDS[second ?? ""] ?? "other");
}
