/**
 * The tree and the database give the same bytes (shared/contract.md section 5).
 * Requests are written as a client writes them.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { libraryId } from "../support/library.ts";
import type { Store } from "../support/site.ts";
import { ask, headersOf, LIVE, openSites, SITES, stores, TREE, without } from "../support/sites.ts";

openSites(SITES);

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
  ])("%s has the same bytes and headers from the tree and live", async (target) => {
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
    // The folder is named in hexadecimal because the key `Lib_1` has a capital.
    const path = join((stores[0] as Store).folder, "out", "x-4c69625f31", "v1", file);
    expect(await readFile(path, "utf8")).toBe((await ask(LIVE, target)).text);
  });
});
