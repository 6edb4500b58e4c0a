/**
 * What a deploy is about to do: `.precast/journal.json`, written before it touches anything and removed when all is done
 * and no purge is owed, so that a deploy after one that died knows of which files the manifest tells nothing, and what was
 * not purged.
 */
import type { FileMarks } from "../build/file-mark.ts";
import { listMarks, type MarkList, readMarks } from "./mark-list.ts";
import { STORE_FOLDER } from "./store/store.ts";
import { isTreeFile } from "./tree-file.ts";

const FORMAT = 1;

export const JOURNAL = `${STORE_FOLDER}/journal.json`;

export type Journal = {
  /** That of the manifest with which the deploy ends. */
  readonly generation: number;
  /** Tells it from every other. */
  readonly deploy: string;
  /** What its files are given. */
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  readonly writes: readonly string[];
  /** Those of `writes` that are there already, from deploys before it that did not end, in the form that it wants. */
  readonly uploaded: FileMarks;
  readonly removes: readonly string[];
  /** Whether a CDN is to be told of these. */
  readonly purging: boolean;
  /** What earlier deploys changed and did not purge. */
  readonly purges: readonly string[];
  /** Keys of the apps of all these: the next manifest may know some of them no more. */
  readonly apps: readonly string[];
};

type Noted = Omit<Journal, "cacheControl" | "cdnCacheControl" | "uploaded"> & {
  readonly format: number;
  readonly cache_control: string;
  readonly cdn_cache_control: string;
  readonly uploaded: MarkList;
};

export function writeJournal({ cacheControl, cdnCacheControl, uploaded, ...rest }: Journal): string {
  const headers = { cache_control: cacheControl, cdn_cache_control: cdnCacheControl };
  const noted: Noted = { format: FORMAT, ...rest, ...headers, uploaded: listMarks(uploaded) };
  return `${JSON.stringify(noted)}\n`;
}

/** What an older one does not tell. To purge too much does no harm. */
const OLDER = { purging: true, apps: [], deploy: "", cache_control: "", cdn_cache_control: "", uploaded: {} };

/** Null for what is broken, has another format or names files that are none of a tree: what it names may be deleted. */
export function readJournal(text: string): Journal | null {
  try {
    const noted: Noted = { ...OLDER, ...(JSON.parse(text) as Omit<Noted, keyof typeof OLDER>) };
    const { format, cache_control: cacheControl, cdn_cache_control: cdnCacheControl, uploaded, ...rest } = noted;
    const paths = [rest.writes, rest.removes, rest.purges];
    const isWhole = [...paths, rest.apps].every(Array.isArray) && paths.flat().every(isTreeFile);
    if (format !== FORMAT || !isWhole || !Number.isInteger(rest.generation)) return null;
    return { ...rest, cacheControl, cdnCacheControl, uploaded: readMarks(uploaded) };
  } catch {
    return null;
  }
}

/** The paths that may be there or not, in any form, when the manifest has this generation. */
export function doubtfulIn(journal: Journal, generation: number): readonly string[] {
  return journal.generation > generation ? [...journal.writes, ...journal.removes] : journal.removes;
}

/** What a CDN may still have of before. */
export function unpurgedIn({ writes, removes, purges }: Journal): readonly string[] {
  return [...new Set([...writes, ...removes, ...purges])];
}

/** What of it a CDN was to be told: a deploy that tells none must keep the note of that. */
export function owedIn(journal: Journal): readonly string[] {
  return journal.purging ? unpurgedIn(journal) : journal.purges;
}
