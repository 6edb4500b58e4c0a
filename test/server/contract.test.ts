/**
 * The contract, sentence by sentence, as examples: what is asked is written as a client writes it, what is answered was
 * worked out by hand from spec.md and contract.md. Content: test/support/library.ts.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EXACT_NUMBER, LIBRARY_KEY, LIBRARY_MEDIA, libraryId, loadLibrary } from "../support/library.ts";
import { type Asked, buildSite, type Door, type Got, openDoor, openStore, type Store } from "../support/site.ts";

const TREE = "PostgreSQL with a tree";
const LIVE = "PostgreSQL without a tree";
const EMBEDDED = "the embedded database";
const ENGINES = [TREE, LIVE, EMBEDDED];
const SITES = [TREE, LIVE];

const stores: Store[] = [];
const doors = new Map<string, Door>();

beforeAll(async () => {
  const [postgres, embedded] = await Promise.all([openStore("postgres"), openStore("embedded")]);
  stores.push(postgres, embedded);
  await Promise.all(stores.map(loadLibrary));
  await buildSite(postgres);
  doors.set(TREE, await openDoor(postgres));
  doors.set(LIVE, await openDoor(postgres, join(postgres.folder, "nowhere")));
  doors.set(EMBEDDED, await openDoor(embedded));
});

afterAll(async () => {
  const errors = [...doors.values()].flatMap((door) => door.errors);
  await Promise.all([...doors.values()].map((door) => door.close()));
  await Promise.all(stores.map((store) => store.close()));
  expect(errors).toEqual([]);
});

/** Asks for a target below `/api/v1` with the key of the library. */
function ask(site: string, target: string, asked: Asked = {}): Promise<Got> {
  return askRaw(site, `/api/v1${target}`, { appKey: LIBRARY_KEY, ...asked });
}

function askRaw(site: string, target: string, asked: Asked = {}): Promise<Got> {
  return (doors.get(site) as Door).get(target, asked);
}

/** Blanks, quotes and the like in their encoded form; `%`, `+`, `&`, `=` and brackets stay as they are written. */
function encoded(target: string): string {
  return target.replace(/[^\x21-\x7e]|["<>\\^`{|}]/gu, encodeURIComponent);
}

/** The entries of a list by the last characters of their ids: `5 6 4`. */
function idsOf(got: Got): string {
  expect(got.status, got.text).toBe(200);
  return got.json.data.map((item: { id: string }) => Number(item.id.slice(-12))).join(" ");
}

async function expectIds(site: string, target: string, ids: string): Promise<void> {
  const got = await ask(site, encoded(target));
  expect(idsOf(got)).toBe(ids);
  expect(got.json.meta.total).toBe(ids === "" ? 0 : ids.split(" ").length);
}

async function expectError(site: string, target: string, status: number, code: string, parameter?: string) {
  const got = await ask(site, encoded(target));
  expect([got.status, got.json.error?.code], got.text).toEqual([status, code]);
  expect(got.json.error.parameter).toBe(parameter);
  expect(got.json.error.message).toMatch(/^.{20,}\.$/);
}

const ALL = "5 6 4 3 2 1";
const NOTHING = "";

describe.each(ENGINES)("filters on %s", (site) => {
  test.each([
    // Text: exact and case-sensitive.
    ["filter[title]=Apple", "2"],
    ["filter[title]=APPLE", NOTHING],
    ["filter[title]=%20Apple", NOTHING],
    ["filter[title]=Äpfel", "3"],
    ["filter[title][neq]=Apple", "5 6 4 3 1"],
    ["filter[title][in]=Apple,Zebra,nothing", "5 2"],
    ["filter[title][nin]=Apple,Zebra", "6 4 3 1"],
    ["filter[title][contains]=APP", "2 1"],
    ["filter[title][contains]=äP", "3"],
    ["filter[title][starts_with]=an", NOTHING],
    ["filter[title][contains]=an", "4"],
    ["filter[title][starts_with]=BAN", "4"],
    ["filter[title][contains]=a%25", NOTHING],
    ["filter[title][contains]=_pple", NOTHING],
    ["filter[title][contains]=\\", NOTHING],
    ["filter[title][gt]=1", NOTHING],
    // Select: comparisons look at the values that are numbers.
    ["filter[genre]=News", "3"],
    ["filter[genre]=news", "4"],
    ["filter[genre][neq]=News", "5 6 4 2 1"],
    ["filter[genre][gt]=3.5", "2 1"],
    ["filter[genre][gte]=3.5", "6 2 1"],
    ["filter[genre][lt]=10", "6 2"],
    ["filter[genre][lte]=12.0", "6 2 1"],
    ["filter[genre]=12.0", NOTHING],
    ["filter[genre][contains]=EW", "4 3"],
    ["filter[genre][in]=News,12", "3 1"],
    // A multiple field meets a condition when one of its values does, `neq` and `nin` when none does.
    ["filter[category]=News", "2 1"],
    ["filter[category]=a,b", "3"],
    ["filter[category][neq]=News", "5 6 4 3"],
    ["filter[category][in]=News,news", "6 2 1"],
    ["filter[category][in]=a,b", NOTHING],
    ["filter[category][nin]=News,news", "5 4 3"],
    ["filter[category][contains]=REPORT", "1"],
    ["filter[category][contains]=%25", "3"],
    ["filter[category][starts_with]=NEWS", "6 2 1"],
    ["filter[category][starts_with]=report", NOTHING],
    ["filter[category][gt]=0", NOTHING],
    ["filter[aliases]=two", "1"],
    ["filter[aliases][lt]=8", "3"],
    ["filter[aliases][neq]=two", "5 6 4 3 2"],
    ["filter[gallery]=a/b.png", "1"],
    ["filter[gallery][gte]=12", "3"],
    ["filter[gallery][contains]=.PNG", "1"],
    ["filter[related]=abcdef00-0000-4000-8000-000000000002", "1"],
    ["filter[related]=ABCDEF00-0000-4000-8000-000000000004", "4"],
    ["filter[related][nin]=abcdef00-0000-4000-8000-000000000002", "5 6 4 3 2"],
    // Lists are split at commas, not trimmed, and their empty parts are dropped.
    ["filter[category][in]=,News,,", "2 1"],
    ["filter[category][in]=News,+news", "2 1"],
    ["filter[category][in]=,", NOTHING],
    ["filter[category][nin]=,", ALL],
    // Media.
    ["filter[cover]=T20+final.png", "1"],
    ["filter[cover]=poster.jpg", "2"],
    ["filter[cover]=ü%2Bö%26.webp", "4"],
    ["filter[cover][neq]=12", "6 4 3 2 1"],
    ["filter[cover][contains]=POSTER", "3 2"],
    ["filter[cover][gte]=12", "5"],
    ["filter[cover][lt]=12", NOTHING],
    // Numbers: by value.
    ["filter[price]=10", "1"],
    ["filter[price]=10.0", "1"],
    ["filter[price]=010", "1"],
    ["filter[price]=1e1", "1"],
    ["filter[price]=100e-1", "1"],
    ["filter[price]=-0", "6"],
    ["filter[price]=-1.50", "4"],
    ["filter[price]=9007199254740993", "3"],
    ["filter[price]=%2B10", NOTHING],
    ["filter[price]=+10", NOTHING],
    ["filter[price]=.5", NOTHING],
    ["filter[price]=10.", NOTHING],
    ["filter[price]=0x0A", NOTHING],
    ["filter[price]=1E1", NOTHING],
    ["filter[price]=١٠", NOTHING],
    ["filter[price]=Infinity", NOTHING],
    ["filter[price]=NaN", NOTHING],
    ["filter[price]=ten", NOTHING],
    ["filter[price]=1e999", NOTHING],
    ["filter[price][neq]=10", "5 6 4 3 2"],
    ["filter[price][neq]=ten", ALL],
    ["filter[price][gt]=9", "3 1"],
    ["filter[price][gte]=9.0", "3 2 1"],
    ["filter[price][lt]=0", "4"],
    ["filter[price][lte]=0", "6 4"],
    ["filter[price][lt]=1e999", "6 4 3 2 1"],
    ["filter[price][gt]=1e999", NOTHING],
    ["filter[price][gt]=-1e999", "6 4 3 2 1"],
    ["filter[price][in]=10,9.0,ten", "2 1"],
    ["filter[price][nin]=10,9.0,ten", "5 6 4 3"],
    ["filter[price][contains]=.5", "4"],
    ["filter[price][contains]=0993", "3"],
    ["filter[price][starts_with]=-", "4"],
    // Boolean.
    ["filter[in_print]=true", "3 1"],
    ["filter[in_print]=1", "3 1"],
    ["filter[in_print]=false", "5 2"],
    ["filter[in_print]=0", "5 2"],
    ["filter[in_print]=TRUE", NOTHING],
    ["filter[in_print]=yes", NOTHING],
    ["filter[in_print][neq]=true", "5 6 4 2"],
    ["filter[in_print][in]=1,0", "5 3 2 1"],
    ["filter[in_print][nin]=1,0", "6 4"],
    ["filter[in_print][contains]=RU", "3 1"],
    ["filter[in_print][starts_with]=f", "5 2"],
    // Date: the same day, also of an instant.
    ["filter[day]=2026-01-20", "1"],
    ["filter[day]=2026-01-20T23:59:59.999Z", "1"],
    ["filter[day]=2026-01-20T23:30:00-02:00", "2"],
    ["filter[day]=2026-01-21T01:00+03:00", "1"],
    ["filter[day]=2026-1-20", NOTHING],
    ["filter[day]=2026-02-30", NOTHING],
    ["filter[day][neq]=2026-01-20", "5 6 4 3 2"],
    ["filter[day][gt]=2026-01-20", "2"],
    ["filter[day][gt]=2026-01-20T10:00:00Z", "2"],
    ["filter[day][gte]=2026-01-20", "2 1"],
    ["filter[day][lt]=2025-12-31", "5"],
    ["filter[day][lte]=2025-12-31", "5 3"],
    ["filter[day][in]=2026-01-20,1999-02-28", "5 1"],
    ["filter[day][nin]=2026-01-20,1999-02-28", "6 4 3 2"],
    ["filter[day][contains]=-01-", "2 1"],
    ["filter[day][starts_with]=1999", "5"],
    // Datetime: the same instant, whatever its spelling.
    ["filter[starts_at]=2026-01-20T15:30:00.000%2B00:00", "1"],
    ["filter[starts_at]=2026-01-20T15:30Z", "1"],
    ["filter[starts_at]=2026-01-20T15:30", "1"],
    ["filter[starts_at]=2026-01-20T17:30:00%2B02:00", "1"],
    ["filter[starts_at]=2026-01-20T17:30:00+02:00", "1"],
    ["filter[starts_at]=2026-01-20T10:30:00-05:00", "1"],
    ["filter[starts_at]=2026-01-20T15:30:00.001Z", "3"],
    ["filter[starts_at]=2026-01-21", "2"],
    ["filter[starts_at]=2026-01-20", NOTHING],
    ["filter[starts_at]=2026-01-20+15:30:00Z", NOTHING],
    ["filter[starts_at]=2026-01-20T25:30:00Z", NOTHING],
    ["filter[starts_at][neq]=2026-01-21", "5 6 4 3 1"],
    ["filter[starts_at][gt]=2026-01-20T15:30:00Z", "3 2"],
    ["filter[starts_at][gte]=2026-01-20T15:30:00Z", "3 2 1"],
    ["filter[starts_at][lt]=2026-01-20", "5"],
    ["filter[starts_at][lte]=2026-01-20T15:30:00.001Z", "5 3 1"],
    ["filter[starts_at][in]=2026-01-21,2026-01-20T15:30Z", "2 1"],
    ["filter[starts_at][nin]=2026-01-21,2026-01-20T15:30Z", "5 6 4 3"],
    ["filter[starts_at][starts_with]=2026-01-20t15", "3 1"],
    ["filter[starts_at][contains]=00.001%2B00:00", "3"],
    // The timestamp columns.
    ["filter[published_at]=2026-01-01", "1"],
    ["filter[published_at]=2026-01-03T12:00:00.123Z", "3"],
    ["filter[published_at][gte]=2026-01-04", "5 6 4"],
    ["filter[published_at][lt]=2026-01-02T00:00:00.001Z", "2 1"],
    ["filter[published_at][neq]=2026-01-05", "4 3 2 1"],
    ["filter[published_at][contains]=-05T00", "5 6"],
    ["filter[published_at][in]=2026-01-01,2026-01-02T00:00Z", "2 1"],
    ["filter[created_at][gt]=2025-05-01", "1"],
    ["filter[published_at]=junk", NOTHING],
    // Relation: a UUID of any case.
    ["filter[author_id]=abcdef00-0000-4000-8000-000000000001", "6 1"],
    ["filter[author_id]=ABCDEF00-0000-4000-8000-000000000001", "6 1"],
    ["filter[author_id]=abcdef000000400080000000000000001", NOTHING],
    ["filter[author_id][neq]=abcdef00-0000-4000-8000-000000000001", "5 4 3 2"],
    ["filter[author_id][in]=abcdef00-0000-4000-8000-000000000001,ABCDEF00-0000-4000-8000-000000000099", "6 3 1"],
    ["filter[author_id][nin]=abcdef00-0000-4000-8000-000000000001,x", "5 4 3 2"],
    ["filter[author_id][contains]=0099", "3"],
    ["filter[author_id][starts_with]=ABCDEF", "5 6 3 2 1"],
    // Several conditions are combined with AND, two operators on one field too.
    ["filter[genre][gt]=0&filter[price][gt]=0", "2 1"],
    ["filter[price][gte]=0&filter[price][lt]=10", "6 2"],
    ["filter[title]=apple&filter[price]=9", NOTHING],
    ["filter[category][contains]=e&filter[in_print]=true&filter[day][gt]=2026-01-01", "1"],
  ])("%s", (query, ids) => expectIds(site, `/works?${query}`, ids));

  test.each([
    "filter[price][gt]=ten",
    "filter[price][gte]=9,10",
    "filter[price][lt]=+9",
    "filter[title][lt]=abc",
    "filter[genre][lte]=1.2.3",
    "filter[cover][gt]=a",
    "filter[category][gt]=News",
    "filter[in_print][gt]=true",
    "filter[in_print][lte]=1",
    "filter[author_id][gt]=abcdef00-0000-4000-8000-000000000001",
    "filter[related][lt]=1",
    "filter[day][gt]=2026-02-30",
    "filter[day][gt]=12",
    "filter[starts_at][gte]=2026-01-20T15:60Z",
    "filter[published_at][gt]=yesterday",
  ])("%s cannot be compared", (query) => {
    const parameter = query.slice(0, query.indexOf("="));
    return expectError(site, `/works?${query}`, 400, "INVALID_FILTER_VALUE", parameter);
  });
});

describe.each(ENGINES)("sorting on %s", (site) => {
  test.each([
    ["", ALL],
    ["?sort=title", "3 1 2 4 5 6"],
    ["?sort=-title", "5 4 2 1 3 6"],
    ["?sort=genre", "1 6 2 4 3 5"],
    ["?sort=-genre", "3 4 2 6 1 5"],
    ["?sort=cover", "5 2 3 1 4 6"],
    ["?sort=-cover", "4 1 3 2 5 6"],
    ["?sort=price", "4 6 2 1 3 5"],
    ["?sort=-price", "3 1 2 6 4 5"],
    ["?sort=in_print", "5 2 3 1 6 4"],
    ["?sort=-in_print", "3 1 5 2 6 4"],
    ["?sort=day", "5 3 1 2 6 4"],
    ["?sort=-day", "2 1 3 5 6 4"],
    ["?sort=starts_at", "5 1 3 2 6 4"],
    ["?sort=-starts_at", "2 3 1 5 6 4"],
    ["?sort=published_at", ALL],
    ["?sort=-published_at", ALL],
    ["?sort=created_at", "1 2 3 4 5 6"],
    ["?sort=-created_at", "1 2 3 4 5 6"],
    ["?sort=updated_at", ALL],
    ["?sort=-updated_at", ALL],
    ["?sort=title&filter[price][gte]=9", "3 1 2"],
    ["?sort=-price&per_page=100", "3 1 2 6 4 5"],
  ])("/works%s", (query, ids) => expectIds(site, `/works${query}`, ids));

  test.each([
    ["/authors", "1 4"],
    ["/authors?page=2", "3 5"],
    ["/authors?page=3", "8"],
    ["/authors?per_page=100", "1 4 3 5 8"],
    ["/authors?per_page=100&sort=published_at", "1 3 4 5 8"],
    ["/authors?sort=published_at", "1 3"],
  ])("a type with an order and a page size of its own: %s", async (target, ids) => {
    const got = await ask(site, target);
    expect(idsOf(got)).toBe(ids);
    expect(got.json.meta.total).toBe(5);
  });

  test.each([
    ["/constructor?sort=constructor", "2 1"],
    ["/constructor?sort=-sort", "1 2"],
    ["/constructor?filter[constructor]=1", "2"],
    ["/constructor?filter[sort]=b", "1"],
    ["/constructor?filter[page]=true", "1"],
    ["/constructor?filter[filter]=y", "2"],
    ["/constructor?filter[filter][in]=x,y", "2 1"],
    ["/search", "1"],
    ["/search?filter[label]=Lost+keys", "1"],
    ["/search/search?q=keys", "1"],
    ["/constructor/search?q=aa", ""],
    ["/0", ""],
  ])("names that mean something else: %s", (target, ids) => expectIds(site, target, ids));
});

describe.each(ENGINES)("search on %s", (site) => {
  test.each([
    ["full words come before parts, then the newest", "otter", "2 1 3"],
    ["the case of words does not matter", "OTTER", "2 1 3"],
    ["every word must be full for an entry to come first", "fox+wolf", "23 21 22"],
    ["a term of two words finds them in any order", "wolf+the", "23"],
    ["signs separate words", "panda-red", "12 11"],
    ["an underscore separates words", "snow_leopard", "24"],
    ["blanks around the term do not count", "++otter%20", "2 1 3"],
    ["a percent sign separates words", "el%25wea", "15"],
    ["one word in a field and one in another", "red+panda", "12 11"],
    ["a tag is no text", "script", NOTHING],
    ["an attribute is no text, a comment, a script and a style neither", "walrus", NOTHING],
    ["a style is no text", "color", NOTHING],
    ["what stands between them is", "seal", "13"],
    ["block tags separate words", "hornet", NOTHING],
    ["words that block tags separate", "hor+net", "14"],
    ["br separates words", "loris", NOTHING],
    ["br with a slash separates words", "marten", NOTHING],
    ["inline tags do not separate words", "weasel", "15"],
    ["several inline tags do not separate words", "stoat", "15"],
    ["named entities are decoded", "café", "16"],
    ["numeric entities are decoded", "naïve", "16"],
    ["hexadecimal entities are decoded", "日本", "16"],
    ["the name of an entity is no text", "eacute", NOTHING],
    ["entities are decoded once", "lt", "16"],
    ["an entity that is decoded once is not there", "amp", NOTHING],
    ["a no-break space separates words", "ibis", "16"],
    ["Cyrillic in any case", "МОСКВА+метро", "17"],
    ["a part of Japanese", "京都", "18"],
    ["marks belong to words", "हिन्दी", "18"],
    ["accents in any case", "ÉTÉ", "19"],
    ["accents count", "ete+2026", NOTHING],
    ["digits are words", "2026", "19"],
    ["a field that is not searchable", "capybara", NOTHING],
    ["a select with many values", "lynx", "20"],
    ["the values of one field", "cub+lynx", "20"],
    ["no word at all", "!!", NOTHING],
    ["percent signs alone", "%25%25", NOTHING],
    ["underscores alone", "__", NOTHING],
    ["an emoji is no word", "😀😀", NOTHING],
    ["a word that nothing holds", "unicorn", NOTHING],
    ["all words must occur", "otter+unicorn", NOTHING],
  ])("%s: q=%s", (_, q, ids) => expectIds(site, `/texts/search?q=${q}`, ids));

  test.each([
    ["q=otter&filter[title]=otter", "2 1"],
    ["q=otter&filter[published_at][gt]=2026-01-04", "2 3"],
    ["q=otter&sort=published_at", "3 2 1"],
    ["q=otter&sort=-title", "3 2 1"],
    ["q=otter&sort=title&filter[title][neq]=otter", "3"],
  ])("%s", (query, ids) => expectIds(site, `/texts/search?${query}`, ids));

  test("a part of a word finds every entry that holds it", async () => {
    const got = await ask(site, "/texts/search?q=tte");
    expect(idsOf(got).split(" ").sort()).toEqual(["1", "2", "3"]);
  });

  test("pages of a search", async () => {
    const got = await ask(site, "/texts/search?q=otter&per_page=2&page=2");
    expect(idsOf(got)).toBe("3");
    expect(got.text).toContain('"meta":{"current_page":2,"per_page":2,"total":3,"last_page":2,"query":"otter"}}');
  });

  test("the page size of a search is 20, whatever the type says", async () => {
    const got = await ask(site, "/authors/search?q=writer");
    expect(idsOf(got).split(" ").sort()).toEqual(["1", "3", "4"]);
    expect(got.json.meta).toEqual({ current_page: 1, per_page: 20, total: 3, last_page: 1, query: "writer" });
  });

  test("meta.query is the trimmed term as it was sent", async () => {
    const got = await ask(site, encoded('/texts/search?q=+"Otter"%09Ä+'));
    expect(got.json.meta.query).toBe('"Otter"\tÄ');
  });
});

const WORK_1 = {
  id: libraryId(1),
  title: "apple",
  slug: "apple-one",
  category: ["News", "Match Report"],
  genre: "12",
  cover: "T20 final.png",
  cover_url: `${LIBRARY_MEDIA}T20%20final.png`,
  gallery: ["a/b.png", "100%.gif"],
  gallery_url: [`${LIBRARY_MEDIA}a%2Fb.png`, `${LIBRARY_MEDIA}100%25.gif`],
  aliases: ["One", "two"],
  body: "<p>Hello <b>orchard</b></p>",
  notes: null,
  author_id: libraryId(1),
  secret_id: libraryId(1),
  related: [libraryId(3), libraryId(7), libraryId(99), libraryId(2)],
  price: 10,
  in_print: true,
  day: "2026-01-20",
  starts_at: "2026-01-20T15:30:00.000+00:00",
  extra: { a: [1, "x y: z, w"], b: { c: null } },
  published_at: "2026-01-01T00:00:00.000+00:00",
  created_at: "2025-06-01T00:00:00.000+00:00",
  updated_at: "2026-02-01T00:00:00.000+00:00",
};

const WORK_6 = {
  id: libraryId(6),
  title: null,
  slug: "untitled",
  category: ["news"],
  genre: "3.5",
  cover: null,
  cover_url: null,
  gallery: null,
  gallery_url: null,
  aliases: null,
  body: null,
  notes: null,
  author_id: libraryId(1),
  secret_id: null,
  related: null,
  price: 0,
  in_print: null,
  day: null,
  starts_at: null,
  extra: null,
  published_at: "2026-01-05T00:00:00.000+00:00",
  created_at: "2025-01-01T00:00:00.000+00:00",
  updated_at: "2026-02-01T00:00:00.000+00:00",
};

const AUTHOR_1 = {
  id: libraryId(1),
  name: "Ann",
  bio: "<p>writer</p>",
  photo: "ann.png",
  photo_url: `${LIBRARY_MEDIA}ann.png`,
  friend_id: libraryId(3),
  published_at: "2026-01-01T00:00:00.000+00:00",
  created_at: "2025-01-01T00:00:00.000+00:00",
  updated_at: "2026-02-01T00:00:00.000+00:00",
};

function without(object: object, names: string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

describe.each(ENGINES)("entries on %s", (site) => {
  const work = `/works/${libraryId(1)}`;

  test("a single entry has every key, in the order of the type", async () => {
    expect((await ask(site, work)).text).toBe(JSON.stringify({ data: WORK_1 }));
  });

  test("a field without a value is null", async () => {
    expect((await ask(site, `/works/${libraryId(6)}`)).text).toBe(JSON.stringify({ data: WORK_6 }));
  });

  test("an empty array stays one, with an empty array of addresses", async () => {
    const { json } = await ask(site, `/works/${libraryId(2)}`);
    expect([json.data.gallery, json.data.gallery_url, json.data.related]).toEqual([[], [], []]);
  });

  test("a JSON field may hold a text", async () => {
    expect((await ask(site, `/works/${libraryId(3)}`)).json.data.extra).toBe("plain");
  });

  test("an empty text is a value", async () => {
    expect((await ask(site, `/works/${libraryId(4)}`)).json.data.slug).toBe("");
  });

  test("a file name is encoded in its address", async () => {
    const { data } = (await ask(site, `/works/${libraryId(4)}`)).json;
    expect([data.cover, data.cover_url]).toEqual(["ü+ö&.webp", `${LIBRARY_MEDIA}%C3%BC%2B%C3%B6%26.webp`]);
  });

  test.each([`/works/${libraryId(3)}`, "/works?sort=-price", "/works?per_page=1&fields=price&filter[genre]=News"])(
    "a number keeps every digit: %s",
    async (target) => {
      expect((await ask(site, target)).text).toContain(`"price":${EXACT_NUMBER}`);
    },
  );

  test("a number with decimals", async () => {
    expect((await ask(site, `/works/${libraryId(4)}`)).text).toContain('"price":-1.5,');
  });

  test("a timestamp is kept to the millisecond", async () => {
    expect((await ask(site, `/works/${libraryId(3)}`)).json.data.published_at).toBe("2026-01-03T12:00:00.123+00:00");
  });

  test("an id in upper case finds the entry, which shows it in lower case", async () => {
    expect((await ask(site, `/works/${libraryId(1).toUpperCase()}`)).text).toBe(JSON.stringify({ data: WORK_1 }));
  });

  test("the same id in another type is another entry", async () => {
    expect((await ask(site, `/authors/${libraryId(1)}`)).text).toBe(JSON.stringify({ data: AUTHOR_1 }));
  });

  test("a list has every field but rich text, and its meta", async () => {
    const items = [without(WORK_1, ["body", "notes"])];
    const meta = { current_page: 6, per_page: 1, total: 6, last_page: 6 };
    expect((await ask(site, "/works?per_page=1&page=6")).text).toBe(JSON.stringify({ data: items, meta }));
  });

  test("the default list has the same items", async () => {
    const got = await ask(site, "/works");
    expect(JSON.stringify(got.json.data.at(-1))).toBe(JSON.stringify(without(WORK_1, ["body", "notes"])));
    expect(JSON.stringify(got.json.data[1])).toBe(JSON.stringify(without(WORK_6, ["body", "notes"])));
    expect(got.text).toContain(',"meta":{"current_page":1,"per_page":20,"total":6,"last_page":1}}');
  });

  test("an empty list has a last page of 1", async () => {
    const meta = { current_page: 1, per_page: 20, total: 0, last_page: 1 };
    expect((await ask(site, "/0")).text).toBe(JSON.stringify({ data: [], meta }));
  });

  test.each<[string, object, string]>([
    [
      "/works/search?q=orchard",
      { id: libraryId(1), title: "apple", slug: "apple-one", category: ["News", "Match Report"] },
      "title, slug and category by default",
    ],
    [
      "/texts/search?q=otter&per_page=1&page=2",
      { id: libraryId(1), category: "Water", title: "otter" },
      "in the type's order",
    ],
    [
      "/search/search?q=lost",
      { id: libraryId(1), label: "Lost keys", category: ["Found"], slug: "lost" },
      "the first text for a title",
    ],
    [
      "/authors/search?q=ann",
      { id: libraryId(1), name: "Ann", photo: "ann.png", photo_url: `${LIBRARY_MEDIA}ann.png` },
      "summary_fields in the type's order, media with its address",
    ],
  ])("%s shows %j: %s", async (target, item, _) => {
    const { json } = await ask(site, target);
    expect(JSON.stringify(json.data)).toBe(
      JSON.stringify([{ ...item, published_at: "2026-01-01T00:00:00.000+00:00" }]),
    );
  });

  test.each([
    ["title", { id: libraryId(1), title: "apple" }],
    ["slug,title", { id: libraryId(1), title: "apple", slug: "apple-one" }],
    ["%20title%20,+slug", { id: libraryId(1), title: "apple", slug: "apple-one" }],
    ["body", { id: libraryId(1), body: WORK_1.body }],
    ["notes,nothing", { id: libraryId(1), notes: null }],
    ["cover", { id: libraryId(1), cover: WORK_1.cover, cover_url: WORK_1.cover_url }],
    ["gallery", { id: libraryId(1), gallery: WORK_1.gallery, gallery_url: WORK_1.gallery_url }],
    ["cover_url", { id: libraryId(1) }],
    ["nothing", { id: libraryId(1) }],
    ["id", { id: libraryId(1) }],
    [",", { id: libraryId(1) }],
    ["Title", { id: libraryId(1) }],
    ["constructor,toString,__proto__", { id: libraryId(1) }],
    ["published_at,title,title", { id: libraryId(1), title: "apple", published_at: WORK_1.published_at }],
    ["updated_at", { id: libraryId(1), updated_at: WORK_1.updated_at }],
  ])("fields=%s, on a list and on a search", async (fields, item) => {
    const list = await ask(site, `/works?filter[genre]=12&fields=${fields}`);
    expect(JSON.stringify(list.json.data)).toBe(JSON.stringify([item]));
    const search = await ask(site, `/works/search?q=orchard&fields=${fields}`);
    expect(JSON.stringify(search.json.data)).toBe(JSON.stringify([item]));
  });

  test.each<[number, string, object, string]>([
    [1, "author_id", { author_id: AUTHOR_1 }, "the entry as its own endpoint shows it, its relations left as ids"],
    [6, "author_id", { author_id: AUTHOR_1 }, "an id that was written in upper case"],
    [2, "author_id", { author_id: null }, "a draft"],
    [3, "author_id", { author_id: null }, "an entry that is missing"],
    [5, "author_id", { author_id: null }, "an entry of another type than the target"],
    [4, "author_id", { author_id: null }, "no value"],
    [1, "secret_id", { secret_id: null }, "an entry of an unpublished type"],
    [2, "related", { related: [] }, "an empty array"],
    [3, "related", { related: null }, "no array"],
    [1, "nothing,title,cover,related_url,RELATED", {}, "unknown names and fields that are no relations"],
    [1, "constructor,__proto__", {}, "names that every object has"],
    [1, "%20author_id+,,secret_id", { author_id: AUTHOR_1, secret_id: null }, "several, with blanks"],
  ])("work %i, populate=%s gives %j: %s", async (number, populate, changed, _) => {
    const plain = (await ask(site, `/works/${libraryId(number)}`)).json.data;
    const got = await ask(site, `/works/${libraryId(number)}?populate=${populate}`);
    expect(JSON.stringify(got.json.data)).toBe(JSON.stringify({ ...plain, ...changed }));
  });

  test("in a multiple relation what cannot be seen is left out, and the order stays", async () => {
    const third = (await ask(site, `/works/${libraryId(3)}`)).text.slice('{"data":'.length, -1);
    const second = (await ask(site, `/works/${libraryId(2)}`)).text.slice('{"data":'.length, -1);
    const got = await ask(site, `${work}?populate=related`);
    expect(got.text).toContain(`"related":[${third},${second}],"price":10`);
  });

  test("an entry may relate to itself", async () => {
    const plain = (await ask(site, `/works/${libraryId(4)}`)).json.data;
    const got = await ask(site, `/works/${libraryId(4)}?populate=related`);
    expect(got.json.data).toEqual({ ...plain, related: [plain] });
  });
});

describe.each(ENGINES)("catalog and schemas on %s", (site) => {
  const works = {
    slug: "works",
    name: "Works",
    description: 'What we "keep".',
    icon: "book",
    entry_count: 6,
    fields: [
      "title",
      "slug",
      "category",
      "genre",
      "cover",
      "gallery",
      "aliases",
      "body",
      "notes",
      "author_id",
      "secret_id",
      "related",
      "price",
      "in_print",
      "day",
      "starts_at",
      "extra",
    ],
    filterable_fields: [
      "title",
      "category",
      "genre",
      "cover",
      "gallery",
      "aliases",
      "author_id",
      "related",
      "price",
      "in_print",
      "day",
      "starts_at",
      "published_at",
      "created_at",
    ],
    sortable_fields: ["title", "genre", "cover", "price", "in_print", "day", "starts_at"],
    searchable_fields: ["title", "category", "body"],
  };
  const item = (slug: string, name: string, entry_count: number, lists: string[][]) => {
    const [fields, filterable_fields, sortable_fields, searchable_fields] = lists;
    const head = { slug, name, description: "", icon: "", entry_count };
    return { ...head, fields, filterable_fields, sortable_fields, searchable_fields };
  };

  test("the catalog lists the published types by position, then by slug", async () => {
    const names = ["constructor", "sort", "page", "filter"];
    const data = [
      item("authors", "Authors", 5, [["name", "bio", "photo", "friend_id"], [], [], ["name", "bio"]]),
      item("texts", "Texts", 17, [
        ["category", "title", "body", "kinds", "aside"],
        ["title", "published_at"],
        ["title"],
        ["title", "body", "kinds"],
      ]),
      works,
      item("0", "Empty", 0, [[], [], [], []]),
      item("constructor", "Constructor", 2, [names, names, ["constructor", "sort"], []]),
      item("search", "Search", 1, [["label", "category", "slug"], ["label"], ["label"], ["label"]]),
    ];
    expect((await ask(site, "/_schemas")).text).toBe(JSON.stringify({ data }));
  });

  test("a schema has five keys for each field, and no entry count", async () => {
    const fields = [
      { name: "category", type: "select", required: false, label: "category", searchable: false },
      { name: "title", type: "text", required: false, label: "title", searchable: true },
      { name: "body", type: "rich_text", required: false, label: "body", searchable: true },
      { name: "kinds", type: "select", required: false, label: "kinds", searchable: true },
      { name: "aside", type: "text", required: false, label: "aside", searchable: false },
    ];
    const data = {
      slug: "texts",
      name: "Texts",
      description: "",
      icon: "",
      fields,
      filterable_fields: ["title", "published_at"],
      sortable_fields: ["title"],
      searchable_fields: ["title", "body", "kinds"],
    };
    expect((await ask(site, "/_schemas/texts")).text).toBe(JSON.stringify({ data }));
  });

  test("a schema tells label, type and whether a field is required", async () => {
    const { fields } = (await ask(site, "/_schemas/works")).json.data;
    expect(fields.map((field: { type: string }) => field.type).join(" ")).toBe(
      "text text select select media media text rich_text rich_text relation relation relation number boolean date datetime json",
    );
    expect(fields[1]).toEqual({ name: "slug", type: "text", required: true, label: "Slug", searchable: false });
  });

  test.each(["search", "constructor", "0"])("a type may be called %s", async (slug) => {
    expect((await ask(site, `/_schemas/${slug}`)).json.data.slug).toBe(slug);
  });
});

describe.each(SITES)("reading paths on %s", (site) => {
  const id = libraryId(1);

  test.each([
    ["/api/v1/works/", "/api/v1/works"],
    ["/api/v1/_schemas/", "/api/v1/_schemas"],
    ["/api/v1/_schemas/works/", "/api/v1/_schemas/works"],
    [`/api/v1/works/${id}/?`, `/api/v1/works/${id}`],
    ["/api/v1/works/search/?q=orchard", "/api/v1/works/search?q=orchard"],
    ["/api/v1/%77orks", "/api/v1/works"],
    ["/%61pi/v%31/works", "/api/v1/works"],
    ["/api/v1/%5Fschemas", "/api/v1/_schemas"],
    ["/api/v1/works/%73earch?q=orchard", "/api/v1/works/search?q=orchard"],
    [`/api/v1/works/${id.replace("-", "%2d")}`, `/api/v1/works/${id}`],
    ["http://other.example/api/v1/works?page=1", "/api/v1/works"],
  ])("%s is %s", async (target, same) => {
    const [got, expected] = await Promise.all([target, same].map((one) => askRaw(site, one, { appKey: LIBRARY_KEY })));
    expect(got?.status).toBe(200);
    expect(got?.text).toBe(expected?.text);
  });

  test.each([
    "/",
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v2/works",
    "/API/v1/works",
    "/works",
    "//api/v1/works",
    "/api//v1/works",
    "/api/v1//works",
    "/api/v1/works//",
    `/api/v1/works//${id}`,
    `/api/v1/works/${id}//`,
    `/api/v1/works/${id}/x`,
    "/api/v1/works/search/x",
    "/api/v1/_schemas/works/x",
    "/api/v1/_schemas//",
    "/api/./v1/works",
    "/x/../api/v1/works",
    "/api\\v1\\works",
    "/api%2Fv1/works",
    "/api/v1/%",
    "/api/v1/%ZZ",
    "/api/v1/works/%FF",
    "/api/v1/works/%C0%AE",
    "/health",
    "/favicon.ico",
  ])("%s is no endpoint, with a key or without", async (target) => {
    for (const appKey of [LIBRARY_KEY, "unknown", undefined]) {
      const got = await askRaw(site, target, appKey === undefined ? {} : { appKey });
      expect([got.status, got.json.error.code]).toEqual([404, "NOT_FOUND"]);
      expect(got.headers["x-request-counted"]).toBeUndefined();
      expect(got.headers["cache-control"]).toBe("no-store");
    }
  });

  test.each([
    ["/works/.", "ENTRY_NOT_FOUND"],
    ["/works/..", "ENTRY_NOT_FOUND"],
    ["/works/%2e%2e", "ENTRY_NOT_FOUND"],
    ["/works/../authors", "NOT_FOUND"],
    ["/./works", "CONTENT_TYPE_NOT_FOUND"],
    ["/works\\search", "CONTENT_TYPE_NOT_FOUND"],
    ["/works%2Fsearch", "CONTENT_TYPE_NOT_FOUND"],
    ["/%2577orks", "CONTENT_TYPE_NOT_FOUND"],
    ["/Works", "CONTENT_TYPE_NOT_FOUND"],
    ["/works%20", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schema", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/_schemas", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/nope", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/hidden", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/search?q=aa", "200"],
    ["/hidden", "CONTENT_TYPE_NOT_FOUND"],
    [`/hidden/${id}`, "CONTENT_TYPE_NOT_FOUND"],
    ["/hidden/search?q=nobody", "CONTENT_TYPE_NOT_FOUND"],
    ["/toString", "CONTENT_TYPE_NOT_FOUND"],
    ["/__proto__", "CONTENT_TYPE_NOT_FOUND"],
    [`/works/${libraryId(7)}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(8)}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(99)}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(1)}x`, "ENTRY_NOT_FOUND"],
    [`/works/{${libraryId(1)}}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(1).replaceAll("-", "")}`, "ENTRY_NOT_FOUND"],
    ["/works/1", "ENTRY_NOT_FOUND"],
    ["/works/Search?q=orchard", "ENTRY_NOT_FOUND"],
    ["/works/_schemas", "ENTRY_NOT_FOUND"],
  ])("%s: %s", async (target, code) => {
    const got = await ask(site, target);
    expect(got.json.error?.code ?? "200").toBe(code);
    expect(got.status).toBe(code === "200" ? 200 : 404);
  });
});

describe.each(SITES)("app keys on %s", (site) => {
  test.each([
    ["none", undefined, "MISSING_APP_KEY"],
    ["an empty one", "", "MISSING_APP_KEY"],
    ["an unknown one", "nobody", "INVALID_APP_KEY"],
    ["another case", LIBRARY_KEY.toLowerCase(), "INVALID_APP_KEY"],
    ["no key at all", "-Lib_1", "INVALID_APP_KEY"],
    ["one of 129 letters", "a".repeat(129), "INVALID_APP_KEY"],
    ["a name that every object has", "constructor", "INVALID_APP_KEY"],
  ])("%s", async (_, appKey, code) => {
    for (const target of ["/_schemas", "/works", "/nope", `/works/${libraryId(1)}?populate=x`, "/works/search?q=x"]) {
      const got = await askRaw(site, `/api/v1${target}`, appKey === undefined ? {} : { appKey });
      expect([got.status, got.json.error.code]).toEqual([401, code]);
      expect(Object.keys(got.json.error)).toEqual(["code", "message"]);
      expect(got.headers["x-request-counted"]).toBeUndefined();
      expect(got.headers["cache-control"]).toBe("no-store");
    }
  });

  test("two keys are one with a comma, hence unknown", async () => {
    const got = await askRaw(site, "/api/v1/works", { headers: { "X-App-Key": [LIBRARY_KEY, LIBRARY_KEY] } });
    expect([got.status, got.json.error.code]).toEqual([401, "INVALID_APP_KEY"]);
  });
});

describe.each(SITES)("reading parameters on %s", (site) => {
  const EQUAL: [string, string, string][] = [
    ["brackets may be encoded", "/works?filter%5Btitle%5D=apple", "/works?filter[title]=apple"],
    ["brackets may be encoded in lower case", "/works?filter%5bprice%5d%5bgt%5d=9", "/works?filter[price][gt]=9"],
    ["a plus is a blank", "/works?filter[cover]=T20+final.png", "/works?filter[cover]=T20%20final.png"],
    ["names are decoded", "/works?p%61ge=2&%70er_page=2", "/works?page=2&per_page=2"],
    ["the last of a repeated parameter wins", "/works?page=3&page=2", "/works?page=2"],
    ["the last of a repeated filter wins", "/works?filter[title]=x&filter[title]=apple", "/works?filter[title]=apple"],
    [
      "the last of a repeated operator wins",
      "/works?filter[price][gt]=x&filter[price][gt]=9",
      "/works?filter[price][gt]=9",
    ],
    ["a repeated fault that is overruled is none", "/works?page=0&page=2", "/works?page=2"],
    ["a filter with an empty value counts as not sent", "/works?filter[title]=", "/works"],
    ["an empty filter on an unknown field too", "/works?filter[nope]=&filter=&filter[]=", "/works"],
    ["an empty operator filter too", "/works?filter[price][gt]=&filter[price][zz]=", "/works"],
    ["empty parameters too", "/works?sort=&page=&per_page=&fields=", "/works"],
    ["a parameter without a value too", "/works?sort&page&per_page&fields&filter[title]", "/works"],
    ["an empty value does not overrule the one before", "/works?page=2&page=", "/works?page=2"],
    ["nor does an empty filter", "/works?filter[title]=apple&filter[title]=", "/works?filter[title]=apple"],
    ["an empty populate", `/works/${libraryId(1)}?populate=`, `/works/${libraryId(1)}`],
    ["other parameters are ignored", "/works?utm_source=x&q=zz&populate=author_id", "/works"],
    ["the bracket form of fields is ignored", "/works?fields[]=title", "/works"],
    ["the bracket form of sort is ignored", "/works?sort[]=nope&page[]=0", "/works"],
    ["names are case-sensitive", "/works?Sort=nope&PAGE=0&Filter[nope]=x", "/works"],
    ["filterx is no filter", "/works?filterx=1&filters[title]=apple&xfilter[a]=b", "/works"],
    ["blanks around a name are another name", "/works?+page=0&filter+[nope]=x", "/works"],
    [
      "an entry has neither fields nor filters",
      `/works/${libraryId(1)}?fields=zz&filter[nope]=x&sort=nope&page=0&q=x`,
      `/works/${libraryId(1)}`,
    ],
    ["the catalog has no parameters", "/_schemas?filter[nope]=x&page=0&sort=nope", "/_schemas"],
    ["a schema has no parameters", "/_schemas/works?fields=slug&populate=x&per_page=0", "/_schemas/works"],
    ["search has no populate", "/works/search?q=orchard&populate=author_id", "/works/search?q=orchard"],
    ["like is dropped", "/works?filter[title][like]=apple", "/works"],
    ["like on an unknown field is dropped", "/works?filter[nope][like]=x", "/works"],
    [
      "like beside a filter is dropped",
      "/works?filter[title][like]=x&filter[title]=apple",
      "/works?filter[title]=apple",
    ],
    ["like on a search is dropped", "/works/search?q=orchard&filter[title][like]=x", "/works/search?q=orchard"],
    ["eq is the same as none", "/works?filter[title][eq]=apple", "/works?filter[title]=apple"],
    ["of both the last wins", "/works?filter[title]=x&filter[title][eq]=apple", "/works?filter[title]=apple"],
    [
      "of both the last wins, the other way",
      "/works?filter[title][eq]=x&filter[title]=apple",
      "/works?filter[title]=apple",
    ],
    ["zeros before a page", "/works?page=002", "/works?page=2"],
    ["zeros before a page size", "/works?per_page=02", "/works?per_page=2"],
    ["an ampersand too many", "/works?&&page=2&", "/works?page=2"],
    ["a question mark in a value", "/works?filter[title]=a?b", "/works?filter[title]=a%3Fb"],
  ];

  test.each(EQUAL)("%s: %s is %s", async (_, target, same) => {
    const [got, expected] = await Promise.all([ask(site, target), ask(site, same)]);
    expect(expected.status).toBe(200);
    expect([got.status, got.text]).toEqual([200, expected.text]);
    expect(got.headers["x-request-counted"]).toBe(expected.headers["x-request-counted"]);
    expect(got.headers["cache-control"]).toBe(expected.headers["cache-control"]);
  });

  test.each([
    ["filter=x", "filter"],
    ["filter[]=x", "filter[]"],
    ["filter[nope]=x", "filter[nope]"],
    ["filter[slug]=apple-one", "filter[slug]"],
    ["filter[body]=x", "filter[body]"],
    ["filter[updated_at]=2026-02-01", "filter[updated_at]"],
    ["filter[id]=x", "filter[id]"],
    ["filter[cover_url]=x", "filter[cover_url]"],
    ["filter[Title]=x", "filter[Title]"],
    ["filter[a=x", "filter[a"],
    ["filter[a]b=x", "filter[a]b"],
    ["filter[title]b=x", "filter[title]b"],
    ["filter[title=x", "filter[title"],
    ["filter[constructor]=x", "filter[constructor]"],
    ["filter[__proto__]=x", "filter[__proto__]"],
    ["filter[nope][gt]=1", "filter[nope][gt]"],
    ["filter[+title]=x", "filter[ title]"],
    ["filter[title][zz]=1&filter[nope]=1", "filter[nope]"],
    ["filter[price][gt]=x&filter[nope]=1", "filter[nope]"],
    ["filter[b0]=1&filter[a0]=1", "filter[b0]"],
  ])("%s: INVALID_FILTER", async (query, parameter) => {
    await expectError(site, `/works?${query}`, 400, "INVALID_FILTER", parameter);
    await expectError(site, `/works/search?q=orchard&${query}`, 400, "INVALID_FILTER", parameter);
  });

  test.each([
    ["filter[title][zz]=x", "filter[title][zz]"],
    ["filter[title][EQ]=x", "filter[title][EQ]"],
    ["filter[title][LIKE]=x", "filter[title][LIKE]"],
    ["filter[title][]=x", "filter[title][]"],
    ["filter[title][eq][x]=y", "filter[title][eq][x]"],
    ["filter[title][like][x]=y", "filter[title][like][x]"],
    ["filter[title][not]=y", "filter[title][not]"],
    ["filter[title][constructor]=y", "filter[title][constructor]"],
    ["filter[price][gt]=x&filter[title][zz]=1", "filter[title][zz]"],
    ["filter[title][zz]=1&filter[price][yy]=1", "filter[title][zz]"],
  ])("%s: INVALID_OPERATOR", async (query, parameter) => {
    await expectError(site, `/works?${query}`, 400, "INVALID_OPERATOR", parameter);
  });

  test("of two values that cannot be compared the first is told", () =>
    expectError(site, "/works?filter[day][gt]=x&filter[price][gt]=x", 400, "INVALID_FILTER_VALUE", "filter[day][gt]"));

  const TEN = "title category genre cover gallery aliases author_id related price in_print".split(" ");
  const filters = (names: string[], operator = "") => names.map((name) => `filter[${name}]${operator}=1`).join("&");

  test("10 filter fields are allowed", async () => {
    expect((await ask(site, `/works?${filters(TEN)}`)).status).toBe(200);
  });

  test("two operators on one field are one filter field", async () => {
    expect((await ask(site, `/works?${filters(TEN)}&${filters(TEN, "[neq]")}`)).status).toBe(200);
  });

  test("like and empty filters do not count towards 10", async () => {
    const more = "filter[day][like]=x&filter[starts_at]=&filter[nope][like]=x";
    expect((await ask(site, `/works?${filters(TEN)}&${more}`)).status).toBe(200);
  });

  test.each([
    `${filters([...TEN, "day"])}`,
    filters("a b c d e f g h i j k".split(" ")),
    `${filters(TEN)}&filter=x`,
    `${filters(TEN)}&filter[day][zz]=x`,
    `${filters(TEN)}&filter[day][gt]=x`,
  ])("11 filter fields are too many, whatever else is wrong: %s", async (query) => {
    for (const target of [`/works?${query}`, `/works/search?q=orchard&${query}`]) {
      const got = await ask(site, target);
      expect([got.status, got.json.error.code]).toEqual([400, "TOO_MANY_FILTERS"]);
      expect(got.json.error.message).toContain("10");
    }
  });

  test("10 unknown filter fields are not too many", () =>
    expectError(site, `/works?${filters("a b c d e f g h i j".split(" "))}`, 400, "INVALID_FILTER", "filter[a]"));

  test.each([
    "nope",
    "slug",
    "body",
    "category",
    "author_id",
    "id",
    "-",
    "--title",
    "title,price",
    "Title",
    "+title",
    "-%20title",
  ])("sort=%s: INVALID_SORT", async (sort) => {
    await expectError(site, `/works?sort=${sort}`, 400, "INVALID_SORT", "sort");
    await expectError(site, `/works/search?q=orchard&sort=${sort}`, 400, "INVALID_SORT", "sort");
  });

  test.each([100, 101])("a sort of %i characters", (length) =>
    expectError(site, `/works?sort=${"a".repeat(length)}`, 400, "INVALID_SORT", "sort"),
  );

  test.each(["0", "00", "-1", "1.0", "1e1", "abc", "%2B1", "+1", "1+", "１", "0x1", "1,2"])("page=%s", async (page) => {
    await expectError(site, `/works?page=${page}`, 400, "INVALID_PAGE", "page");
    await expectError(site, `/works/search?q=orchard&page=${page}`, 400, "INVALID_PAGE", "page");
  });

  test.each(["7", "1000000", "9007199254740993", "1000000000000000000000000000000"])(
    "page %s is behind the last: no entries, and a true meta",
    async (page) => {
      const list = await ask(site, `/works?page=${page}`);
      const meta = `"current_page":${page},"per_page":20,"total":6,"last_page":1`;
      expect([list.status, list.text]).toEqual([200, `{"data":[],"meta":{${meta}}}`]);
      const search = await ask(site, `/works/search?q=orchard&page=${page}`);
      const found = `"current_page":${page},"per_page":20,"total":1,"last_page":1,"query":"orchard"`;
      expect([search.status, search.text]).toEqual([200, `{"data":[],"meta":{${found}}}`]);
      const counted = await ask(site, `/works?filter[price][gt]=9&per_page=1&page=${page}`);
      expect(counted.text).toBe(`{"data":[],"meta":{"current_page":${page},"per_page":1,"total":2,"last_page":2}}`);
    },
  );

  test.each(["0", "101", "-1", "2.0", "ten", "1000000000000000000000", "+5", "%2B5"])("per_page=%s", async (size) => {
    await expectError(site, `/works?per_page=${size}`, 400, "INVALID_PER_PAGE", "per_page");
    await expectError(site, `/works/search?q=orchard&per_page=${size}`, 400, "INVALID_PER_PAGE", "per_page");
  });

  test.each([1, 100])("per_page=%i", async (size) => {
    const { meta } = (await ask(site, `/authors?per_page=${size}`)).json;
    expect(meta).toEqual({ current_page: 1, per_page: size, total: 5, last_page: size === 1 ? 5 : 1 });
  });

  test.each([
    ["letters", "x", 500],
    ["emoji", "😀", 500],
  ])("fields and populate of 500 %s are allowed, one more is not", async (_, letter, most) => {
    const [allowed, beyond] = [letter.repeat(most), letter.repeat(most + 1)];
    expect((await ask(site, encoded(`/works?fields=${allowed}`))).status).toBe(200);
    await expectError(site, `/works?fields=${beyond}`, 400, "INVALID_FIELDS", "fields");
    await expectError(site, `/works/search?q=orchard&fields=${beyond}`, 400, "INVALID_FIELDS", "fields");
    expect((await ask(site, encoded(`/works/${libraryId(1)}?populate=${allowed}`))).status).toBe(200);
    await expectError(site, `/works/${libraryId(1)}?populate=${beyond}`, 400, "INVALID_POPULATE", "populate");
  });

  test.each(["ab", "é日", "😀😀", "x".repeat(200), "😀".repeat(200), `++${"x".repeat(200)}++`])(
    "a term of 2 to 200 characters: q=%s",
    async (q) => {
      const got = await ask(site, encoded(`/works/search?q=${q}`));
      expect([got.status, got.json.error?.code]).toEqual([200, undefined]);
    },
  );

  test.each([
    "",
    "q=",
    "q",
    "q=a",
    "q=+a+",
    "q=%F0%9F%98%80",
    "q=++",
    `q=${"x".repeat(201)}`,
    `q=${"😀".repeat(201)}`,
    "Q=orchard",
  ])("no term that can be searched for: %s", (query) =>
    expectError(site, `/works/search?${query}`, 400, "INVALID_QUERY", "q"),
  );

  test("checks come in the order filter, sort, page, per_page, fields, q", async () => {
    const faults: [string, string][] = [
      ["filter[nope]=x", "INVALID_FILTER"],
      ["sort=nope", "INVALID_SORT"],
      ["page=0", "INVALID_PAGE"],
      ["per_page=0", "INVALID_PER_PAGE"],
      [`fields=${"x".repeat(501)}`, "INVALID_FIELDS"],
      ["q=x", "INVALID_QUERY"],
    ];
    for (const [index, [, code]] of faults.entries()) {
      const left = faults.slice(index).map(([query]) => query);
      const got = await ask(site, `/works/search?${left.reverse().join("&")}`);
      expect(got.json.error.code).toBe(code);
    }
  });

  test.each([
    ["POST", "/nope", undefined, 405, "METHOD_NOT_ALLOWED"],
    ["GET", "/works/x/y", undefined, 404, "NOT_FOUND"],
    ["GET", "/nope?filter[x]=1", undefined, 401, "MISSING_APP_KEY"],
    ["GET", "/nope?filter[x]=1", "nobody", 401, "INVALID_APP_KEY"],
    ["GET", "/nope?filter[x]=1&page=0", LIBRARY_KEY, 404, "CONTENT_TYPE_NOT_FOUND"],
    ["GET", "/nope/search", LIBRARY_KEY, 404, "CONTENT_TYPE_NOT_FOUND"],
    ["GET", "/nope/x", LIBRARY_KEY, 404, "CONTENT_TYPE_NOT_FOUND"],
    ["GET", `/works/x?populate=${"x".repeat(501)}`, LIBRARY_KEY, 404, "ENTRY_NOT_FOUND"],
    ["GET", `/works/${libraryId(7)}?populate=${"x".repeat(501)}`, LIBRARY_KEY, 404, "ENTRY_NOT_FOUND"],
    ["GET", `/works/${libraryId(1)}?populate=${"x".repeat(501)}`, LIBRARY_KEY, 400, "INVALID_POPULATE"],
  ])("the first check that fails is the answer: %s %s with key %s", async (method, target, appKey, status, code) => {
    const got = await askRaw(site, `/api/v1${target}`, { method, ...(appKey === undefined ? {} : { appKey }) });
    expect([got.status, got.json.error.code]).toEqual([status, code]);
  });

  test.each([
    ["/works?filter[nope]=x", ["title", "category", "published_at"]],
    ["/works?filter[title][zz]=x", ["eq", "neq", "gte", "contains", "starts_with", "nin"]],
    ["/works?sort=nope", ["title", "starts_at", "published_at", "updated_at", "100"]],
    ["/works?page=0", ["1"]],
    ["/works?per_page=0", ["1 to 100"]],
    [`/works?fields=${"x".repeat(501)}`, ["500"]],
    [`/works/${libraryId(1)}?populate=${"x".repeat(501)}`, ["500"]],
    ["/works/search", ["2 to 200"]],
    ["/works?filter[price][gt]=x", ["number"]],
    ["/works?filter[day][gt]=x", ["2026-01-20"]],
    ["/works?filter[in_print][gt]=1", ["boolean", "eq"]],
    ["/nope", ["_schemas"]],
    ["/works/x", ["UUID"]],
  ])("the message of %s says what would be right: %j", async (target, words) => {
    const { error } = (await ask(site, target)).json;
    for (const word of words) expect(error.message).toContain(word);
  });

  test("an error has the keys code, message and parameter, in this order", async () => {
    const got = await ask(site, "/works?filter[colour]=x");
    expect(got.text).toMatch(
      /^\{"error":\{"code":"INVALID_FILTER","message":"[^"]+","parameter":"filter\[colour\]"\}\}$/,
    );
  });
});

describe.each(SITES)("counting on %s", (site) => {
  const id = libraryId(1);
  const LONG = "x".repeat(501);

  test.each([
    ["/_schemas", false],
    ["/_schemas/works", false],
    ["/_schemas/nope", false],
    ["/_schemas?per_page=1&filter[a]=b", false],
    [`/works/${id}`, false],
    [`/works/${id}?fields=title&filter[a]=b`, false],
    [`/works/${libraryId(99)}`, false],
    ["/works/x", false],
    ["/works", false],
    ["/works?utm_source=x", false],
    ["/works?page=2", false],
    ["/works?page=999999999999999999999", false],
    ["/works?page=0", false],
    ["/works?populate=author_id", false],
    ["/works?filter[title]=apple", false],
    ["/works?filter[title][eq]=apple", false],
    ["/works?filter[title]=x&filter[title][eq]=apple", false],
    ["/works?filter[title]=nothing+equals+this", false],
    ["/works?filter[price]=no+number", false],
    ["/works?filter[published_at]=2026-01-01", false],
    ["/works?filter[title]=apple&filter[genre]=", false],
    ["/works?filter[title]=apple&filter[genre][like]=x", false],
    ["/works?filter[title][like]=x", false],
    ["/works?filter[title]=apple&per_page=&page=", false],
    ["/works?sort=title", false],
    ["/works?sort=-title", false],
    ["/works?sort=updated_at", false],
    ["/works?sort=-created_at&filter[title]=", false],
    ["/nope", false],
    ["/nope?page=3", false],
    ["/nope/x", false],
    ["/nope?sort=published_at", false],
    ["/works?per_page=20", true],
    ["/works?per_page=0", true],
    ["/works?fields=title", true],
    [`/works?fields=${LONG}`, true],
    ["/works?filter[price][gte]=1", true],
    ["/works?filter[title][neq]=apple", true],
    ["/works?filter[title][in]=apple", true],
    ["/works?filter[title][nin]=apple", true],
    ["/works?filter[title][contains]=apple", true],
    ["/works?filter[title][starts_with]=apple", true],
    ["/works?filter[title][zz]=apple", true],
    ["/works?filter[title]=apple&sort=title", true],
    ["/works?filter[title]=apple&page=1", true],
    ["/works?filter[title]=apple&filter[genre]=12", true],
    ["/works?filter[title]=apple&filter[title][neq]=x", true],
    ["/works?filter[title]=apple&fields=title", true],
    ["/works?sort=title&page=1", true],
    ["/works?sort=title&per_page=20", true],
    ["/works?sort=nope", true],
    ["/works?sort=slug", true],
    ["/works?filter[slug]=apple-one", true],
    ["/works?filter[nope]=x", true],
    ["/works?filter=x", true],
    ["/nope?filter[a]=b", true],
    ["/nope?sort=title", true],
    ["/nope?per_page=1", true],
    ["/nope/search", true],
    ["/nope/search?q=orchard", true],
    [`/nope/${id}?populate=x`, true],
    [`/works/${id}?populate=author_id`, true],
    [`/works/${id}?populate=nothing`, true],
    [`/works/${id}?populate=${LONG}`, true],
    ["/works/x?populate=author_id", true],
    ["/works/search?q=orchard", true],
    ["/works/search", true],
    ["/works/search?q=orchard&page=0", true],
  ])("%s: %s", async (target, counted) => {
    for (const method of ["GET", "HEAD"]) {
      const { headers } = await ask(site, target, { method });
      expect(headers["x-request-counted"]).toBe(String(counted));
      const free = site === TREE ? "precast; hit" : "precast; fwd=miss";
      expect(headers["cache-status"]).toBe(counted ? "precast; fwd=bypass" : free);
    }
  });
});

const PRESENT = expect.stringMatching(/^"[^"]+"$/);
const CORS = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "ETag, X-Request-Counted, X-Request-Warning, Cache-Status, Retry-After",
};
const ALWAYS = { ...CORS, vary: "X-App-Key" };
const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };
const FREE = {
  "cache-control": "public, max-age=60",
  "cdn-cache-control": "public, max-age=3600, stale-while-revalidate=60, stale-if-error=86400",
  "x-request-counted": "false",
};
const COUNTED = { "x-request-counted": "true", "cache-status": "precast; fwd=bypass" };
const NO_STORE = { "cache-control": "no-store" };
const TRANSPORT = ["connection", "date", "content-length", "keep-alive", "transfer-encoding"];

/** Every header but those of the connection. */
function headersOf(got: Got): object {
  return without(got.headers, TRANSPORT);
}

describe.each(SITES)("headers on %s", (site) => {
  const id = libraryId(1);
  const free = { ...FREE, "cache-status": site === TREE ? "precast; hit" : "precast; fwd=miss" };
  const gone = { ...free, "cache-control": "public, max-age=10" };

  test.each([
    ["the catalog", "/_schemas", free],
    ["a schema", "/_schemas/works", free],
    ["a list", "/works", free],
    ["a page behind the last", "/works?page=9", free],
    ["a filter", "/works?filter[title]=apple", free],
    ["a filter that nothing matches", "/works?filter[title]=nothing", free],
    ["a sort", "/works?sort=title", free],
    ["an entry", `/works/${id}`, free],
    ["a counted list", "/works?per_page=2", { ...COUNTED, "cache-control": "private, no-cache" }],
    ["a populated entry", `/works/${id}?populate=author_id`, { ...COUNTED, "cache-control": "private, no-cache" }],
    ["a search", "/works/search?q=orchard", { ...COUNTED, "cache-control": "no-cache, no-store" }],
  ])("%s: 200, then 304", async (_, target, expected) => {
    const got = await ask(site, target);
    expect(got.status).toBe(200);
    expect(headersOf(got)).toEqual({ ...ALWAYS, ...JSON_TYPE, ...expected, etag: PRESENT });
    const again = await ask(site, target, { headers: { "If-None-Match": got.headers.etag as string } });
    expect([again.status, again.text]).toEqual([304, ""]);
    expect(without(headersOf(again), ["content-type"])).toEqual({ ...ALWAYS, ...expected, etag: got.headers.etag });
  });

  test.each([
    ["an unknown type", "/nope", 404, without(gone, ["cdn-cache-control"])],
    ["the schema of an unknown type", "/_schemas/nope", 404, without(gone, ["cdn-cache-control"])],
    ["an unknown entry", `/works/${libraryId(99)}`, 404, without(gone, ["cdn-cache-control"])],
    ["an id that is no UUID", "/works/x", 404, without(gone, ["cdn-cache-control"])],
    ["a counted 404", "/nope/search", 404, { ...COUNTED, ...NO_STORE }],
    ["an unknown entry with populate", `/works/${libraryId(99)}?populate=related`, 404, { ...COUNTED, ...NO_STORE }],
    ["a free 400", "/works?page=0", 400, { ...without(free, ["cdn-cache-control"]), ...NO_STORE }],
    ["a counted 400", "/works?sort=nope", 400, { ...COUNTED, ...NO_STORE }],
    ["a search without a term", "/works/search", 400, { ...COUNTED, ...NO_STORE }],
  ])("%s: no ETag, and kept briefly if at all", async (_, target, status, expected) => {
    for (const headers of [{}, { "If-None-Match": "*" }]) {
      const got = await ask(site, target, { headers });
      expect(got.status).toBe(status);
      expect(headersOf(got)).toEqual({ ...ALWAYS, ...JSON_TYPE, ...expected });
    }
  });

  test("where the app is not known nothing is told of counting", async () => {
    for (const got of [await askRaw(site, "/api/v1/works"), await ask(site, "/works/x/y")]) {
      expect(headersOf(got)).toEqual({ ...ALWAYS, ...JSON_TYPE, ...NO_STORE });
    }
  });

  test.each(["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])("%s is not allowed", async (method) => {
    for (const target of ["/works", "/nope/x/y", ""]) {
      const got = await ask(site, target, { method });
      expect([got.status, got.json.error.code]).toEqual([405, "METHOD_NOT_ALLOWED"]);
      expect(headersOf(got)).toEqual({ ...ALWAYS, ...JSON_TYPE, ...NO_STORE, allow: "GET, HEAD, OPTIONS" });
    }
  });

  test.each(["/api/v1/works", "/api/v1/works/search", "/nowhere"])("a preflight of %s needs no key", async (target) => {
    const headers = {
      Origin: "https://shop.example",
      "Access-Control-Request-Method": "GET",
      "Access-Control-Request-Headers": "x-app-key",
    };
    const got = await askRaw(site, target, { method: "OPTIONS", headers });
    expect([got.status, got.text]).toEqual([204, ""]);
    expect(headersOf(got)).toMatchObject({
      ...ALWAYS,
      "access-control-allow-methods": "GET, HEAD, OPTIONS",
      "access-control-allow-headers": "X-App-Key, Accept, If-None-Match",
      "access-control-max-age": "7200",
    });
    expect(got.headers["x-request-counted"]).toBeUndefined();
  });

  test.each([
    "/_schemas",
    "/works",
    "/works?per_page=2",
    `/works/${id}`,
    "/works/search?q=orchard",
    "/works?sort=nope",
    "/nope",
    "/works/x/y",
  ])("HEAD %s has the headers of GET and no body", async (target) => {
    const [get, head] = await Promise.all([ask(site, target), ask(site, target, { method: "HEAD" })]);
    expect([head.status, head.text]).toEqual([get.status, ""]);
    expect(without(head.headers, ["date"])).toEqual(without(get.headers, ["date"]));
    expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(get.text)));
  });

  test.each(["/works", "/works?per_page=2", `/works/${id}`, "/works?page=9"])("If-None-Match on %s", async (target) => {
    const etag = (await ask(site, target)).headers.etag as string;
    const cases: [string, number][] = [
      [etag, 304],
      [`W/${etag}`, 304],
      [`"other", ${etag}`, 304],
      [`"other",W/"more",W/${etag} , "last"`, 304],
      ["*", 304],
      ['"other"', 200],
      [`W/"other"`, 200],
      [etag.slice(1, -1), 200],
      [etag.toUpperCase(), 200],
      ["", 200],
      [",,", 200],
    ];
    for (const [tag, status] of cases) {
      const got = await ask(site, target, { headers: { "If-None-Match": tag } });
      expect([tag, got.status]).toEqual([tag, status]);
      expect(got.headers.etag).toBe(etag);
    }
  });

  test("HEAD may be conditional too", async () => {
    const etag = (await ask(site, "/works")).headers.etag as string;
    expect((await ask(site, "/works", { method: "HEAD", headers: { "If-None-Match": etag } })).status).toBe(304);
  });

  test("an ETag changes with the bytes", async () => {
    const targets = ["/works", "/works?page=2", "/works?filter[title]=apple", `/works/${id}`, "/works?per_page=2"];
    const tags = await Promise.all(targets.map(async (target) => (await ask(site, target)).headers.etag));
    expect(new Set(tags).size).toBe(targets.length);
  });

  test.each([
    ["/works?filter[title][like]=x", ["title"]],
    ["/works?filter[nope][like]=x&filter[title]=apple", ["nope"]],
    ["/works?filter[title][like]=x&filter[genre][like]=y", ["title", "genre"]],
    ["/works/search?q=orchard&filter[title][like]=x", ["title"]],
    ["/works?filter[title][like]=x&sort=nope", ["title"]],
  ])("%s is warned of", async (target, fields) => {
    const warning = (await ask(site, target)).headers["x-request-warning"];
    for (const field of fields) expect(warning).toContain(field);
    expect(warning).toContain("contains");
  });

  test.each([
    "/works",
    "/works?filter[title]=like",
    "/works?filter[title][like]=",
    "/works?filter[title][contains]=x",
    "/works?filter[title][LIKE]=x",
    `/works/${id}?filter[title][like]=x`,
    "/_schemas?filter[title][like]=x",
  ])("%s is not warned of", async (target) => {
    expect((await ask(site, target)).headers["x-request-warning"]).toBeUndefined();
  });
});

describe("the tree and the database", () => {
  const id = libraryId(1);

  test.each([
    "/_schemas",
    "/_schemas/works",
    "/_schemas/search",
    "/works",
    "/works?page=2",
    "/works?page=00",
    "/authors",
    "/authors?page=3",
    "/0",
    "/works?filter[title]=apple",
    "/works?filter[title]=%C3%84pfel",
    "/works?filter[category]=Match+Report",
    "/works?filter[category]=a,b",
    "/works?filter[cover]=%C3%BC%2B%C3%B6%26.webp",
    "/works?filter[price]=10.0",
    "/works?filter[price]=9007199254740993",
    "/works?filter[in_print]=0",
    "/works?filter[day]=2026-01-20T23:30:00-02:00",
    "/works?filter[starts_at]=2026-01-20T15:30",
    "/works?filter[author_id]=ABCDEF00-0000-4000-8000-000000000001",
    "/works?filter[published_at]=2026-01-05",
    "/works?filter[title]=nothing",
    "/works?sort=title",
    "/works?sort=-in_print",
    "/works?sort=published_at",
    "/works?sort=-published_at",
    `/works/${id}`,
    `/works/${id.toUpperCase()}`,
    `/works/${libraryId(3)}`,
    `/works/${libraryId(7)}`,
    "/works/x",
    "/nope",
    "/hidden",
  ])("%s: the same bytes and headers", async (target) => {
    const [tree, live] = await Promise.all([ask(TREE, target), ask(LIVE, target)]);
    expect(tree.text).toBe(live.text);
    expect(without(headersOf(tree), ["cache-status"])).toEqual(without(headersOf(live), ["cache-status"]));
    expect([tree.headers["cache-status"], live.headers["cache-status"]]).toEqual(["precast; hit", "precast; fwd=miss"]);
  });

  test.each([
    ["_schemas.json", "/_schemas"],
    ["_schemas/works.json", "/_schemas/works"],
    ["works/page/1.json", "/works"],
    ["authors/page/3.json", "/authors?page=3"],
    ["0/page/1.json", "/0"],
    ["works/filter/title/s-apple.json", "/works?filter[title]=apple"],
    ["works/filter/title/x-4170706c65.json", "/works?filter[title]=Apple"],
    ["works/filter/category/x-612c62.json", "/works?filter[category]=a,b"],
    ["works/filter/price/x-2d312e35.json", "/works?filter[price]=-1.5"],
    ["works/filter/price/s-10.json", "/works?filter[price]=10.0"],
    ["works/filter/in_print/s-true.json", "/works?filter[in_print]=1"],
    ["works/filter/day/s-2026-01-20.json", "/works?filter[day]=2026-01-20"],
    [`works/filter/author_id/s-${id}.json`, `/works?filter[author_id]=${id}`],
    ["works/sort/-title.json", "/works?sort=-title"],
    ["works/sort/updated_at.json", "/works?sort=updated_at"],
    [`works/entry/${id}.json`, `/works/${id}`],
  ])("the file %s is the answer to %s", async (file, target) => {
    // The key `Lib_1` has a capital, hence its name is in hexadecimal.
    const path = join((stores[0] as Store).folder, "out", "x-4c69625f31", "v1", file);
    expect(await readFile(path, "utf8")).toBe((await ask(LIVE, target)).text);
  });
});
