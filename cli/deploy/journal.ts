/**
 * What a deploy is about to do: `.precast/journal.json`, written before it touches anything and removed when all is done
 * and no purge is owed, so that a deploy after one that died knows of which files the manifest tells nothing, and what was
 * not purged.
 */
import { STORE_FOLDER } from "./store/store.ts";
import { isTreeFile } from "./tree-file.ts";

const FORMAT = 1;

export const JOURNAL = `${STORE_FOLDER}/journal.json`;

export type Journal = {
  /** That of the manifest with which the deploy ends. */
  readonly generation: number;
  readonly writes: readonly string[];
  readonly removes: readonly string[];
  /** Whether a CDN is to be told of these. */
  readonly purging: boolean;
  /** What earlier deploys changed and did not purge. */
  readonly purges: readonly string[];
  /** Keys of the apps of all these: the next manifest may know some of them no more. */
  readonly apps: readonly string[];
};

type Noted = Journal & { readonly format: number };

export function writeJournal(journal: Journal): string {
  return `${JSON.stringify({ format: FORMAT, ...journal })}\n`;
}

/** What an older one does not tell. To purge too much does no harm. */
const OLDER = { purging: true, apps: [] };

/** Null for what is broken, has another format or names files that are none of a tree: what it names may be deleted. */
export function readJournal(text: string): Journal | null {
  try {
    const { format, ...journal }: Noted = { ...OLDER, ...(JSON.parse(text) as Omit<Noted, keyof typeof OLDER>) };
    const paths = [journal.writes, journal.removes, journal.purges];
    const isWhole = [...paths, journal.apps].every(Array.isArray) && paths.flat().every(isTreeFile);
    return format === FORMAT && isWhole && Number.isInteger(journal.generation) ? journal : null;
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
