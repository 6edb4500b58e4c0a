/**
 * Lists the files that a store is known to hold: `.precast/manifest.json`, written after all uploads of a deploy and
 * before its deletions. The same tree gives the same bytes, except for the generation number.
 */
import type { FileDigests } from "../build/file-digest.ts";
import { type DigestList, readDigests } from "./digest-list.ts";
import { STORE_FOLDER } from "./store/store.ts";
import { areAppKeys } from "./tree-file.ts";

const FORMAT = 1;

export const MANIFEST = `${STORE_FOLDER}/manifest.json`;

export type Manifest = {
  /** Counts the deploys that have changed the store. */
  readonly generation: number;
  /** Headers of the files. A deploy with other values uploads all files again. */
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  /** Keys of the apps. */
  readonly apps: readonly string[];
  /** Sorted by path. */
  readonly files: FileDigests;
};

export function writeManifest({ generation, cacheControl, cdnCacheControl, apps, files }: Manifest): string {
  const head = { format: FORMAT, generation, cache_control: cacheControl, cdn_cache_control: cdnCacheControl, apps };
  const lines = [...files].map(([path, { sha256, size }]) => `${JSON.stringify(path)}:["${sha256}",${size}]`);
  return `${JSON.stringify(head).slice(0, -1)},"files":{\n${lines.join(",\n")}\n}}\n`;
}

type ManifestJson = {
  readonly format: number;
  readonly generation: number;
  readonly cache_control: string;
  readonly cdn_cache_control: string;
  readonly apps: readonly string[];
  readonly files: DigestList;
};

/** Null if broken, of another format, or with a path that is no tree file: a deploy may delete the paths in it. */
export function readManifest(text: string): Manifest | null {
  try {
    const { format, generation, cache_control, cdn_cache_control, apps, files } = JSON.parse(text) as ManifestJson;
    if (format !== FORMAT || !Number.isInteger(generation) || !areAppKeys(apps)) return null;
    return {
      generation,
      cacheControl: cache_control,
      cdnCacheControl: cdn_cache_control,
      apps,
      files: readDigests(files),
    };
  } catch {
    return null;
  }
}
