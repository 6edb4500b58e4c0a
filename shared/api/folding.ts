/**
 * Folds text as search compares it, and splits it into words. `precast.fold` (schema/0011_search.sql) folds the texts of
 * entries in the same steps. Source: shared/contract.md section 4.
 */

/** Accents, points and vowel signs of Latin, Greek, Cyrillic, Hebrew and Arabic, the tatweel, and what is invisible. */
const DROPPED =
  /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+/g;
/** Letters that no normalisation takes apart. */
const SPELLED: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  đ: "d",
  ł: "l",
  ı: "i",
  ς: "σ",
};

export function fold(text: string): string {
  const stripped = text.normalize("NFKD").replace(DROPPED, "");
  return stripped
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[ßæœøđłıς]/g, (letter) => SPELLED[letter] as string);
}

/** The different words of a text, folded: runs of letters, marks and digits. */
export function readWords(text: string): string[] {
  return [...new Set(fold(text).match(/[\p{L}\p{M}\p{N}]+/gu))];
}
