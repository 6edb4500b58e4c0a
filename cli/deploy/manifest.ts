/**
 * Lists the files that a store is known to hold: `.precast/manifest.json`, written after all uploads of a deploy and
 * before its deletions. The same tree gives the same bytes, except for the generation number.
 */
import { areAppKeys, type FileDigest, type FileDigests, isTreeFile } from "../../shared/tree.ts";
import { STORE_FOLDER } from "./store.ts";

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

// Reads and writes the JSON in which manifest, journal and checkpoints list files: a SHA-256 and a size by path.

export type DigestList = Readonly<Record<string, readonly [sha256: string, size: number]>>;

export function listDigests(digests: FileDigests): DigestList {
  return Object.fromEntries([...digests].map(([path, { sha256, size }]) => [path, [sha256, size] as const]));
}

/** Throws for a broken list, and for a path that is no tree file: a deploy may delete the paths in it. */
export function readDigests(list: DigestList): Map<string, FileDigest> {
  return new Map(Object.entries(list).map(([path, digest]) => [path, readDigest(path, digest)] as const));
}

function readDigest(path: string, [sha256, size]: readonly [string, number]): FileDigest {
  if (!isTreeFile(path) || !/^[0-9a-f]{64}$/.test(sha256) || !Number.isInteger(size)) {
    throw new Error("not the digest of a tree file");
  }
  return { sha256, size };
}

export type PlannedFile = FileDigest & { readonly path: string; readonly isNew: boolean };

export type Plan = {
  /** Steps: each begins when the one before it is done. The same holds for `removes`. */
  readonly writes: readonly (readonly PlannedFile[])[];
  readonly removes: readonly (readonly string[])[];
  readonly unchanged: number;
};

export type UploadOptions = {
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  /** Uploads every file again, whatever manifest, journal and checkpoints say. */
  readonly force: boolean;
};
