/** How the tree names its files: shared/contract.md section 8. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressOfFile, nameFile, nameFolder, segment, writeRequest } from "../../shared/api/address.ts";

describe("a segment of the tree", () => {
  test.each([
    ["", "s-"],
    ["blue", "s-blue"],
    ["a_b-2", "s-a_b-2"],
    ["Blue", "x-426c7565"],
    ["..", "x-2e2e"],
    ["a/b", "x-612f62"],
    ["é", "x-c3a9"],
    ["e\u0301", "x-65cc81"],
    ["2026-01-20T15:30:00.000+00:00", `x-${Buffer.from("2026-01-20T15:30:00.000+00:00").toString("hex")}`],
    ["a".repeat(64), `s-${"a".repeat(64)}`],
    ["a".repeat(65), `h-${createHash("sha256").update("a".repeat(65)).digest("hex")}`],
    ["é".repeat(32), `x-${"c3a9".repeat(32)}`],
    ["é".repeat(33), `h-${createHash("sha256").update("é".repeat(33)).digest("hex")}`],
  ])("of %j is %s", (text, name) => {
    expect(segment(text)).toBe(name);
  });

  test("is safe on every file system: lower-case letters, digits, '-' and '_', at most 130 of them", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 100 }), (text) => {
        expect(segment(text)).toMatch(/^[shx]-[a-z0-9_-]{0,128}$/);
      }),
    );
  });

  test("differs for different strings, also when they are equal after case folding or normalisation", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (one, other) => {
        fc.pre(one !== other);
        expect(segment(one)).not.toBe(segment(other));
      }),
    );
    for (const [one, other] of [
      ["a", "A"],
      ["é", "e\u0301"],
      ["s-a", "a"],
      ["ﬁ", "fi"],
    ] as const) {
      expect(segment(one)).not.toBe(segment(other));
    }
  });
});

describe("the file of a request", () => {
  test.each([
    [{ kind: "catalog" }, "_schemas.json"],
    [{ kind: "schema", slug: "posts" }, "_schemas/posts.json"],
    [{ kind: "page", slug: "posts", page: 12n }, "posts/page/12.json"],
    [
      { kind: "filter", slug: "posts", field: "category", value: "New York" },
      "posts/filter/category/x-4e657720596f726b.json",
    ],
    [{ kind: "sort", slug: "posts", sort: "-title" }, "posts/sort/-title.json"],
    [
      { kind: "entry", slug: "posts", id: "bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557" },
      "posts/entry/bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557.json",
    ],
  ] as const)("has the path $1", (address, file) => {
    expect(nameFile(address)).toBe(file);
  });

  test.each([
    [{ kind: "catalog" }, "/api/v1/_schemas"],
    [{ kind: "schema", slug: "posts" }, "/api/v1/_schemas/posts"],
    [{ kind: "page", slug: "posts", page: 1n }, "/api/v1/posts"],
    [{ kind: "page", slug: "posts", page: 12n }, "/api/v1/posts?page=12"],
    [{ kind: "filter", slug: "posts", field: "tag", value: "a&b é" }, "/api/v1/posts?filter[tag]=a%26b%20%C3%A9"],
    [{ kind: "sort", slug: "posts", sort: "-title" }, "/api/v1/posts?sort=-title"],
    [
      { kind: "entry", slug: "posts", id: "bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557" },
      "/api/v1/posts/bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557",
    ],
  ] as const)("belongs to one request, and maps back to its address: $1", (address, request) => {
    expect(writeRequest(address)).toBe(request);
    expect(addressOfFile(nameFile(address))).toEqual(address);
  });

  test("maps back to the value of a filter unless the value is hashed", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (value) => {
        const address = { kind: "filter", slug: "posts", field: "tag", value } as const;
        const hashed = Buffer.byteLength(value) > 64;
        expect(addressOfFile(nameFile(address))).toEqual(hashed ? null : address);
      }),
    );
  });

  test.each([
    "notes.txt",
    "posts/page/01.json",
    "posts/page/x.json",
    "posts/page/0.json",
    "posts/page/1.json.tmp",
    "posts/filter/tag/x-4e65775.json",
    "posts/filter/tag/new.json",
    "posts/filter/tag/s-.json",
    "posts/filter//s-a.json",
    "posts/sort/.json",
    "_schemas/.json",
    "posts/entry/search.json",
    "posts/entry/bbed1cc7.json",
    "posts/other/1.json",
    "posts.json",
    "posts/page/1/2.json",
  ])("never has a path like this: %s", (file) => {
    expect(addressOfFile(file)).toBeNull();
  });

  test("lies in the folder of its app, which depends on the case of the key", () => {
    expect(nameFolder("atlas")).toBe("s-atlas/v1");
    expect(nameFolder("Atlas")).toBe("x-41746c6173/v1");
  });
});
