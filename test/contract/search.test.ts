/**
 * Search: words, groups of the ranking, rich text as text (shared/contract.md section 4).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { openApiServer, openStore, ENGINES as STORES } from "../support/site.ts";
import { ask, CROWDED, ENGINES, encoded, expectIds, idsOf, NOTHING, openSites } from "../support/sites.ts";

openSites([...ENGINES, CROWDED]);

describe.each([...ENGINES, CROWDED])("search on %s", (site) => {
  test.each([
    ["entries with the full word come before those with a part of it, newest first", "otter", "2 1 3"],
    ["the case of words does not matter", "OTTER", "2 1 3"],
    ["entries with every word in full come before the others", "fox+wolf", "23 21 22"],
    ["a term of two words finds them in any order", "wolf+the", "23"],
    ["an entry must have all of many words", "fo+th+fox+the+wol+wolf", "23"],
    ["an entry must have the shortest of many words", "fo+th+fox+the+wol+wolf+z", NOTHING],
    ["punctuation separates words", "panda-red", "12 11"],
    ["an underscore separates words", "snow_leopard", "24"],
    ["spaces around the term are ignored", "++otter%20", "2 1 3"],
    ["a percent sign separates words", "el%25wea", "15"],
    ["the words may occur in different fields", "red+panda", "12 11"],
    ["the name of a tag is not searched", "script", NOTHING],
    ["attributes, comments, scripts and styles are not searched", "walrus", NOTHING],
    ["the rules of a style element are not searched", "color", NOTHING],
    ["text between tags, comments and scripts is searched", "seal", "13"],
    ["block tags separate words", "hornet", NOTHING],
    ["words that block tags separate are both found", "hor+net", "14"],
    ["br separates words", "loris", NOTHING],
    ["br with a slash separates words", "marten", NOTHING],
    ["inline tags do not separate words", "weasel", "15"],
    ["several inline tags do not separate words", "stoat", "15"],
    ["named entities are decoded", "café", "16"],
    ["numeric entities are decoded", "naïve", "16"],
    ["hexadecimal entities are decoded", "日本", "16"],
    ["the name of an entity is not searched", "eacute", NOTHING],
    ["entities are decoded once", "lt", "16"],
    ["an encoded ampersand is not searched as amp", "amp", NOTHING],
    ["a no-break space separates words", "ibis", "16"],
    ["Cyrillic words are found in any case", "МОСКВА+метро", "17"],
    ["a part of a Japanese text is found", "京都", "18"],
    ["combining marks belong to words", "हिन्दी", "18"],
    ["accented letters are found in any case", "ÉTÉ", "19"],
    ["accents do not matter in the text", "ete+2026", "19"],
    ["accents do not matter in the query", "ótter", "2 1 3"],
    ["digits are words", "2026", "19"],
    ["a field that is not searchable is not searched", "capybara", NOTHING],
    ["the values of a multiple select are searched", "lynx", "20"],
    ["the words may occur in different values of a field", "cub+lynx", "20"],
    ["a term without a word finds nothing", "!!", NOTHING],
    ["percent signs alone find nothing", "%25%25", NOTHING],
    ["underscores alone find nothing", "__", NOTHING],
    ["an emoji is not a word", "😀😀", NOTHING],
    ["a word that no entry contains finds nothing", "unicorn", NOTHING],
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
