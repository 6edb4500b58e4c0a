/** Looks at trees from outside: their size, what differs between two, and what a build did to one. */
import { hash } from "node:crypto";
import { existsSync, opendirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export type Size = { readonly files: number; readonly bytes: number };

/** The files of the tree as relative paths, except `.precast`. One folder on each level is open at a time. */
export function* filesBelow(root: string, below = ""): Generator<string> {
  const folder = opendirSync(join(root, below));
  try {
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
      const path = join(below, entry.name);
      if (path === ".precast") continue;
      if (entry.isDirectory()) yield* filesBelow(root, path);
      else yield path;
    }
  } finally {
    folder.closeSync();
  }
}

export function sizeOf(root: string): Size {
  let files = 0;
  let bytes = 0;
  for (const path of filesBelow(root)) {
    files += 1;
    bytes += statSync(join(root, path)).size;
  }
  return { files, bytes };
}

/** The paths at which two trees differ: in bytes, or because only one of them has the file. */
export function* differences(one: string, other: string): Generator<string> {
  for (const path of filesBelow(one)) {
    const file = join(other, path);
    if (!existsSync(file) || !readFileSync(join(one, path)).equals(readFileSync(file))) yield path;
  }
  for (const path of filesBelow(other)) if (!existsSync(join(one, path))) yield path;
}

/** Every file of a tree with its time and a hash of its bytes. */
export type Look = ReadonlyMap<string, { readonly time: number; readonly hash: string }>;

export function lookAt(root: string): Look {
  const look = new Map<string, { time: number; hash: string }>();
  for (const path of filesBelow(root)) {
    const file = join(root, path);
    look.set(path, { time: statSync(file).mtimeMs, hash: hash("sha256", readFileSync(file), "base64") });
  }
  return look;
}

export type Touched = {
  /** Files that are new or have other bytes. */
  readonly changed: number;
  /** Files that have the same bytes and a new time, or other bytes and the old time. */
  readonly wrong: readonly string[];
};

export function compareLooks(before: Look, after: Look): Touched {
  let changed = 0;
  const wrong: string[] = [];
  for (const [path, { time, hash }] of after) {
    const old = before.get(path);
    if (old?.hash !== hash) changed += 1;
    if (old !== undefined && (old.hash !== hash) !== (old.time !== time)) wrong.push(path);
  }
  return { changed, wrong };
}
