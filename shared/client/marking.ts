/** Finds what a search has found a text by: its words, folded as search folds them. Source: contract.md section 4. */
import { fold, readWords } from "../api/folding.ts";
import type { Piece } from "./types.ts";

/** A character with what folding may join to it: marks, what is invisible, sound marks of kana, parts of Hangul. */
const CLUSTERS = /.[\p{M}\p{Cf}\uff9e-\uffdc\u1160-\u11ff\u3131-\u318e]*/gsu;

export function mark(text: string, q: string): Piece[] {
  const clusters = text.match(CLUSTERS) ?? [];
  const folded = clusters.map(fold);
  const whole = folded.join("");
  /** Of each character of `whole`, the index of its cluster. */
  const origins = folded.flatMap((part, index): number[] => Array(part.length).fill(index));
  const isMarked = clusters.map(() => false);
  for (const word of readWords(q))
    for (let at = whole.indexOf(word); at >= 0; at = whole.indexOf(word, at + 1))
      isMarked.fill(true, origins[at], (origins[at + word.length - 1] ?? 0) + 1);
  const pieces: Piece[] = [];
  clusters.forEach((cluster, index) => {
    const match = isMarked[index] as boolean;
    const last = pieces.at(-1);
    if (last?.match === match) last.text += cluster;
    else pieces.push({ text: cluster, match });
  });
  return pieces;
}
