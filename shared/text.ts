/** Text for people: numbers, sizes, durations, names that were meant, and foreign text made harmless. */

export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  if (bytes < 1_000_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return `${(bytes / 1_000_000_000).toFixed(1)} GB`;
}

export function formatSeconds(seconds: number): string {
  return seconds < 10 ? `${seconds.toFixed(2)} s` : `${seconds.toFixed(1)} s`;
}

export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** `1 file`, `2319 files`. */
export function formatFiles(count: number): string {
  return `${count} ${count === 1 ? "file" : "files"}`;
}

/** Formats a count with its noun: `1 entry`, `2,000 entries`. */
export function formatCounted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

// Guesses what a mistyped name means.

/** Names that are longer are not compared, which would cost milliseconds for a type of a thousand fields. */
const MAX_NAME = 32;
const MAX_EDITS = 2;

/**
 * The nearest of some names, for "did you mean": equal but for case, or with at most two letters, of short names
 * one, inserted, left out, replaced or swapped. Null when none is that near.
 */
export function findNearest(name: string, names: readonly string[]): string | null {
  if (name.length > MAX_NAME) return null;
  const most = Math.min(MAX_EDITS, Math.floor(name.length / 3));
  const ranked = names
    .filter((one) => Math.abs(one.length - name.length) <= most)
    .map((one) => ({ one, edits: countEdits(name.toLowerCase(), one.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits);
  const [best] = ranked;
  return best !== undefined && best.edits <= most ? best.one : null;
}

/** The edits from one text to another, where two letters that have changed places are one (optimal string alignment). */
function countEdits(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before[j - 2] as number) + 1 : replaced;
      next.push(Math.min(replaced, swapped, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length] as number;
}

// Makes text that comes from elsewhere harmless for a terminal.

/** All but line ends and tabs: a terminal obeys them, and could be made to hide or forge what it shows. */
const CONTROL = /[^\P{Cc}\n\t]/gu;

/** Control characters as escapes: bundles, file names, databases and the responses of stores may contain any. */
export function printable(text: string): string {
  return text.replace(CONTROL, escapeCharacter);
}

function escapeCharacter(character: string): string {
  const code = (character.codePointAt(0) as number).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}

/** Also line ends, tabs and what shows nothing, as a byte order mark: they would forge or hide a part of one line. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A name or a message on one line, in which every character can be seen. */
export function printableLine(text: string): string {
  return text.replace(UNSEEN, escapeCharacter);
}

// Makes text that comes from elsewhere harmless in Markdown.

/** On one line, with nothing that Markdown, or HTML in it, would take for more than text. */
export function escapeMarkdown(text: string): string {
  return printableLine(text.replace(/\s+/g, " ")).replace(/[\\`*~|<>&[\]#]|(?<!\w)_|_(?!\w)/g, "\\$&");
}
