/**
 * What a store is known to hold: `.precast/manifest.json`, written when all of a deploy is there and before anything is
 * deleted. The same tree gives the same bytes, but for the number of the deploy.
 */
import type { FileMark } from "../build/file-mark.ts";
import { STORE_FOLDER } from "./store/store.ts";
import { isTreeFile } from "./tree-file.ts";

const FORMAT = 1;

export const MANIFEST = `${STORE_FOLDER}/manifest.json`;

export type Manifest = {
  /** Counts the deploys that changed something. */
  readonly generation: number;
  /** What the files were given: others mean that all are written anew. */
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  /** Keys of the apps. */
  readonly apps: readonly string[];
  /** By path, sorted. */
  readonly files: ReadonlyMap<string, FileMark>;
};

export function writeManifest({ generation, cacheControl, cdnCacheControl, apps, files }: Manifest): string {
  const head = { format: FORMAT, generation, cache_control: cacheControl, cdn_cache_control: cdnCacheControl, apps };
  const lines = [...files].map(([path, { sha256, size }]) => `${JSON.stringify(path)}:["${sha256}",${size}]`);
  return `${JSON.stringify(head).slice(0, -1)},"files":{\n${lines.join(",\n")}\n}}\n`;
}

type Parsed = {
  readonly format: number;
  readonly generation: number;
  readonly cache_control: string;
  readonly cdn_cache_control: string;
  readonly apps: readonly string[];
  readonly files: Readonly<Record<string, readonly [string, number]>>;
};

/** Null for what is broken, has another format or names files that are none of a tree: what it names may be deleted. */
export function readManifest(text: string): Manifest | null {
  try {
    const { format, generation, cache_control, cdn_cache_control, apps, files } = JSON.parse(text) as Parsed;
    if (format !== FORMAT || !Number.isInteger(generation) || !Array.isArray(apps)) return null;
    if (!Object.keys(files).every(isTreeFile)) return null;
    const marks = Object.entries(files).map(([path, mark]) => [path, readMark(mark)] as const);
    return {
      generation,
      cacheControl: cache_control,
      cdnCacheControl: cdn_cache_control,
      apps,
      files: new Map(marks),
    };
  } catch {
    return null;
  }
}

function readMark([sha256, size]: readonly [string, number]): FileMark {
  if (!/^[0-9a-f]{64}$/.test(sha256) || !Number.isInteger(size)) throw new Error("no mark of a file");
  return { sha256, size };
}
