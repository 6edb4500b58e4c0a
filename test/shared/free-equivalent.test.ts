/** Which counted requests could have been free, and what they could have left out (shared/api/pricing.ts). */
import { describe, expect, test } from "vitest";
import { findFreeEquivalent } from "../../shared/api/pricing.ts";
import { readRequest } from "../../shared/api/request.ts";
import { fieldOf, typeOf } from "../support/types.ts";

const POSTS = typeOf(
  "posts",
  [fieldOf("title", "text"), fieldOf("body", "rich_text"), fieldOf("price", "number"), fieldOf("author", "relation")],
  {
    default_sort: "-title",
    per_page: 5,
    filterable_fields: ["title", "price", "published_at"],
    sortable_fields: ["title", "price"],
  },
);

function savingIn(target: string): string | null {
  const request = readRequest({ method: "GET", target: `/api/v1/${target}`, appKey: "shop" });
  if (request.kind !== "request") throw new Error(`${target} is not a request`);
  return findFreeEquivalent(request, POSTS)?.text ?? null;
}

const ALL = "title,price,author,published_at,created_at,updated_at";
const ENTRY = "posts/bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557";

describe("a counted request could have been free", () => {
  test.each([
    ["with all fields of a list", `posts?fields=${ALL}`, "fields"],
    ["with the default sort", "posts?sort=-title&page=2", "sort=-title"],
    ["with values beside one that the field cannot have", "posts?filter[price][in]=x,2.0,2", "filter[][in]"],
    ["with values that the field cannot have", "posts?filter[price][in]=x,y", "filter[][in]"],
    ["with the same value twice", "posts?filter[price]=2&filter[price][in]=2.0", "filter[][in]"],
    ["with one value as a range", "posts?filter[price][lte]=2.0&filter[price][gte]=2", "filter[][gte..lte]"],
    ["with populate that names no relation", `${ENTRY}?populate=title,nope`, "populate"],
    ["with a populate of 500 characters", `${ENTRY}?populate=${"x".repeat(500)}`, "populate"],
    ["without naming what is free beside it", "posts?per_page=5&page=1", "per_page=5"],
    ["without several parameters", "posts?sort=price&per_page=5&page=1", "per_page=5&page=1"],
  ])("%s: %s", (_, target, saving) => {
    expect(savingIn(target)).toBe(saving);
  });
});

describe("a counted request could not have been free", () => {
  test.each([
    ["with another page size", "posts?per_page=6"],
    ["without the timestamps", "posts?fields=title,price,author"],
    ["with the timestamps alone", "posts?fields=published_at,created_at,updated_at"],
    ["with rich text", `posts?fields=${ALL},body`],
    ["with fields that are refused because they are too long", `posts?fields=${ALL},${"x".repeat(500)}`],
    ["with the default sort in the other direction", "posts?sort=title&page=2"],
    ["with another sort in the direction of the default", "posts?sort=-price&page=2"],
    ["with an operator other than in", "posts?filter[price][neq]=2"],
    ["with several values", "posts?filter[price][in]=2,3"],
    ["with a value and another one", "posts?filter[price]=2&filter[price][in]=3"],
    ["with a filter on each of two fields", "posts?filter[price]=2&filter[title]=2"],
    ["with a range between two values", "posts?filter[price][gte]=2&filter[price][lte]=3"],
    ["with one value as a range of texts", "posts?filter[title][gte]=2&filter[title][lte]=2"],
    ["with a range whose ends are refused", "posts?filter[price][gte]=x&filter[price][lte]=x"],
    ["with a range on a field that does not exist", "posts?filter[nope][gte]=2&filter[nope][lte]=2"],
    ["with populate that names a relation", `${ENTRY}?populate=title,author`],
    ["with a populate that is refused because it is too long", `${ENTRY}?populate=${"x".repeat(501)}`],
    ["because it is a search", "posts/search?q=news&per_page=5"],
  ])("%s: %s", (_, target) => {
    expect(savingIn(target)).toBeNull();
  });
});
