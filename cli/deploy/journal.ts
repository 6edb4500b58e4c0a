/**
 * Records what a deploy is about to do: `.precast/journal.json`, written before the deploy touches anything and removed
 * when everything is done and no purge is owed. If a deploy dies, its journal tells the next one for which files not to
 * trust the manifest, and what was not purged.
 */
import type { FileDigests } from "../build/file-digest.ts";
import { type DigestList, listDigests, readDigests } from "./digest-list.ts";
import { STORE_FOLDER } from "./store/store.ts";
import { areAppKeys, isTreeFile } from "./tree-file.ts";

const FORMAT = 1;

export const JOURNAL = `${STORE_FOLDER}/journal.json`;

export type Journal = {
  /** Generation number of the manifest that the deploy writes. */
  readonly generation: number;
  /** Unique id of the deploy. */
  readonly deploy: string;
  /** Headers that the deploy gives its files. */
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  readonly writes: readonly string[];
  /** Those of `writes` that earlier, interrupted deploys uploaded already, with the content and headers wanted now. */
  readonly uploaded: FileDigests;
  readonly removes: readonly string[];
  /** Whether the deploy purges a CDN: then a purge of `writes` and `removes` is owed. */
  readonly purging: boolean;
  /** Paths that earlier deploys changed and did not purge. */
  readonly purges: readonly string[];
  /** Keys of the apps that all these paths belong to. The next manifest may lack some of them. */
  readonly apps: readonly string[];
};

type JournalJson = Omit<Journal, "cacheControl" | "cdnCacheControl" | "uploaded"> & {
  readonly format: number;
  readonly cache_control: string;
  readonly cdn_cache_control: string;
  readonly uploaded: DigestList;
};

export function writeJournal({ cacheControl, cdnCacheControl, uploaded, ...rest }: Journal): string {
  const headers = { cache_control: cacheControl, cdn_cache_control: cdnCacheControl };
  const json: JournalJson = { format: FORMAT, ...rest, ...headers, uploaded: listDigests(uploaded) };
  return `${JSON.stringify(json)}\n`;
}

/** Null if broken, of another format, or with a path that is no tree file: a deploy may delete the paths in it. */
export function readJournal(text: string): Journal | null {
  try {
    const json = JSON.parse(text) as JournalJson;
    const { format, cache_control: cacheControl, cdn_cache_control: cdnCacheControl, uploaded, ...rest } = json;
    const paths = [rest.writes, rest.removes, rest.purges];
    const isWhole = paths.every(Array.isArray) && paths.flat().every(isTreeFile) && areAppKeys(rest.apps);
    if (format !== FORMAT || !isWhole || !Number.isInteger(rest.generation)) return null;
    return { ...rest, cacheControl, cdnCacheControl, uploaded: readDigests(uploaded) };
  } catch {
    return null;
  }
}

/** Paths that may exist or not, with any content, when the manifest has this generation. */
export function uncertainIn(journal: Journal, generation: number): readonly string[] {
  return journal.generation > generation ? [...journal.writes, ...journal.removes] : journal.removes;
}

/** Paths of which a CDN may still have an old version. */
export function unpurgedIn({ writes, removes, purges }: Journal): readonly string[] {
  return [...new Set([...writes, ...removes, ...purges])];
}

/** Paths whose purge is owed. A deploy that does not purge must keep them in the journal. */
export function owedIn(journal: Journal): readonly string[] {
  return journal.purging ? unpurgedIn(journal) : journal.purges;
}
