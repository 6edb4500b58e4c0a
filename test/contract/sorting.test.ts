/**
 * Sorting: directions, ties, missing values (shared/contract.md section 4).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { ALL, ask, CROWDED, ENGINES, expectIds, idsOf, openSites } from "../support/sites.ts";

openSites([...ENGINES, CROWDED]);

describe.each([...ENGINES, CROWDED])("sorting on %s", (site) => {
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
  ])("/works%s lists the entries in the expected order", (query, ids) => expectIds(site, `/works${query}`, ids));

  test.each([
    ["/authors", "1 4"],
    ["/authors?page=2", "3 5"],
    ["/authors?page=3", "8"],
    ["/authors?per_page=100", "1 4 3 5 8"],
    ["/authors?per_page=100&sort=published_at", "1 3 4 5 8"],
    ["/authors?sort=published_at", "1 3"],
  ])("a type has its own default sort and page size: %s", async (target, ids) => {
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
  ])("types and fields named like parameters or built-in properties are answered: %s", (target, ids) =>
    expectIds(site, target, ids),
  );
});
