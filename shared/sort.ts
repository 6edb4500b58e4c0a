/** Reads the parameter `sort`: one column and a direction. Source: spec.md section 4.7. */
import { type Column, type ContentType, findColumn, isSortable } from "./catalog.ts";
import { MAX_SORT_LENGTH } from "./refusal.ts";
import { lengthOf } from "./value.ts";

export type Sort = { readonly column: Column; readonly descending: boolean };

const NEWEST: Sort = { column: { name: "published_at", type: "timestamp", multiple: false }, descending: true };

/** Reads the `sort` of a request; null when it is too long or names no sortable field. */
export function readSort(type: ContentType, text: string): Sort | null {
  if (lengthOf(text) > MAX_SORT_LENGTH || !isSortable(type, fieldOf(text))) return null;
  return sortBy(type, text);
}

/** The order of a list without `sort`: the type's default, else newest first. */
export function defaultSort(type: ContentType): Sort {
  return (type.default_sort === null ? null : sortBy(type, type.default_sort)) ?? NEWEST;
}

/** Without a prefix the timestamps sort newest first and everything else ascends; `-` always descends. */
function sortBy(type: ContentType, text: string): Sort | null {
  const column = findColumn(type, fieldOf(text));
  return column === undefined ? null : { column, descending: text.startsWith("-") || column.type === "timestamp" };
}

function fieldOf(text: string): string {
  return text.startsWith("-") ? text.slice(1) : text;
}
