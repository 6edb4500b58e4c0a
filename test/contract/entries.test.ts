/**
 * Entries: what single entries, list items, search items and populated relations show (shared/contract.md section 2).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { EXACT_NUMBER, LIBRARY_MEDIA, libraryId } from "../support/library.ts";
import { ask, ENGINES, openSites, without } from "../support/sites.ts";

openSites(ENGINES);

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

describe.each(ENGINES)("entries on %s", (site) => {
  const work = `/works/${libraryId(1)}`;

  test("a single entry has every key, in the order of the type", async () => {
    expect((await ask(site, work)).text).toBe(JSON.stringify({ data: WORK_1 }));
  });

  test("a field without a value is null", async () => {
    expect((await ask(site, `/works/${libraryId(6)}`)).text).toBe(JSON.stringify({ data: WORK_6 }));
  });

  test("an empty array stays an empty array, in the _url companion too", async () => {
    const { json } = await ask(site, `/works/${libraryId(2)}`);
    expect([json.data.gallery, json.data.gallery_url, json.data.related]).toEqual([[], [], []]);
  });

  test("a JSON field may hold a text", async () => {
    expect((await ask(site, `/works/${libraryId(3)}`)).json.data.extra).toBe("plain");
  });

  test("an empty text stays an empty text", async () => {
    expect((await ask(site, `/works/${libraryId(4)}`)).json.data.slug).toBe("");
  });

  test("a file name is percent-encoded in its URL", async () => {
    const { data } = (await ask(site, `/works/${libraryId(4)}`)).json;
    expect([data.cover, data.cover_url]).toEqual(["ü+ö&.webp", `${LIBRARY_MEDIA}%C3%BC%2B%C3%B6%26.webp`]);
  });

  test.each([`/works/${libraryId(3)}`, "/works?sort=-price", "/works?per_page=1&fields=price&filter[genre]=News"])(
    "a number keeps every digit: %s",
    async (target) => {
      expect((await ask(site, target)).text).toContain(`"price":${EXACT_NUMBER}`);
    },
  );

  test("a negative number keeps its decimals", async () => {
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

  test("list items have every field except rich text, and the list has meta", async () => {
    const items = [without(WORK_1, ["body", "notes"])];
    const meta = { current_page: 6, per_page: 1, total: 6, last_page: 6 };
    expect((await ask(site, "/works?per_page=1&page=6")).text).toBe(JSON.stringify({ data: items, meta }));
  });

  test("a list without parameters has the same items, 20 a page", async () => {
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
      "default fields in the type's order",
    ],
    [
      "/search/search?q=lost",
      { id: libraryId(1), label: "Lost keys", category: ["Found"], slug: "lost" },
      "the first text field in place of a missing title",
    ],
    [
      "/authors/search?q=ann",
      { id: libraryId(1), name: "Ann", photo: "ann.png", photo_url: `${LIBRARY_MEDIA}ann.png` },
      "summary_fields in the type's order, media with its URL",
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
  ])("fields=%s selects the same fields on a list and on a search", async (fields, item) => {
    const list = await ask(site, `/works?filter[genre]=12&fields=${fields}`);
    expect(JSON.stringify(list.json.data)).toBe(JSON.stringify([item]));
    const search = await ask(site, `/works/search?q=orchard&fields=${fields}`);
    expect(JSON.stringify(search.json.data)).toBe(JSON.stringify([item]));
  });

  test.each<[number, string, object, string]>([
    [1, "author_id", { author_id: AUTHOR_1 }, "the related entry as its own endpoint shows it, its relations as ids"],
    [6, "author_id", { author_id: AUTHOR_1 }, "the relation is stored as an id in upper case"],
    [2, "author_id", { author_id: null }, "the related entry is a draft"],
    [3, "author_id", { author_id: null }, "the related entry does not exist"],
    [5, "author_id", { author_id: null }, "the related entry has another type than the target"],
    [4, "author_id", { author_id: null }, "the relation has no value"],
    [1, "secret_id", { secret_id: null }, "the related entry has an unpublished type"],
    [2, "related", { related: [] }, "the relation is an empty array"],
    [3, "related", { related: null }, "the multiple relation has no value"],
    [1, "nothing,title,cover,related_url,RELATED", {}, "unknown names and fields that are not relations are ignored"],
    [1, "constructor,__proto__", {}, "names of built-in properties are ignored"],
    [
      1,
      "%20author_id+,,secret_id",
      { author_id: AUTHOR_1, secret_id: null },
      "several names, with spaces and an empty name",
    ],
  ])("work %i, populate=%s gives %j: %s", async (number, populate, changed, _) => {
    const plain = (await ask(site, `/works/${libraryId(number)}`)).json.data;
    const got = await ask(site, `/works/${libraryId(number)}?populate=${populate}`);
    expect(JSON.stringify(got.json.data)).toBe(JSON.stringify({ ...plain, ...changed }));
  });

  test("populate leaves out invisible entries of a multiple relation and keeps the order", async () => {
    const third = (await ask(site, `/works/${libraryId(3)}`)).text.slice('{"data":'.length, -1);
    const second = (await ask(site, `/works/${libraryId(2)}`)).text.slice('{"data":'.length, -1);
    const got = await ask(site, `${work}?populate=related`);
    expect(got.text).toContain(`"related":[${third},${second}],"price":10`);
  });

  test("populate expands a relation of an entry to itself once", async () => {
    const plain = (await ask(site, `/works/${libraryId(4)}`)).json.data;
    const got = await ask(site, `/works/${libraryId(4)}?populate=related`);
    expect(got.json.data).toEqual({ ...plain, related: [plain] });
  });
});
