/** Checks the model against sentences of the contract, by hand, because the server is compared with the model. */

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { arbitraryBundles, writeBundle } from "./content.ts";
import type { Bundle, BundleEntry, BundleField, ModelAnswer } from "./model.ts";
import { ask, relevanceFault } from "./model.ts";
import { textOfHtml } from "./model-html.ts";
import { arbitraryRequest } from "./requests.ts";

const [A, B, C, D] = ["a", "b", "c", "d"].map((hex) => `0000000${hex}-0000-4000-8000-00000000000${hex}`) as [
  string,
  string,
  string,
  string,
];
const MISSING = "eeeeeeee-0000-4000-8000-00000000000e";

/** Unless `more` says otherwise, entries are published one day apart: A is the oldest, D the newest. */
function entry(id: string, data: Record<string, unknown>, more: Partial<BundleEntry> = {}): BundleEntry {
  const at = `2026-01-2${id === A ? 0 : id === B ? 1 : id === C ? 2 : 3}T15:30:00Z`;
  return { id, status: "published", published_at: at, created_at: at, updated_at: at, data, ...more };
}

function field(name: string, type: BundleField["type"], more: Partial<BundleField> = {}): BundleField {
  return { name, type, label: name, required: false, searchable: false, ...more };
}

/** An app with one content type `posts` of these fields, all of them filterable and sortable where they may be. */
function app(fields: BundleField[], posts: BundleEntry[], more: Partial<Bundle["types"][number]> = {}): Bundle {
  const open = fields.filter(({ type }) => type !== "rich_text" && type !== "json");
  const single = open.filter(({ type, multiple }) => type !== "relation" && !multiple);
  const posted = {
    slug: "posts",
    name: "Posts",
    description: "",
    icon: "document",
    fields,
    filterable_fields: [...open.map(({ name }) => name), "published_at"],
    sortable_fields: single.map(({ name }) => name),
    ...more,
  };
  return { app: { key: "demo", name: "Demo" }, types: [posted], entries: { posts } };
}

function get(bundle: Bundle, target: string, appKey = "demo"): ModelAnswer {
  return ask([bundle], { method: "GET", target: `/api/v1${target}`, appKey }, { mediaBaseUrl: "https://media.test/" });
}

/** The last digits of the ids of a list, in order: `DCBA`. */
function idsOf(answer: ModelAnswer): string {
  const { data } = answer.body as { data: { id: string }[] };
  return data.map(({ id }) => id.at(-1)?.toUpperCase()).join("");
}

function dataOf(answer: ModelAnswer): Record<string, unknown> {
  return (answer.body as { data: Record<string, unknown> }).data;
}

function keysOf(item: unknown): string[] {
  return Object.keys(item as object);
}

function errorOf(answer: ModelAnswer): unknown {
  return (answer.body as { error: unknown }).error;
}

const titled = app(
  [field("title", "text", { searchable: true }), field("views", "number")],
  [
    entry(A, { title: "apple", views: 2020 }),
    entry(B, { title: "Apple pie", views: 3 }),
    entry(C, { title: "Zebra", views: -7.5 }),
    entry(D, { title: null }),
  ],
);

describe("method, route, app key and entry", () => {
  test.each([
    ["POST", "/api/v1/posts", "demo", 405, "METHOD_NOT_ALLOWED"],
    ["DELETE", "/nowhere", undefined, 405, "METHOD_NOT_ALLOWED"],
    ["GET", "/nowhere", undefined, 404, "NOT_FOUND"],
    ["GET", "/api/v1/posts/%ZZ", undefined, 404, "NOT_FOUND"],
    ["GET", "/api/v1/posts", undefined, 401, "MISSING_APP_KEY"],
    ["GET", "/api/v1/posts", "", 401, "MISSING_APP_KEY"],
    ["GET", "/api/v1/posts", "Demo", 401, "INVALID_APP_KEY"],
    ["GET", "/api/v1/posts", "demo, demo", 401, "INVALID_APP_KEY"],
    ["GET", "/api/v1/nope/x?page=0", "demo", 404, "CONTENT_TYPE_NOT_FOUND"],
    ["GET", "/api/v1/posts/x?populate=a", "demo", 404, "ENTRY_NOT_FOUND"],
    ["GET", `/api/v1/posts/${MISSING}`, "demo", 404, "ENTRY_NOT_FOUND"],
  ])("%s %s with app key %s is refused for the first failure: %i %s", (method, target, appKey, status, code) => {
    const request = { method, target, ...(appKey !== undefined && { appKey }) };
    expect(ask([titled], request, { mediaBaseUrl: "" })).toMatchObject({ status, errorCode: code });
  });

  test("a path may have one trailing slash and escaped characters, and nothing else is normalised", () => {
    expect(get(titled, "/posts/").status).toBe(200);
    expect(get(titled, "/%70osts").status).toBe(200);
    for (const path of ["", "/", "//", "/posts//", "//posts", "/posts//search?q=ab", "/posts/search/x", "\\posts"]) {
      expect(get(titled, path)).toMatchObject({ status: 404, errorCode: "NOT_FOUND", counted: null });
    }
    expect(get(titled, "/posts/..").errorCode).toBe("ENTRY_NOT_FOUND");
    expect(get(titled, "/../posts").errorCode).toBe("CONTENT_TYPE_NOT_FOUND");
  });

  test("OPTIONS needs no app key, HEAD is GET without a body, and 405 lists the allowed methods", () => {
    const options = ask([titled], { method: "OPTIONS", target: "/any" }, { mediaBaseUrl: "" });
    expect(options).toMatchObject({ status: 204, counted: null, headers: { "access-control-max-age": "7200" } });
    const request = { method: "HEAD", target: "/api/v1/posts?per_page=1", appKey: "demo" };
    expect(ask([titled], request, { mediaBaseUrl: "" })).toMatchObject({ status: 200, counted: true, body: undefined });
    const put = ask([titled], { method: "PUT", target: "/api/v1/posts", appKey: "demo" }, { mediaBaseUrl: "" });
    expect(put).toMatchObject({ counted: null, headers: { allow: "GET, HEAD, OPTIONS", "cache-control": "no-store" } });
  });

  test("an entry id that two apps share finds the entry of the app that is asked for", () => {
    const other = { ...app([field("title", "text")], [entry(A, { title: "other" })]), app: { key: "b", name: "B" } };
    const request = { method: "GET", target: `/api/v1/posts/${A}`, appKey: "b" };
    expect(dataOf(ask([titled, other], request, { mediaBaseUrl: "" })).title).toBe("other");
  });
});

describe("the catalog", () => {
  const named = (slug: string, position?: number) => {
    const bundle = app([field("title", "text")], [], { slug, ...(position !== undefined && { position }) });
    return bundle.types[0] as Bundle["types"][number];
  };

  test("lists published types by position (none last), then slug bytes; unpublished types are not found", () => {
    const hidden = { ...named("hidden"), published: false };
    const types = [named("b"), named("a-b"), named("z", 2), named("c", 2), named("a_b"), hidden];
    const data = dataOf(get({ ...titled, types }, "/_schemas")) as unknown as { slug: string }[];
    expect(data.map(({ slug }) => slug)).toEqual(["c", "z", "a-b", "a_b", "b"]);
    expect(get({ ...titled, types }, "/hidden").errorCode).toBe("CONTENT_TYPE_NOT_FOUND");
    expect(get({ ...titled, types }, "/_schemas/hidden").errorCode).toBe("CONTENT_TYPE_NOT_FOUND");
  });

  test("entry_count counts published entries; a schema has no entry_count, and five keys for each field", () => {
    const draft = entry(B, {}, { status: "draft", published_at: null });
    const bundle = app([field("title", "text", { multiple: true, searchable: true })], [entry(A, {}), draft]);
    const [item] = dataOf(get(bundle, "/_schemas")) as unknown as Record<string, unknown>[];
    expect(item).toMatchObject({ entry_count: 1, fields: ["title"], searchable_fields: ["title"] });
    const schema = dataOf(get(bundle, "/_schemas/posts"));
    expect(keysOf(schema)).not.toContain("entry_count");
    expect((schema.fields as object[]).map(keysOf)).toEqual([["name", "type", "required", "label", "searchable"]]);
  });
});

describe("an entry", () => {
  const rich = app(
    [field("gallery", "media", { multiple: true }), field("body", "rich_text"), field("cover", "media")],
    [entry(A, { cover: "a/b ü.png", gallery: ["1.png", "2.png"], body: "<p>x</p>" }), entry(B, { gallery: [] })],
  );

  test("has its keys in the contract's order, each media URL right after its field", () => {
    const single = dataOf(get(rich, `/posts/${A}`));
    const fields = ["gallery", "gallery_url", "body", "cover", "cover_url"];
    expect(keysOf(single)).toEqual(["id", ...fields, "published_at", "created_at", "updated_at"]);
    expect(single.cover_url).toBe("https://media.test/demo/cms/media/a%2Fb%20%C3%BC.png");
    expect(single.gallery_url).toEqual([
      "https://media.test/demo/cms/media/1.png",
      "https://media.test/demo/cms/media/2.png",
    ]);
  });

  test("shows a field without a value as null, and an empty array as an empty array", () => {
    const single = dataOf(get(rich, `/posts/${B.toUpperCase()}`));
    expect(single).toMatchObject({ id: B, cover: null, cover_url: null, body: null, gallery: [], gallery_url: [] });
  });

  test("leaves rich text out in a list, and with `fields` shows only `id` and the known names", () => {
    const items = dataOf(get(rich, "/posts")) as unknown as unknown[];
    expect(keysOf(items[0])).not.toContain("body");
    const [item] = dataOf(get(rich, "/posts?fields=body,+cover_url+,+nope")) as unknown as unknown[];
    expect(keysOf(item)).toEqual(["id", "body"]);
    const [media] = dataOf(get(rich, "/posts?fields=created_at,cover")) as unknown as unknown[];
    expect(keysOf(media)).toEqual(["id", "cover", "cover_url", "created_at"]);
    const [bare] = dataOf(get(rich, "/posts?fields=nope")) as unknown as unknown[];
    expect(keysOf(bare)).toEqual(["id"]);
  });

  test("shows timestamps in UTC with an offset and three digits, cut to the millisecond", () => {
    const at = "2026-01-20T23:30:00.9999-02:00";
    const bundle = app([field("starts", "datetime")], [entry(A, { starts: at }, { updated_at: at })]);
    const expected = "2026-01-21T01:30:00.999+00:00";
    expect(dataOf(get(bundle, `/posts/${A}`))).toMatchObject({ starts: expected, updated_at: expected });
  });
});

describe("populate", () => {
  const author = field("author", "relation", { target: "people" });
  const team = field("team", "relation", { target: "people", multiple: true });
  const posts = app(
    [author, team],
    [
      entry(A, { author: B.toUpperCase(), team: [B, C, MISSING, B] }),
      entry(B, { author: C }),
      entry(C, { author: MISSING }),
      entry(D, { team: [] }),
    ],
  );
  const people = app(
    [field("bio", "rich_text"), field("boss", "relation", { target: "people" })],
    [entry(B, { bio: "<p>b</p>", boss: D }), entry(C, {}, { status: "draft" })],
    { slug: "people" },
  );
  const both: Bundle = {
    ...posts,
    types: [...posts.types, ...people.types],
    entries: { ...posts.entries, people: people.entries.posts ?? [] },
  };

  test("replaces a named relation by the entry as its own endpoint shows it, one level deep", () => {
    const expected = dataOf(get(both, `/people/${B}`));
    expect(dataOf(get(both, `/posts/${A}?populate=+author+,nope`))).toMatchObject({
      author: expected,
      team: [B, C, MISSING, B],
    });
    expect(expected).toMatchObject({ bio: "<p>b</p>", boss: D });
  });

  test("shows a related draft, missing entry or entry of another type as null, and omits it in an array", () => {
    const one = dataOf(get(both, `/people/${B}`));
    expect(dataOf(get(both, `/posts/${A}?populate=team`)).team).toEqual([one, one]);
    expect(dataOf(get(both, `/posts/${B}?populate=author`)).author).toBeNull();
    expect(dataOf(get(both, `/posts/${C}?populate=author`)).author).toBeNull();
    expect(dataOf(get(both, `/posts/${D}?populate=author,team`))).toMatchObject({ author: null, team: [] });
  });

  test("accepts 500 code points, and refuses 501 with INVALID_POPULATE, counted and not cached", () => {
    expect(get(both, `/posts/${A}?populate=${"%F0%9F%98%80".repeat(500)}`).status).toBe(200);
    const tooLong = get(both, `/posts/${A}?populate=${"x".repeat(501)}`);
    expect(errorOf(tooLong)).toEqual({ code: "INVALID_POPULATE", parameter: "populate" });
    expect(tooLong).toMatchObject({ counted: true, headers: { "cache-control": "no-store" } });
  });
});

describe("filters", () => {
  const posts = app(
    [
      field("title", "text"),
      field("tags", "select", { multiple: true }),
      field("year", "number"),
      field("live", "boolean"),
      field("day", "date"),
      field("starts", "datetime"),
      field("author", "relation", { target: "posts" }),
    ],
    [
      entry(A, { title: "50%_off", tags: ["a", "b"], year: 2020, live: true, day: "2026-01-20", author: B }),
      entry(B, { title: "12", tags: ["b"], year: 3.5, live: false, starts: "2026-01-20T15:30:00.5Z" }),
      entry(C, { title: "ÄPFEL", tags: [], year: 0 }),
      entry(D, {}),
    ],
  );
  const hits = (query: string) => idsOf(get(posts, `/posts?${query}`));

  test.each([
    ["text is exact and case-sensitive", "filter[title]=50%25_off", "A"],
    ["text is exact and case-sensitive", "filter[title]=50%25_OFF", ""],
    ["a number is compared by its value", "filter[year]=2020.0", "A"],
    ["a number is compared by its value", "filter[year]=35e-1", "B"],
    ["a hexadecimal number equals nothing", "filter[year]=0x7e4", ""],
    ["a boolean has four spellings", "filter[live]=1", "A"],
    ["a boolean has four spellings", "filter[live]=false", "B"],
    ["a boolean is read in any case", "filter[live]=TRUE", "A"],
    ["a date equals the same day", "filter[day]=2026-01-20", "A"],
    ["an instant equals the date of its UTC day", "filter[day]=2026-01-21T00:30%2B01:00", "A"],
    [
      "timestamps are equal if they are the same instant, whatever their offsets",
      "filter[starts]=2026-01-20T17:30:00.500%2B02:00",
      "B",
    ],
    ["a space in an offset is read as a plus", "filter[starts]=2026-01-20T17:30:00.5+02:00", "B"],
    ["a timestamp without an offset is in UTC", "filter[starts]=2026-01-20T15:30:00.5", "B"],
    ["a date without a time is its midnight", "filter[published_at][gt]=2026-01-22", "DC"],
    ["a UUID equals the same one in any case", `filter[author]=${B.toUpperCase()}`, "A"],
    ["a value that cannot be read equals nothing", "filter[day]=2026-02-30", ""],
    ["a value that cannot be read is unequal to all values", "filter[day][neq]=2026-02-30", "DCBA"],
    ["neq includes entries without a value", "filter[year][neq]=2020", "DCB"],
    ["nin includes entries without a value", "filter[tags][nin]=a,x", "DCB"],
    ["in drops empty parts and trims no spaces", "filter[tags][in]=,a,+b", "A"],
    ["in with an empty list finds nothing", "filter[tags][in]=,", ""],
    ["nin with an empty list finds all entries", "filter[tags][nin]=,", "DCBA"],
    ["a multiple field is found if one of its values is equal", "filter[tags]=b", "BA"],
    ["neq finds a multiple field only if none of its values is equal", "filter[tags][neq]=a", "DCB"],
    ["a text that is a number is compared as a number", "filter[title][gte]=12", "B"],
    ["numbers compare by value", "filter[year][lt]=3.6", "CB"],
    ["a number too large for a double is above all others", "filter[year][lt]=1e999", "CBA"],
    ["a number too large for a double is above all others", "filter[year][gt]=1e999", ""],
    ["contains matches % and _ literally", "filter[title][contains]=%25_", "A"],
    ["contains ignores case", "filter[title][contains]=%C3%A4pf", "C"],
    ["contains distinguishes accents", "filter[title][contains]=apf", ""],
    ["starts_with matches the text form of a number", "filter[year][starts_with]=20", "A"],
    ["contains matches the text form of a timestamp", "filter[starts][contains]=.500%2B00", "B"],
    ["two operators on one field must both match", "filter[year][gt]=0&filter[year][lt]=100", "B"],
    ["filters on several fields must all match", "filter[tags]=b&filter[live]=1", "A"],
    ["U+0000 equals nothing", "filter[title][neq]=%00", "DCBA"],
  ])("%s: %s lists the entries [%s]", (_, query, expected) => {
    expect(hits(query)).toBe(expected);
  });

  test.each([
    ["filter[colour]=x", "INVALID_FILTER", "filter[colour]"],
    ["filter[id]=x", "INVALID_FILTER", "filter[id]"],
    ["filter=x", "INVALID_FILTER", "filter"],
    ["filter[]=x", "INVALID_FILTER", "filter[]"],
    ["filter[title=x", "INVALID_FILTER", "filter[title"],
    ["filter[title]b=x", "INVALID_FILTER", "filter[title]b"],
    ["filter[title][]=x", "INVALID_OPERATOR", "filter[title][]"],
    ["filter[title][EQ]=x", "INVALID_OPERATOR", "filter[title][EQ]"],
    ["filter[title][eq][x]=y", "INVALID_OPERATOR", "filter[title][eq][x]"],
    ["filter[title][eq=y", "INVALID_OPERATOR", "filter[title][eq"],
    ["filter[colour][nope]=y", "INVALID_FILTER", "filter[colour][nope]"],
    ["filter[live][gt]=1", "INVALID_FILTER_VALUE", "filter[live][gt]"],
    ["filter[author][lt]=1", "INVALID_FILTER_VALUE", "filter[author][lt]"],
    ["filter[title][gt]=abc", "INVALID_FILTER_VALUE", "filter[title][gt]"],
    ["filter[year][gt]=x&filter[title][no]=x&filter[b]=1&filter[a]=1", "INVALID_FILTER", "filter[b]"],
    ["sort=-&filter[year][gt]=x&filter[title][no]=x", "INVALID_OPERATOR", "filter[title][no]"],
    ["per_page=0&page=0&sort=-", "INVALID_SORT", "sort"],
    ["sort=title,year", "INVALID_SORT", "sort"],
    ["sort=tags", "INVALID_SORT", "sort"],
    ["per_page=0&page=1.0", "INVALID_PAGE", "page"],
    ["per_page=101", "INVALID_PER_PAGE", "per_page"],
    [`fields=${"x".repeat(501)}`, "INVALID_FIELDS", "fields"],
  ])("%s is refused with %s", (query, code, parameter) => {
    const answer = get(posts, `/posts?${query}`);
    expect([answer.status, errorOf(answer)]).toEqual([400, { code, parameter }]);
  });

  test("eleven filter fields are too many, ten are not; a second operator on a field and `like` do not count", () => {
    const some = (count: number) => Array.from({ length: count }, (_, index) => `filter[x${index}]=1`).join("&");
    expect(get(posts, `/posts?${some(11)}`).errorCode).toBe("TOO_MANY_FILTERS");
    const ten = get(posts, `/posts?${some(10)}&filter[x0][gt]=1&filter[y][like]=1`);
    expect(errorOf(ten)).toEqual({ code: "INVALID_FILTER", parameter: "filter[x0]" });
  });

  test("empty parameters count as not sent, the last of repeated ones wins, and unknown ones are ignored", () => {
    expect(hits("filter[title]=12&filter[title]=")).toBe("B");
    expect(hits("filter[colour]=&sort=&page=&per_page=&fields=")).toBe("DCBA");
    expect(hits("filter[title]=x&filter[title][eq]=12")).toBe("B");
    expect(hits("filter%5Btitle%5D=12&fields[]=title&utm_source=x&populate=a&filterx=1")).toBe("B");
  });

  test("`like` is dropped with a warning, an empty one without; `LIKE` is an invalid operator", () => {
    const answer = get(posts, "/posts?filter[nope][like]=x&filter[title]=12");
    expect(answer).toMatchObject({ status: 200, counted: false, headers: { "x-request-warning": true } });
    expect(get(posts, "/posts?filter[title][LIKE]=x").errorCode).toBe("INVALID_OPERATOR");
    expect(keysOf(get(posts, "/posts?filter[title][like]=").headers)).not.toContain("x-request-warning");
  });
});

describe("sorts and pages", () => {
  const instants = (published_at: string) => ({ published_at });
  const posts = app(
    [field("title", "text"), field("n", "number"), field("on", "boolean"), field("at", "datetime")],
    [
      entry(A, { title: "apple", n: 10, on: true, at: "2026-01-01T00:00Z" }, instants("2026-01-20T15:30:00Z")),
      entry(B, { title: "Äpfel", n: 9, on: false, at: "2026-01-02T00:00Z" }, instants("2026-01-20T16:30:00+01:00")),
      entry(C, { title: "Zebra", n: 9 }, instants("2026-01-22T00:00:00Z")),
      entry(D, { title: null, on: true }, instants("2026-01-01T00:00:00Z")),
    ],
  );

  test.each([
    ["newest first by default, ties by id", "", "CABD"],
    ["timestamps are sorted newest first without a prefix", "sort=published_at", "CABD"],
    ["timestamps are sorted newest first with a prefix", "sort=-published_at", "CABD"],
    ["a datetime field is sorted oldest first without a prefix", "sort=at", "ABCD"],
    ["text is sorted by the collation, missing values last", "sort=title", "BACD"],
    ["missing values are last in both directions", "sort=-title", "CABD"],
    ["numbers are sorted by value, ties newest first", "sort=n", "CBAD"],
    ["ties are newest first in both directions", "sort=-n", "ACBD"],
    ["false is sorted before true", "sort=on", "BADC"],
  ])("%s (list with query: %s)", (_, query, expected) => {
    expect(idsOf(get(posts, `/posts?${query}`))).toBe(expected);
  });

  test("texts that the collation treats as equal are sorted by their bytes", () => {
    const twins = app([field("title", "text")], [entry(A, { title: "é" }), entry(B, { title: "e\u0301" })]);
    expect([idsOf(get(twins, "/posts?sort=title")), idsOf(get(twins, "/posts?sort=-title"))]).toEqual(["BA", "AB"]);
  });

  test("a type's default_sort and per_page apply unless the request has its own", () => {
    const [type] = posts.types;
    const own = { ...posts, types: type ? [{ ...type, default_sort: "title", per_page: 3 }] : [] };
    expect(idsOf(get(own, "/posts"))).toBe("BAC");
    expect(get(own, "/posts?page=2").body).toMatchObject({
      meta: { current_page: 2, per_page: 3, total: 4, last_page: 2 },
    });
    expect(idsOf(get(own, "/posts?page=02&per_page=1&sort=published_at"))).toBe("A");
  });

  test("a page after the last, however large, has empty data and a correct meta; last_page is at least 1", () => {
    expect(get(posts, `/posts?page=1${"0".repeat(30)}`).body).toEqual({
      data: [],
      meta: { current_page: 1e30, per_page: 20, total: 4, last_page: 1 },
    });
    expect(get(posts, "/posts?filter[title]=nope").body).toMatchObject({ data: [], meta: { total: 0, last_page: 1 } });
  });
});

describe("search", () => {
  const posts = app(
    [
      field("headline", "text", { searchable: true }),
      field("body", "rich_text", { searchable: true }),
      field("category", "select"),
      field("note", "text"),
    ],
    [
      entry(A, { headline: "Fresh APPLE juice", category: "news", note: "secret" }),
      entry(B, { headline: "Pineapple", body: "<p>juice &amp;eacute;</p>" }),
      entry(C, { headline: "ap", body: `<b>ap</b>ple<i title="juice">s</i> <!-- juice -->` }),
      entry(D, { headline: "x", body: "apple" }, { status: "draft" }),
    ],
  );

  test("finds published entries that contain every word, those with full words in the first group", () => {
    expect(get(posts, "/posts/search?q=apple")).toMatchObject({ order: "groups", groups: [[A], [B, C]] });
    expect(get(posts, "/posts/search?q=%20JUICE,%20apple!%20")).toMatchObject({
      groups: [[A], [B]],
      body: { meta: { current_page: 1, per_page: 20, total: 2, last_page: 1, query: "JUICE, apple!" } },
    });
    expect(get(posts, "/posts/search?q=secret")).toMatchObject({ groups: [[], []] });
  });

  test("joins a word across inline tags, decodes entities once, and joins no words of two fields", () => {
    expect(get(posts, "/posts/search?q=eacute").groups).toEqual([[B], []]);
    expect(get(posts, "/posts/search?q=apples").groups).toEqual([[C], []]);
    expect(get(posts, "/posts/search?q=apap").groups).toEqual([[], []]);
  });

  test("trims `q` and then requires 2 to 200 code points; a `q` without a word finds nothing", () => {
    const long = `+${"%F0%9F%98%80".repeat(200)}+`;
    expect(get(posts, `/posts/search?q=${long}`)).toMatchObject({ status: 200, groups: [[], []] });
    for (const query of ["", "?q=", "?q=+a+", "?q=%F0%9F%98%80", `?q=${"x".repeat(201)}`, "?q=++"]) {
      expect(errorOf(get(posts, `/posts/search${query}`))).toEqual({ code: "INVALID_QUERY", parameter: "q" });
    }
    expect(get(posts, "/posts/search?q=a&per_page=101").errorCode).toBe("INVALID_PER_PAGE");
  });

  test("items show summary_fields, by default with the first text field for a missing title, or `fields`", () => {
    const [item] = dataOf(get(posts, "/posts/search?q=juice&filter[category]=news")) as unknown as unknown[];
    expect(keysOf(item)).toEqual(["id", "headline", "category", "published_at"]);
    const own = { ...posts, types: posts.types.map((type) => ({ ...type, summary_fields: ["note"], per_page: 1 })) };
    const items = dataOf(get(own, "/posts/search?q=juice&sort=headline")) as unknown as unknown[];
    expect(items.map(keysOf)).toEqual([
      ["id", "note", "published_at"],
      ["id", "note", "published_at"],
    ]);
    const [named] = dataOf(get(posts, "/posts/search?q=juice&fields=body")) as unknown as unknown[];
    expect(keysOf(named)).toEqual(["id", "body"]);
  });

  test("`sort` replaces the order by relevance", () => {
    expect(idsOf(get(posts, "/posts/search?q=apple&sort=-headline"))).toBe("BAC");
    expect(get(posts, "/posts/search?q=apple&sort=-headline").order).toBe("exact");
  });

  test("relevanceFault allows any order within a group, and reports wrong groups, repeats, items and meta", () => {
    const model = get(posts, "/posts/search?q=apple");
    const { data, meta } = model.body as { data: { id: string }[]; meta: unknown };
    const [first, second, third] = data;
    expect(relevanceFault(model, { data: [first, third, second], meta })).toBeUndefined();
    expect(relevanceFault(model, { data: [second, first, third], meta })).toContain("not of the group");
    expect(relevanceFault(model, { data: [first, second, second], meta })).toContain("twice");
    expect(relevanceFault(model, { data: [first, second, { ...third, headline: 1 }], meta })).toContain("otherwise");
    expect(relevanceFault(model, { data, meta: { ...(meta as object), total: 2 } })).toContain("meta");
  });

  test.each([
    ["<p>one</p><p>two</p>", "one two"],
    ["one<br/>two", "one two"],
    ["o<b>n</b>e", "one"],
    [`a<img alt="x > y" src='>'>b`, "ab"],
    ["a<!-- <p>x</p> -->b", "ab"],
    ["a <script>if (a < b) x()</script> <style>x</style> b", "a b"],
    ["&amp;lt; &#233;&#xE9;&eacute; &unknown;", "&lt; ééé &unknown;"],
    ["1 < 2 > 1", "1 < 2 > 1"],
    ["<P CLASS=x>y", "y"],
  ])("rich text %s is searched as %s", (html, expected) => {
    expect(textOfHtml(html).trim().replaceAll(/ +/g, " ")).toBe(expected);
  });
});

describe("what is counted and cached", () => {
  const UNCOUNTED = "public, max-age=60";
  test.each([
    ["/_schemas?filter[a]=b", false, UNCOUNTED],
    ["/_schemas/posts", false, UNCOUNTED],
    [`/posts/${A}?fields=title`, false, UNCOUNTED],
    [`/posts/${A}?populate=nope`, true, "private, no-cache"],
    ["/posts", false, UNCOUNTED],
    ["/posts?page=7&utm_source=x", false, UNCOUNTED],
    ["/posts?page=0", false, "no-store"],
    ["/posts?filter[title]=nope", false, UNCOUNTED],
    ["/posts?filter[title][eq]=a&filter[title]=b", false, UNCOUNTED],
    ["/posts?filter[title]=a&page=1", true, "private, no-cache"],
    ["/posts?filter[title][in]=a", true, "private, no-cache"],
    ["/posts?filter[title]=a&filter[views]=1", true, "private, no-cache"],
    ["/posts?filter[colour]=a", true, "no-store"],
    ["/posts?sort=-title", false, UNCOUNTED],
    ["/posts?sort=created_at", false, UNCOUNTED],
    ["/posts?sort=nope", true, "no-store"],
    ["/posts?sort=title&page=1", true, "private, no-cache"],
    ["/posts?sort=title&filter[title]=a", true, "private, no-cache"],
    ["/posts?per_page=20", true, "private, no-cache"],
    ["/posts?fields=title", true, "private, no-cache"],
    ["/posts/search?q=apple", true, "no-cache, no-store"],
    ["/posts/search", true, "no-store"],
    ["/nope", false, "public, max-age=10"],
    ["/nope/x", false, "public, max-age=10"],
    ["/nope/x?populate=a", true, "no-store"],
    ["/nope?filter[a]=b", true, "no-store"],
    ["/nope/search", true, "no-store"],
    [`/posts/${MISSING}`, false, "public, max-age=10"],
  ])("%s: counted %s, Cache-Control %s", (target, counted, cacheControl) => {
    const { headers, ...answer } = get(titled, target);
    expect([answer.counted, headers["x-request-counted"]]).toEqual([counted, String(counted)]);
    const vary = answer.status === 200 ? "X-App-Key, Accept-Encoding" : "X-App-Key";
    expect([headers["cache-control"], headers.vary]).toEqual([cacheControl, vary]);
    expect(headers["cdn-cache-control"] !== undefined).toBe(cacheControl === UNCOUNTED);
    expect(headers.etag).toBe(answer.status === 200 ? true : undefined);
  });

  test("with an unknown app key, an answer has no X-Request-Counted and is not cached", () => {
    const { counted, headers } = get(titled, "/posts", "nobody");
    expect([counted, headers["x-request-counted"], headers["cache-control"]]).toEqual([null, undefined, "no-store"]);
  });
});

describe("generated content and requests", () => {
  test("the model answers every generated request, and every target is printable ASCII without spaces", () => {
    const bundlesAndRequest = arbitraryBundles().chain((all) => fc.tuple(fc.constant(all), arbitraryRequest(all)));
    const property = fc.property(bundlesAndRequest, ([bundles, request]) => {
      expect(request.target).toMatch(/^[\x21-\x7e]+$/);
      expect(ask(bundles, request, { mediaBaseUrl: "https://media.test" }).status).toBeGreaterThan(199);
    });
    fc.assert(property, { numRuns: 300 });
  });

  test("writeBundle writes an app, its types and its entries as JSON that parses to the same values", async () => {
    const folder = await mkdtemp(join(tmpdir(), "bundle-"));
    const [bundle] = fc.sample(arbitraryBundles(), { numRuns: 1, seed: 1 })[0] ?? [];
    if (!bundle) throw new Error("no bundle");
    await writeBundle(folder, bundle);
    const read = async (path: string) => JSON.parse(await readFile(join(folder, path), "utf8"));
    expect(await read("app.json")).toEqual(bundle.app);
    for (const type of bundle.types) expect(await read(`content_types/${type.slug}.json`)).toEqual(type);
    for (const file of await readdir(join(folder, "entries"))) {
      const lines = (await readFile(join(folder, "entries", file), "utf8")).trimEnd().split("\n");
      expect(lines.map((line) => JSON.parse(line))).toEqual(bundle.entries[file.replace(".ndjson", "")]);
    }
    await rm(folder, { recursive: true });
  });
});
