/**
 * Search: words, groups of the ranking, rich text as text (contract.md).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { openApiServer, openStore, ENGINES as STORES } from "../support/site.ts";
import { ask, ENGINES, encoded, expectIds, idsOf, NOTHING, openSites } from "../support/sites.ts";

openSites(ENGINES);

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
  ])("%s finds the expected entries in order", (query, ids) => expectIds(site, `/texts/search?${query}`, ids));

  test("a part of a word finds every entry that contains it", async () => {
    const got = await ask(site, "/texts/search?q=tte");
    expect(idsOf(got).split(" ").sort()).toEqual(["1", "2", "3"]);
  });

  test("page 2 of a search has the remaining entry and the right meta", async () => {
    const got = await ask(site, "/texts/search?q=otter&per_page=2&page=2");
    expect(idsOf(got)).toBe("3");
    expect(got.text).toContain('"meta":{"current_page":2,"per_page":2,"total":3,"last_page":2,"query":"otter"}}');
  });

  test("a search has 20 entries a page, whatever per_page the type sets", async () => {
    const got = await ask(site, "/authors/search?q=writer");
    expect(idsOf(got).split(" ").sort()).toEqual(["1", "3", "4"]);
    expect(got.json.meta).toEqual({ current_page: 1, per_page: 20, total: 3, last_page: 1, query: "writer" });
  });

  test("meta.query is the trimmed term as it was sent", async () => {
    const got = await ask(site, encoded('/texts/search?q=+"Otter"%09Ä+'));
    expect(got.json.meta.query).toBe('"Otter"\tÄ');
  });
});

describe.each(STORES)("search rank on %s", (engine) => {
  test("a word that the term repeats counts once, in any case", async () => {
    const store = await openStore(engine);
    const api = await openApiServer(store);
    await store.database.transaction("write", (session) =>
      session.execute(`INSERT INTO precast.apps (key) VALUES ('rank');
        INSERT INTO precast.content_types (app_id, slug) SELECT id, 'texts' FROM precast.apps;
        INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
          SELECT id, 'title', 1, 'text', true FROM precast.content_types;
        INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
          SELECT type.id, gen_random_uuid(), 'published', '2026-01-20', jsonb_build_object('title', title)
          FROM precast.content_types AS type, unnest('{foo bar bar bar,foo foo foo bar bar}'::text[]) AS title`),
    );
    for (const q of ["foo+bar", "foo+bar+bar", "bar+BAR+Bar+foo", "Foo+bar+BAR"]) {
      const { json } = await api.get(`/api/v1/texts/search?q=${q}`, { appKey: "rank" });
      expect(json.data.map(({ title }: { title: string }) => title)).toEqual([
        "foo foo foo bar bar",
        "foo bar bar bar",
      ]);
    }
    await api.close();
    await store.close();
  });
});
