/**
 * Which entries a search finds, and in which of the two groups they are.
 * Source: contract.md section 4. The model leaves the rank within a group open: its groups have no order.
 */

import type { BundleEntry, BundleField, BundleType } from "./model-bundle.ts";
import { fieldValues, findColumn } from "./model-bundle.ts";
import { textOfHtml } from "./model-html.ts";

export type SearchGroups = { full: BundleEntry[]; partial: BundleEntry[] };

/** Splits what matches `q` into entries with every word as a full word, and the others. */
export function searchGroups(type: BundleType, entries: readonly BundleEntry[], q: string): SearchGroups {
  const words = wordsOf(q);
  if (words.length === 0) return { full: [], partial: [] };
  const found = entries.filter((entry) => {
    const text = folded(searchableText(type, entry));
    return words.every((word) => text.includes(word));
  });
  const isFull = (entry: BundleEntry) => {
    const own = wordsOf(searchableText(type, entry));
    return words.every((word) => own.includes(word));
  };
  return { full: found.filter(isFull), partial: found.filter((entry) => !isFull(entry)) };
}

/** Folded words: what stands between characters that are neither letter, mark nor digit. */
export function wordsOf(text: string): string[] {
  return folded(text)
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter((word) => word !== "");
}

/** First and last code point of what folding drops. */
const DROPPED: readonly (readonly [number, number])[] = [
  [0x300, 0x36f],
  [0x591, 0x5c7],
  [0x610, 0x61a],
  [0x64b, 0x65f],
  [0x670, 0x670],
  [0x640, 0x640],
  [0xad, 0xad],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x2064],
  [0xfeff, 0xfeff],
];
const SPELLED = new Map(
  ["ß ss", "æ ae", "œ oe", "ø o", "đ d", "ł l", "ı i", "ς σ"].map((line) => line.split(" ") as [string, string]),
);

function folded(text: string): string {
  const kept = [...text.normalize("NFKD")].filter((character) => {
    const point = character.codePointAt(0) ?? 0;
    return !DROPPED.some(([first, last]) => point >= first && point <= last);
  });
  const lower = kept.join("").normalize("NFKC").toLowerCase();
  return [...lower].map((character) => SPELLED.get(character) ?? character).join("");
}

/** Every searchable value on a line of its own, so that no word spans two values. */
export function searchableText(type: BundleType, entry: BundleEntry): string {
  const fields = type.fields.filter((field) => field.searchable);
  return fields.flatMap((field) => textsOf(type, field, entry)).join("\n");
}

function textsOf(type: BundleType, field: BundleField, entry: BundleEntry): string[] {
  const column = findColumn(type, field.name);
  const texts = column ? fieldValues(entry, column).map(String) : [];
  return field.type === "rich_text" ? texts.map(textOfHtml) : texts;
}
