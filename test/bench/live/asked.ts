/** The rows of the `live` benchmark: seeded requests to Precast, and their equivalents to the program by hand. */
import { type Random, randomFrom } from "../random.ts";
import { articleOf, codeOf, peopleOf, SECTIONS, TAGS, TOPICS } from "./article.ts";
import { VOCABULARY, wordBetween } from "./vocabulary.ts";

/** One request, as each side gets it. */
export type Asked = { readonly precast: string; readonly byHand: string };

type Maker = (random: Random, size: number) => Asked;

const MAKERS = {
  populate: (random, size) => entry("author", random, size, "author_id"),
  "populate-many": (random, size) => entry("contributors", random, size, "contributors"),
  eq: (random) => {
    const topic = random.pick(TOPICS);
    return list("eq", { "filter[topic]": topic }, [topic], { per_page: 10, page: 1 + random.below(5) });
  },
  two: (random) => {
    const [topic, section] = [random.pick(TOPICS), random.pick(SECTIONS)];
    return list("two", { "filter[topic]": topic, "filter[section]": section }, [topic, section], {});
  },
  "in-range": inRange,
  contains: (random) => {
    const text = part(wordBetween(random, 200, 20_000), random, 4);
    return list("contains", { "filter[title][contains]": text }, [text.toLowerCase()], {});
  },
  "starts-with": (random, size) => {
    const text = articleOf(random.below(size), peopleOf(size)).data.title.slice(0, 4);
    return list("starts_with", { "filter[title][starts_with]": text }, [text.toLowerCase()], {});
  },
  neq: (random) => {
    const section = random.pick(SECTIONS);
    return list("neq", { "filter[section][neq]": section }, [section], { page: 1 + random.below(20) });
  },
  unique: (random, size) => {
    const code = codeOf(random.below(size));
    return list("code", { "filter[code][in]": code }, [code], {});
  },
  tag: (random) => {
    const tag = random.pick(TAGS);
    return list("tag", { "filter[tags]": tag }, [tag], { page: 1 + random.below(5) });
  },
  sort: (random, size) => list("by_title", { sort: "title" }, [], { page: 1 + below(random, 200, size) }),
  "deep-middle": (random, size) =>
    list("by_title", { sort: "title" }, [], { page: (lastPage(size) >> 1) + below(random, 400, size >> 1) }),
  "deep-last": (random, size) =>
    list("by_title", { sort: "title" }, [], { page: lastPage(size) - below(random, 200, size >> 2) }),
  fields: (random, size) =>
    list("fields", { fields: "title,topic,price,published_at" }, [], { page: 1 + below(random, 200, size) }),
  "search-frequent": (random) => search("one", frequentWord(random), random),
  "search-rare": (random) => search("one", rareWord(random)),
  "search-two": (random) => {
    const words = [frequentWord(random), middlingWord(random)] as const;
    return search("two", words.join(" "), random, {}, words);
  },
  "search-part": (random) => search("one", part(middlingWord(random), random, 4)),
  "search-letters": (random) => search("one", part(middlingWord(random), random, 2)),
  "search-none": (random) => search("one", `${middlingWord(random)}qx${random.below(1_000)}`),
  "search-filter": (random) => {
    const [word, topic] = [middlingWord(random), random.pick(TOPICS)];
    return search("topic", word, random, { "filter[topic]": topic }, [word, topic]);
  },
  "search-sort": (random) => search("by_price", middlingWord(random), random, { sort: "-price" }),
} as const satisfies Readonly<Record<string, Maker>>;

export type RowName = keyof typeof MAKERS;
export const ROWS = Object.keys(MAKERS) as readonly RowName[];

/** What the table says of a row. */
export const ROW_TEXTS: Readonly<Record<RowName, string>> = {
  populate: "entry, populate of one",
  "populate-many": "entry, populate of many",
  eq: "equality and per_page",
  two: "two filters",
  "in-range": "in, range, sort by number",
  contains: "contains, 4 letters",
  "starts-with": "starts_with, 4 letters",
  neq: "neq",
  unique: "in with one unique value",
  tag: "element of a multiple field, page",
  sort: "sort by text, pages 1 to 200",
  "deep-middle": "sort by text, middle page",
  "deep-last": "sort by text, last page",
  fields: "fields, pages 1 to 200",
  "search-frequent": "search, frequent word",
  "search-rare": "search, rare word",
  "search-two": "search, two words",
  "search-part": "search, part of a word",
  "search-letters": "search, two letters",
  "search-none": "search, no hit",
  "search-filter": "search, filter",
  "search-sort": "search, sort by number",
};

/** Up to `count` different requests of a row; fewer where there are not as many. */
export function askedOf(row: RowName, size: number, count: number): Asked[] {
  const random = randomFrom(1 + ROWS.indexOf(row));
  const all = new Map<string, Asked>();
  for (let turn = 0; turn < 4 * count && all.size < count; turn++) {
    const asked = MAKERS[row](random, size);
    all.set(asked.precast, asked);
  }
  return [...all.values()];
}

const BASE = "/api/v1/articles";
const PER_PAGE = 20;

function lastPage(size: number): number {
  return Math.ceil(size / PER_PAGE);
}

/** A random number, less than the limit and than the number of pages of `size` articles. */
function below(random: Random, limit: number, size: number): number {
  return random.below(Math.min(limit, lastPage(size)));
}

function entry(kind: string, random: Random, size: number, populate: string): Asked {
  const { id } = articleOf(random.below(size), peopleOf(size), 1);
  return { precast: `${BASE}/${id}?populate=${populate}`, byHand: `/entry/${kind}/${id}` };
}

function inRange(random: Random): Asked {
  const topics = [random.pick(TOPICS), random.pick(TOPICS), random.pick(TOPICS)].join(",");
  const price = 1_000 + random.below(900);
  const asked = { "filter[topic][in]": topics, "filter[price][gte]": price, sort: "-price" };
  return list("in_range", asked, [topics, price], {});
}

type Parameters = Readonly<Record<string, string | number>>;
type Values = readonly (string | number)[];

function list(kind: string, own: Parameters, values: Values, paging: Parameters): Asked {
  return {
    precast: `${BASE}?${form({ ...own, ...paging })}`,
    byHand: `/list/${kind}?${form(paging)}&${valuesForm(values)}`,
  };
}

/** With `random`, requests one of the first three pages. */
function search(kind: string, q: string, random?: Random, own: Parameters = {}, values: Values = [q]): Asked {
  const paging: Parameters = random === undefined ? {} : { page: 1 + random.below(3) };
  return {
    precast: `${BASE}/search?${form({ q, ...own, ...paging })}`,
    byHand: `/search/${kind}?${form({ q, ...paging })}&${valuesForm(values)}`,
  };
}

function form(parameters: Parameters): string {
  return pairsForm(Object.entries(parameters));
}

function valuesForm(values: Values): string {
  return pairsForm(values.map((value) => ["v", value]));
}

function pairsForm(pairs: readonly (readonly [string, string | number])[]): string {
  const form = new URLSearchParams();
  for (const [name, value] of pairs) form.append(name, String(value));
  return form.toString();
}

// ---- Words by their frequency in the texts

function frequentWord(random: Random): string {
  return longEnough(random, 20, 150);
}

function middlingWord(random: Random): string {
  return longEnough(random, 500, 5_000);
}

function rareWord(random: Random): string {
  return longEnough(random, 50_000, VOCABULARY.length);
}

function longEnough(random: Random, first: number, last: number): string {
  for (;;) {
    const word = wordBetween(random, first, last);
    if (word.length >= 4) return word;
  }
}

function part(word: string, random: Random, length: number): string {
  return word.length <= length ? word : word.slice(random.below(word.length - length + 1)).slice(0, length);
}
