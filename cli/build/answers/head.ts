/** Gathers the first page of every value of a filterable column while the entries of a type pass by in order. */
import { listBody } from "../../../shared/body.ts";
import { type Column, type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import { facetsOf } from "../../../shared/facet.ts";
import type { FreeAnswer } from "./free-answer.ts";

export type HeadGatherer = {
  readonly column: Column;
  /** Takes the next entry: its value in the column, as JSON text, and its list item. Returns the completed answers. */
  readonly add: (raw: string, item: string) => FreeAnswer[];
  /** Returns the answers that are complete only after the last entry. */
  readonly rest: () => FreeAnswer[];
};

type Head = { total: number; readonly items: string[] };

/** Keeps up to a page of items for each value: for columns with few values, or types with few entries. */
export function gatherHeads(type: ContentType, column: Column): HeadGatherer {
  const perPage = defaultPerPage(type);
  const heads = new Map<string, Head>();
  const add = (raw: string, item: string) => {
    for (const value of facetsOf(column, raw)) {
      const head = heads.get(value) ?? { total: 0, items: [] };
      if (head.total === 0) heads.set(value, head);
      head.total += 1;
      if (head.items.length < perPage) head.items.push(item);
    }
    return [];
  };
  const rest = () => [...heads].map(([value, head]) => headAnswer(type, column, value, head));
  return { column, add, rest };
}

/** Keeps no items, because each entry completes its answers: for columns in which no two entries share a value. */
export function passHeads(type: ContentType, column: Column): HeadGatherer {
  const add = (raw: string, item: string) =>
    facetsOf(column, raw).map((value) => headAnswer(type, column, value, { total: 1, items: [item] }));
  return { column, add, rest: () => [] };
}

export function headAnswer(
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
