/** Text for people: numbers, sizes, durations, and foreign text made harmless. */

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

// Makes text that comes from elsewhere harmless for a terminal.

/** All but line ends and tabs: a terminal obeys them, and could be made to hide or forge what it shows. */
const CONTROL = /[^\P{Cc}\n\t]/gu;

/** Control characters as escapes: bundles, file names, databases and the responses of stores may contain any. */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
