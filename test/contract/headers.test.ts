/**
 * Headers of every kind of answer (shared/contract.md section 7).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { libraryId } from "../support/library.ts";
import { ask, askRaw, headersOf, openSites, SITES, TREE, without } from "../support/sites.ts";

openSites(SITES);

const PRESENT = expect.stringMatching(/^"[^"]+"$/);
const CORS = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers":
    "ETag, X-Request-Counted, X-Request-Warning, X-Request-Id, Cache-Status, Retry-After",
  "timing-allow-origin": "*",
};
const ALWAYS = { ...CORS, vary: "X-App-Key" };
/** Headers of answers that the server compresses when asked to. */
const BODY = { ...ALWAYS, vary: "X-App-Key, Accept-Encoding" };
const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };
const FREE = {
  "cache-control": "public, max-age=60",
  "cdn-cache-control": "public, max-age=3600, stale-while-revalidate=60, stale-if-error=86400",
  "x-request-counted": "false",
};
const COUNTED = { "x-request-counted": "true", "cache-status": "precast; fwd=bypass" };
const CHANGING = ["date", "x-request-id"];
const NO_STORE = { "cache-control": "no-store" };

describe.each(SITES)("headers on %s", (site) => {
  const id = libraryId(1);
  const free = { ...FREE, "cache-status": site === TREE ? "precast; hit" : "precast; fwd=miss" };
  const gone = { ...free, "cache-control": "public, max-age=10" };

  test.each([
    ["the catalog", "/_schemas", free],
    ["a schema", "/_schemas/works", free],
    ["a list", "/works", free],
    ["a page after the last", "/works?page=9", free],
    ["a filter", "/works?filter[title]=apple", free],
    ["a filter that nothing matches", "/works?filter[title]=nothing", free],
    ["a sort", "/works?sort=title", free],
    ["an entry", `/works/${id}`, free],
    ["a counted list", "/works?per_page=2", { ...COUNTED, "cache-control": "private, no-cache" }],
    ["a populated entry", `/works/${id}?populate=author_id`, { ...COUNTED, "cache-control": "private, no-cache" }],
    ["a search", "/works/search?q=orchard", { ...COUNTED, "cache-control": "no-cache, no-store" }],
  ])("%s is answered with 200, then with 304 for its ETag", async (_, target, expected) => {
    const got = await ask(site, target);
    expect(got.status).toBe(200);
    expect(headersOf(got)).toEqual({ ...BODY, ...JSON_TYPE, ...expected, etag: PRESENT });
    const again = await ask(site, target, { headers: { "If-None-Match": got.headers.etag as string } });
    expect([again.status, again.text]).toEqual([304, ""]);
    expect(without(headersOf(again), ["content-type"])).toEqual({ ...BODY, ...expected, etag: got.headers.etag });
  });

  test.each([
    ["an unknown type", "/nope", 404, without(gone, ["cdn-cache-control"])],
    ["the schema of an unknown type", "/_schemas/nope", 404, without(gone, ["cdn-cache-control"])],
    ["an unknown entry", `/works/${libraryId(99)}`, 404, without(gone, ["cdn-cache-control"])],
    ["an id that is not a UUID", "/works/x", 404, without(gone, ["cdn-cache-control"])],
    ["a counted 404", "/nope/search", 404, { ...COUNTED, ...NO_STORE }],
    ["an unknown entry with populate", `/works/${libraryId(99)}?populate=related`, 404, { ...COUNTED, ...NO_STORE }],
    ["a free 400", "/works?page=0", 400, { ...without(free, ["cdn-cache-control"]), ...NO_STORE }],
    ["a counted 400", "/works?sort=nope", 400, { ...COUNTED, ...NO_STORE }],
    ["a search without a term", "/works/search", 400, { ...COUNTED, ...NO_STORE }],
  ])("%s is answered without an ETag, and cached briefly or not at all", async (_, target, status, expected) => {
    for (const headers of [{}, { "If-None-Match": "*" }]) {
      const got = await ask(site, target, { headers });
      expect(got.status).toBe(status);
      expect(headersOf(got)).toEqual({ ...ALWAYS, ...JSON_TYPE, ...expected });
    }
  });

  test("answers to a missing or unknown key and to an unknown route have no X-Request-Counted", async () => {
    const challenge = { "www-authenticate": 'AppKey realm="precast"' };
    const [missing, unknown] = [await askRaw(site, "/api/v1/works"), await ask(site, "/works", { appKey: "nobody" })];
    for (const got of [missing, unknown]) {
      expect([got.status, headersOf(got)]).toEqual([401, { ...ALWAYS, ...JSON_TYPE, ...NO_STORE, ...challenge }]);
    }
    expect(headersOf(await ask(site, "/works/x/y"))).toEqual({ ...ALWAYS, ...JSON_TYPE, ...NO_STORE });
  });

  test.each(["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])("%s is not allowed", async (method) => {
    for (const target of ["/works", "/nope/x/y", ""]) {
      // Whose answer to GET is in memory by now.
      await ask(site, target);
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
      "access-control-allow-headers":
        "X-App-Key, Accept, Content-Type, If-None-Match, X-Request-Id, traceparent, tracestate",
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
    expect(without(head.headers, CHANGING)).toEqual(without(get.headers, CHANGING));
    expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(get.text)));
  });

  test.each(["/works", "/works?per_page=2", `/works/${id}`, "/works?page=9"])(
    "If-None-Match on %s: 304 if a tag matches, else 200",
    async (target) => {
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
    },
  );

  test("a HEAD request with the ETag in If-None-Match gives 304", async () => {
    const etag = (await ask(site, "/works")).headers.etag as string;
    expect((await ask(site, "/works", { method: "HEAD", headers: { "If-None-Match": etag } })).status).toBe(304);
  });

  test("different answers have different ETags", async () => {
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
  ])("%s has an X-Request-Warning that names the fields and contains", async (target, fields) => {
    const warning = (await ask(site, target)).headers["x-request-warning"];
    for (const field of fields) expect(warning).toContain(field);
    expect(warning).toContain("contains");
  });

  test.each([
    ["a name of 63 letters", "a".repeat(63), "a".repeat(63)],
    ["a longer name", "a".repeat(64), `${"a".repeat(63)}...`],
    ["a name with other characters", "a b", "a%20b"],
    ["a name whose encoding is cut before a %", `aaa${"é".repeat(30)}`, `aaa${"%C3%A9".repeat(10)}...`],
    ["a name whose encoding is cut behind a %", `aa${"é".repeat(30)}`, `aa${"%C3%A9".repeat(10)}...`],
    ["a name whose encoding is cut within a byte", `a${"é".repeat(30)}`, `a${"%C3%A9".repeat(10)}...`],
  ])("X-Request-Warning shows %s in ASCII, without half a byte", async (_, field, shown) => {
    const warning = (await ask(site, `/works?filter[${encodeURIComponent(field)}][like]=x`)).headers[
      "x-request-warning"
    ];
    expect(warning).toBe(`filter[${shown}][like] was ignored, use filter[${shown}][contains]`);
  });

  test("X-Request-Warning names every field, and of hundreds as many as proxies accept", async () => {
    const warningFor = async (count: number) => {
      const names = Array.from({ length: count }, (_, index) => `field_${index}`);
      const query = names.map((name) => `filter[${name}][like]=x`).join("&");
      const warning = (await ask(site, `/works?${query}`)).headers["x-request-warning"] ?? "";
      return { warning, named: names.filter((name) => warning.includes(`filter[${name}][contains]`)) };
    };
    expect((await warningFor(25)).named).toHaveLength(25);
    const { warning, named } = await warningFor(500);
    expect(warning.length).toBeLessThan(2_100);
    expect(warning.endsWith(`; ${500 - named.length} more warnings`)).toBe(true);
    expect(named).toEqual(Array.from({ length: named.length }, (_, index) => `field_${index}`));
  });

  test.each([
    ["filter[price]=ten", 'filter[price]: "ten" is no number'],
    ["filter[price][neq]=1_000", 'filter[price][neq]: "1_000" is no number'],
    ["filter[price][in]=1,a,b", 'filter[price][in]: "a" is no number; filter[price][in]: "b" is no number'],
    ["filter[in_print]=yes", 'filter[in_print]: "yes" is no boolean'],
    ["filter[day]=2026-02-30", 'filter[day]: "2026-02-30" is no date'],
    ["filter[starts_at]=20+Jan", 'filter[starts_at]: "20 Jan" is no timestamp'],
    ["filter[published_at][nin]=now", 'filter[published_at][nin]: "now" is no timestamp'],
    ["filter[author_id]=1", 'filter[author_id]: "1" is no UUID'],
    ["filter[price]=%22%0D%0Aé", 'filter[price]: "%22%0D%0A%C3%A9" is no number'],
    [`filter[price]=${"x".repeat(64)}`, `filter[price]: "${"x".repeat(63)}..." is no number`],
    ["filter[title][like]=x&filter[price]=ten", 'contains]; filter[price]: "ten" is no number'],
  ])("X-Request-Warning of %s says which value cannot be read: %s", async (query, expected) => {
    const got = await ask(site, `/works?${encodeURI(query).replaceAll("%25", "%")}`);
    expect(got.status).toBe(200);
    expect(got.headers["x-request-warning"]?.endsWith(expected)).toBe(true);
  });

  test.each([
    "/works",
    "/works?filter[title]=ten",
    "/works?filter[price]=1E1&filter[in_print]=True&filter[day]=2026-01-20",
    "/works?filter[price][contains]=ten",
    "/works?filter[nope]=ten",
    "/works?filter[title]=like",
    "/works?filter[title][like]=",
    "/works?filter[title][contains]=x",
    "/works?filter[title][LIKE]=x",
    `/works/${id}?filter[title][like]=x`,
    "/_schemas?filter[title][like]=x",
  ])("%s has no X-Request-Warning", async (target) => {
    expect((await ask(site, target)).headers["x-request-warning"]).toBeUndefined();
  });
});
