/** Words with the frequencies of a language: few are in every text, most in hardly any (Zipf's law). Seeded. */
import { WORDS } from "../prose.ts";
import { type Random, randomFrom } from "../random.ts";

const SIZE = 100_000;
const ONSETS = "b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sc sh st t tr v w".split(" ");
const VOWELS = "a e i o u ai ea io ou y".split(" ");
const CODAS = ["", "", "", "n", "r", "s", "l", "t", "nd", "ck", "m", "x"];
/** One in ACCENTED generated words has a letter beyond ASCII. */
const ACCENTED = 29;
const ACCENTS: Readonly<Record<string, string>> = { a: "á", e: "é", i: "ï", o: "ö", u: "ü", y: "ý" };

/** The most frequent first: real short words, then generated ones. */
export const VOCABULARY: readonly string[] = makeVocabulary();

function makeVocabulary(): string[] {
  const random = randomFrom(7);
  const words = new Set(WORDS);
  while (words.size < SIZE) {
    const syllables = Array.from({ length: 2 + random.below(2) }, () => syllable(random)).join("");
    words.add(
      words.size % ACCENTED === 0 ? syllables.replace(/[aeiouy]/, (letter) => ACCENTS[letter] ?? letter) : syllables,
    );
  }
  return [...words];
}

function syllable(random: Random): string {
  return random.pick(ONSETS) + random.pick(VOWELS) + random.pick(CODAS);
}

/** The word of rank n is picked about 1/n as often as the first. */
export function anyWord(random: Random): string {
  return VOCABULARY[Math.floor(Math.exp((random.bits() / 2 ** 32) * LOG_SIZE)) - 1] as string;
}

const LOG_SIZE = Math.log(SIZE);

/** A word whose rank lies between the two. */
export function wordBetween(random: Random, first: number, last: number): string {
  return VOCABULARY[first + random.below(last - first)] as string;
}
