/**
 * The content of all benchmarks but `live`: one content type of ten fields, and its entries by number. An entry is made
 * from its number alone, so that any part of the content can be made by itself and is the same in every run.
 */
import type { Field } from "../../shared/api/catalog.ts";
import { richText, sentence, title } from "./prose.ts";
import { type Random, randomFrom } from "./random.ts";
import { DAY, instantOf, spell, uuid } from "./stamp.ts";

/** An app whose entries have the `count` numbers from `first` on. */
export type AppContent = {
  readonly key: string;
  readonly first: number;
  readonly count: number;
  /** Characters of an entry's rich text; BODY when it is left out. */
  readonly body?: number;
};

export type Entry = {
  readonly id: string;
  readonly status: "draft" | "published";
  /** What lists read. */
  readonly data: {
    readonly title: string;
    readonly slug: string;
    readonly summary: string;
    readonly category: string;
    readonly topic: string;
    readonly place: string;
    readonly price: number;
    readonly rating: number;
    readonly cover: string;
  };
  /** What lists do not read. */
  readonly rich: { readonly body: string };
  /** Null for drafts. */
  readonly publishedAt: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export const TYPE = { slug: "articles", name: "Articles", description: "What a bench builds.", icon: "file-text" };
export const FILTERABLE = ["slug", "category", "topic", "place"];
export const SORTABLE = ["title", "price", "rating"];
export const FIELDS: readonly Pick<Field, "name" | "type" | "required" | "searchable">[] = [
  { name: "title", type: "text", required: true, searchable: true },
  { name: "slug", type: "text", required: true, searchable: false },
  { name: "summary", type: "text", required: false, searchable: true },
  { name: "body", type: "rich_text", required: false, searchable: true },
  { name: "category", type: "select", required: true, searchable: false },
  { name: "topic", type: "select", required: true, searchable: false },
  { name: "place", type: "select", required: true, searchable: false },
  { name: "price", type: "number", required: false, searchable: false },
  { name: "rating", type: "number", required: false, searchable: false },
  { name: "cover", type: "media", required: false, searchable: false },
];

export const BODY = 2_900;
const RATINGS = { least: 0, most: 5 };
/** One in DRAFTS entries is a draft, and one in TIES is published at the same instant as the one before. */
const DRAFTS = 100;
const TIES = 50;

const CATEGORIES = ["News", "Guides", "Reviews", "Interviews", "Opinion"];
const TOPICS = names(50, ["Art", "Bread", "Craft", "Design", "Energy"], ["history", "today", "for two", "à la carte"]);
const PLACES = names(500, ["Bel", "Nord", "Sant", "Öst", "Riva", "Lun", "Karl", "Mar"], ["burg", "ville", "stad", "õ"]);

/** Makes `count` different names from parts. */
function names(count: number, heads: readonly string[], tails: readonly string[]): string[] {
  const of = <T>(all: readonly T[], index: number) => all[index % all.length] as T;
  return Array.from({ length: count }, (_, index) => {
    const round = Math.floor(index / heads.length);
    const turn = Math.floor(round / tails.length);
    return `${of(heads, index)} ${of(tails, round)}${turn === 0 ? "" : ` ${turn + 1}`}`;
  });
}

export function isDraft(number: number): boolean {
  return number % DRAFTS === 37;
}

/** Whether the entry is published and far from both ends of a list that is sorted by rating. */
export function isMiddling({ status, data }: Entry): boolean {
  return status === "published" && data.rating > RATINGS.least + 1 && data.rating < RATINGS.most - 1;
}

export function entryOf(number: number, body = BODY): Entry {
  const random = randomFrom(number);
  const id = uuid(random);
  const published = instantOf(number % TIES === TIES - 1 ? number - 1 : number);
  return {
    id,
    status: isDraft(number) ? "draft" : "published",
    data: dataOf(random, number),
    rich: { body: richText(random, body) },
    publishedAt: isDraft(number) ? null : spell(published),
    createdAt: spell(published - random.below(30 * DAY)),
    updatedAt: spell(published + random.below(60 * DAY)),
  };
}

function dataOf(random: Random, number: number): Entry["data"] {
  const name = title(random);
  const slug = `${slugOf(name)}-${number}`;
  return {
    title: name,
    slug,
    summary: `${sentence(random)} ${sentence(random)}`,
    category: random.pick(CATEGORIES),
    topic: random.pick(TOPICS),
    place: random.pick(PLACES),
    price: random.below(200_000) / 100,
    rating: RATINGS.least + random.below((RATINGS.most - RATINGS.least) * 100) / 100,
    cover: `${slug}.jpg`,
  };
}

/** The summary that an entry gets by its edit number `edit`. */
export function newSummary(number: number, edit: number): string {
  return `Edit ${edit}. ${sentence(randomFrom(2 ** 31 + number))}`;
}

function slugOf(name: string): string {
  const plain = name.normalize("NFD").toLowerCase();
  return (plain.match(/[a-z0-9]+/g) ?? ["untitled"]).join("-");
}
