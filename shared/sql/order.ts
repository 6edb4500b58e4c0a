/** Builds the ORDER BY of lists; tie-breakers make every order total. Source: contract.md section 4. */
import type { Sort } from "../sort.ts";
import { orderKeySql } from "./column.ts";

export type SortKey = {
  readonly value: string;
  readonly direction: "ASC" | "DESC" | "ASC NULLS LAST" | "DESC NULLS LAST";
};

const BY_ID: SortKey = { value: "e.id", direction: "ASC" };
export const NEWEST_FIRST: readonly SortKey[] = [{ value: "e.published_at", direction: "DESC" }, BY_ID];

/**
 * Sort keys of a list. Entries without a value come last in both directions; ties sort newest first, then by id. `value`
 * is SQL of the sort column's value.
 */
export function sortKeys(sort: Sort, value = orderKeySql(sort.column)): readonly SortKey[] {
  if (sort.column.name === "published_at") return NEWEST_FIRST;
  return [{ value, direction: sort.descending ? "DESC NULLS LAST" : "ASC NULLS LAST" }, ...NEWEST_FIRST];
}

/** The same, for entries that have a value in the sort column: `stored` is SQL of the entries column that holds it. */
export function storedKeys({ column, descending }: Sort, stored: string): readonly SortKey[] {
  if (column.name === "published_at") return NEWEST_FIRST;
  return [{ value: stored, direction: descending ? "DESC" : "ASC" }, ...NEWEST_FIRST];
}

/** The list of expressions after ORDER BY. */
export function orderSql(sort: Sort): string {
  return keysSql(sortKeys(sort));
}

export function keysSql(keys: readonly SortKey[]): string {
  return keys.map(({ value, direction }) => `${value} ${direction}`).join(", ");
}

/** The keys as columns of a subquery's select list, and the ORDER BY list for the query that reads the subquery. */
export function keyColumns(keys: readonly SortKey[]): { readonly columns: string; readonly order: string } {
  return {
    columns: keys.map(({ value }, index) => `${value} AS key_${index}`).join(", "),
    order: keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", "),
  };
}

/** The keys in reverse order. Their values must never be NULL. */
export function reversed(keys: readonly SortKey[]): readonly SortKey[] {
  return keys.map(({ value, direction }) => ({ value, direction: direction.startsWith("ASC") ? "DESC" : "ASC" }));
}
