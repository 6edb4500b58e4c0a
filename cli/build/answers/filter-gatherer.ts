/** Gathers the first page of every value of a filterable column while the entries of a type pass by in order. */
import { listBody } from "../../../shared/body.ts";
import { type Column, type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import { facetsOf } from "../../../shared/facet.ts";
import type { FreeAnswer } from "./free-answer.ts";

export type FilterGatherer = {
  readonly column: Column;
  /** Takes the next entry: its value in the column, as JSON text, and its list item. Returns the completed answers. */
  readonly add: (raw: string, item: string) => FreeAnswer[];
  /** Returns the answers that are complete only after the last entry, each made when it is asked for. */
  readonly rest: () => Iterable<FreeAnswer>;
};

type FirstPage = { total: number; readonly items: string[] };

/** Keeps up to a page of items for each value: for columns with few values, or types with few entries. */
export function gatherFirstPages(type: ContentType, column: Column): FilterGatherer {
  const perPage = defaultPerPage(type);
  const pages = new Map<string, FirstPage>();
  const add = (raw: string, item: string) => {
    for (const value of facetsOf(column, raw)) {
      const page = pages.get(value) ?? { total: 0, items: [] };
      if (page.total === 0) pages.set(value, page);
      page.total += 1;
      if (page.items.length < perPage) page.items.push(item);
    }
    return [];
  };
  function* rest() {
    for (const [value, page] of pages) yield filterAnswer(type, column, value, page);
  }
  return { column, add, rest };
}

/** Keeps no items, because each entry completes its answers: for columns in which no two entries share a value. */
export function gatherUnique(type: ContentType, column: Column): FilterGatherer {
  const add = (raw: string, item: string) =>
    facetsOf(column, raw).map((value) => filterAnswer(type, column, value, { total: 1, items: [item] }));
  return { column, add, rest: () => [] };
}

export function filterAnswer(
  type: ContentType,
  column: Column,
  value: string,
  { total, items }: { readonly total: number; readonly items: readonly string[] },
): FreeAnswer {
  return {
    address: { kind: "filter", slug: type.slug, field: column.name, value },
    body: listBody(items, { page: 1n, perPage: defaultPerPage(type), total }),
  };
}
