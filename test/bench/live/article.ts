/**
 * The content of the `live` benchmark: articles by number, and the people whom they name. Each is made from its number
 * alone, so that it is the same in every run. There are no drafts, because the table by hand holds only what is
 * visible.
 */
import { capitalised } from "../prose.ts";
import { type Random, randomFrom } from "../random.ts";
import { DAY, instantOf, spell, uuid } from "../stamp.ts";
import { anyWord } from "./vocabulary.ts";

export type Stamps = { readonly published_at: string; readonly created_at: string; readonly updated_at: string };

export type Article = Stamps & {
  readonly id: string;
  readonly data: {
    readonly title: string;
    readonly code: string;
    readonly topic: string;
    readonly section: string | null;
    readonly price: number | null;
    readonly featured: boolean;
    readonly day: string;
    readonly tags: readonly string[];
    readonly author_id: string;
    readonly contributors: readonly string[];
  };
  readonly body: string;
};

export type Person = Stamps & {
  readonly id: string;
  readonly data: { readonly name: string; readonly country: string; readonly born: number };
  readonly bio: string;
};

/** One article in WITHOUT has no section, and one in WITHOUT no price. */
const WITHOUT = 50;
/** One article in TIES is published at the same instant as the one before. */
const TIES = 50;
const PRICES = 200_000;
const LENGTH = 200;

export const TOPICS = Array.from({ length: 50 }, (_, index) => `Topic ${index + 1}`);
export const SECTIONS = ["News", "Guides", "Reviews", "Interviews", "Opinion"];
export const TAGS = Array.from({ length: 40 }, (_, index) => `tag-${index + 1}`);
const COUNTRIES = ["Chile", "Estonia", "Ghana", "Japan", "Norway", "Peru"];

/** The number of people that this number of articles names. */
export function peopleOf(articles: number): number {
  return Math.max(20, Math.floor(articles / 50));
}

/** The body has at least `length` words, and less than twice as many. */
export function articleOf(number: number, people: number, length = LENGTH): Article {
  const random = randomFrom(number);
  const id = uuid(random);
  const published = instantOf(number % TIES === TIES - 1 ? number - 1 : number);
  const title = phrase(random, 3 + random.below(4));
  return {
    id,
    data: {
      title,
      code: codeOf(number),
      topic: random.pick(TOPICS),
      section: random.below(WITHOUT) === 0 ? null : random.pick(SECTIONS),
      price: random.below(WITHOUT) === 0 ? null : random.below(PRICES) / 100,
      featured: random.below(10) === 0,
      day: spell(published).slice(0, 10),
      tags: some(1 + random.below(4), () => random.pick(TAGS)),
      author_id: personId(random.below(people)),
      contributors: some(1 + random.below(5), () => personId(random.below(people))),
    },
    body: html(random, length + random.below(length)),
    ...stampsOf(random, published),
  };
}

export function codeOf(number: number): string {
  return `A-${((number * 7_919) % 10_000_019).toString(36)}-${number}`;
}

export function personOf(number: number): Person {
  const random = randomFrom(PEOPLE + number);
  uuid(random);
  return {
    id: personId(number),
    data: { name: phrase(random, 2), country: random.pick(COUNTRIES), born: 1_930 + random.below(75) },
    bio: html(random, 60),
    ...stampsOf(random, instantOf(number)),
  };
}

/** The seeds of people begin here, after those of articles. */
const PEOPLE = 2 ** 30;

function personId(number: number): string {
  return uuid(randomFrom(PEOPLE + number));
}

function some<T>(count: number, make: () => T): T[] {
  return [...new Set(Array.from({ length: count }, make))];
}

function phrase(random: Random, length: number): string {
  return Array.from({ length }, () => capitalised(anyWord(random))).join(" ");
}

/** Paragraphs of `length` words together, some of them with an emphasised word and an entity. */
function html(random: Random, length: number): string {
  const paragraphs: string[] = [];
  for (let left = length; left > 0; left -= 50) paragraphs.push(paragraph(random, Math.min(50, left)));
  return paragraphs.join("\n");
}

function paragraph(random: Random, length: number): string {
  const words = Array.from({ length }, () => anyWord(random));
  words[0] = capitalised(words[0] as string);
  if (random.below(3) === 0) words[length >> 1] = `<strong>${words[length >> 1]}</strong> &amp;`;
  return `<p>${words.join(" ")}.</p>`;
}

/** What a search looks through: the words of title and body, each with a blank on both sides, in lower case. */
export function searchedText(title: string, body: string): string {
  const text = `${title} ${body}`.replace(/<[^>]*>/g, " ").replaceAll("&amp;", " ");
  return ` ${(text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).join("  ")} `;
}

function stampsOf(random: Random, published: number): Stamps {
  return {
    published_at: spell(published),
    created_at: spell(published - random.below(30 * DAY)),
    updated_at: spell(published + random.below(60 * DAY)),
  };
}
