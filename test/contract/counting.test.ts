/**
 * Counting: the shape of a request decides (shared/contract.md section 5).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { libraryId } from "../support/library.ts";
import { ask, openSites, SITES, TREE } from "../support/sites.ts";

openSites(SITES);

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
  ])("%s is counted: %s", async (target, counted) => {
    for (const method of ["GET", "HEAD"]) {
      const { headers } = await ask(site, target, { method });
      expect(headers["x-request-counted"]).toBe(String(counted));
      const free = site === TREE ? "precast; hit" : "precast; fwd=miss";
      expect(headers["cache-status"]).toBe(counted ? "precast; fwd=bypass" : free);
    }
  });
});
