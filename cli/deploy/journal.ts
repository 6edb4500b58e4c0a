/**
 * What a deploy is about to do: `.precast/journal.json`, written before it touches anything and removed when all is done,
 * so that a deploy after one that died knows of which files the manifest tells nothing, and what was not purged.
 */
import { STORE_FOLDER } from "./store.ts";

const FORMAT = 1;

export const JOURNAL = `${STORE_FOLDER}/journal.json`;

export type Journal = {
  /** That of the manifest with which the deploy ends. */
  readonly generation: number;
  readonly writes: readonly string[];
  readonly removes: readonly string[];
  /** What earlier deploys changed and did not purge. */
  readonly purges: readonly string[];
};

export function writeJournal(journal: Journal): string {
  return `${JSON.stringify({ format: FORMAT, ...journal })}\n`;
}

/** Null for what is broken or has another format. */
export function readJournal(text: string): Journal | null {
  try {
    const { format, ...journal } = JSON.parse(text) as Journal & { readonly format: number };
    const lists = [journal.writes, journal.removes, journal.purges];
    return format === FORMAT && lists.every(Array.isArray) && Number.isInteger(journal.generation) ? journal : null;
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
  return [...writes, ...removes, ...purges];
}
