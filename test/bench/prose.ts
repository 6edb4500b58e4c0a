/** Text that compresses like text: titles, sentences and HTML out of a small vocabulary. */
import type { Random } from "./random.ts";

export const WORDS = (
  "the a of and to in that was it for on with as at by from this which were but not are his her they had one when " +
  "their there been more who would about into could out up time only some so two may first then do any like my now " +
  "over such our man me even most made after also did many before must through years where much your way well down " +
  "should because each just those people how too little state good very make world still own see men work long here " +
  "get both between life being under three never know same last another while us off might great go come since " +
  "against right came take used himself few house use place during without again home around small however found " +
  "part once general high upon school every does got left number until course war always away something fact water " +
  "though less public put thing almost hand enough far took head yet government system better set told nothing night " +
  "end why called look find going point city harbour lantern river mountain bridge station market garden window " +
  "kitchen museum village morning evening winter summer island coast forest meadow letter travel train ferry road " +
  "quiet narrow open early late bright heavy gentle local famous hidden narrow stone wooden painted written carried " +
  "opened closed arrived returned remembered repaired discovered measured collected"
).split(" ");

const FOREIGN = [
  "Café",
  "Zürich",
  "São",
  "Łódź",
  "Ødegård",
  "naïve",
  "Ängelholm",
  "Москва",
  "Αθήνα",
  "東京",
  "Señor",
  "Çeşme",
  "Þingvellir",
  "garçon",
];

export function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Some titles have a word with letters beyond ASCII. */
export function title(random: Random): string {
  const words = Array.from({ length: 3 + random.below(3) }, () => capitalised(random.pick(WORDS)));
  if (random.below(7) === 0) words.splice(random.below(words.length), 1, random.pick(FOREIGN));
  return words.join(" ");
}

export function sentence(random: Random): string {
  const length = 7 + random.below(12);
  const comma = random.below(2) === 0 ? random.below(length - 1) : -1;
  let text = capitalised(random.pick(WORDS));
  for (let place = 1; place < length; place++) text += `${place - 1 === comma ? "," : ""} ${random.pick(WORDS)}`;
  return `${text}.`;
}

/** Paragraphs with some headings, links and emphasised words, of about `size` characters. */
export function richText(random: Random, size: number): string {
  let html = "";
  while (html.length < size) {
    if (random.below(4) === 0) html += `<h2>${title(random)}</h2>\n`;
    html += `<p>${paragraph(random)}</p>\n`;
  }
  return html;
}

function paragraph(random: Random): string {
  const sentences = Array.from({ length: 2 + random.below(4) }, () => sentence(random));
  const word = random.pick(WORDS);
  if (random.below(3) === 0) sentences.push(`<strong>${capitalised(word)}</strong> &amp; ${sentence(random)}`);
  if (random.below(5) === 0) sentences.push(`<a href="https://example.com/${word}">${sentence(random)}</a>`);
  return sentences.join(" ");
}
