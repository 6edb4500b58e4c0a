/** The values by which filters find an entry: shared/contract.md sections 4 and 8. */
import { describe, expect, test } from "vitest";
import type { Column, FieldType } from "../../shared/api/catalog.ts";
import { findFacets } from "../../shared/api/entry.ts";

function column(type: FieldType, multiple = false): Column {
  return { name: "f", type, label: "", required: false, searchable: false, multiple, target: null };
}

describe("the facets of an entry", () => {
  test.each([
    ["text", '"New \\"York\\""', ['New "York"']],
    ["select", '"a"', ["a"]],
    ["number", "2020.0", ["2020"]],
    ["number", "1e3", ["1000"]],
    ["number", "9007199254740993", ["9007199254740992"]],
    ["boolean", "false", ["false"]],
    ["date", '"2026-01-20"', ["2026-01-20"]],
    ["relation", '"bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557"', ["bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557"]],
  ] as const)("of a %s %s are %j", (type, raw, facets) => {
    expect(findFacets(column(type), raw)).toEqual(facets);
  });

  test.each([
    ["text", '""'],
    ["text", "null"],
    ["number", "null"],
    ["boolean", "null"],
    ["date", "null"],
    ["text", undefined],
    ["number", undefined],
  ] as const)("are none for a %s that no filter can name: %s", (type, raw) => {
    expect(findFacets(column(type), raw)).toEqual([]);
  });

  test("of a multiple field are its values, each once", () => {
    expect(findFacets(column("select", true), '["b","a","b",""]')).toEqual(["b", "a"]);
    for (const raw of ["[]", "null", undefined]) expect(findFacets(column("select", true), raw)).toEqual([]);
  });

  test("of a timestamp are its instant", () => {
    const published: Column = { name: "published_at", type: "timestamp", multiple: false };
    expect(findFacets(published, '"2026-01-20T15:30:00.000+00:00"')).toEqual(["2026-01-20T15:30:00.000+00:00"]);
  });
});
