/** The order of lists in SQL: no order is ever left to chance. Source: contract.md section 4. */
import type { Sort } from "../sort.ts";
import { orderKeySql } from "./column.ts";

export type SortKey = {
  readonly value: string;
  readonly direction: "ASC" | "DESC" | "ASC NULLS LAST" | "DESC NULLS LAST";
};

const BY_ID: SortKey = { value: "e.id", direction: "ASC" };
export const NEWEST_FIRST: readonly SortKey[] = [{ value: "e.published_at", direction: "DESC" }, BY_ID];

/** Entries without a value come last in both directions; ties are the newest first, then by id. */
export function sortKeys({ column, descending }: Sort): readonly SortKey[] {
  if (column.name === "published_at") return NEWEST_FIRST;
  return [
    { value: orderKeySql(column), direction: descending ? "DESC NULLS LAST" : "ASC NULLS LAST" },
    ...NEWEST_FIRST,
  ];
}

/** What stands behind ORDER BY. */
export function orderSql(sort: Sort): string {
  return keysSql(sortKeys(sort));
}

export function keysSql(keys: readonly SortKey[]): string {
  return keys.map(({ value, direction }) => `${value} ${direction}`).join(", ");
}

/** Keys as columns of a select list, and what stands behind ORDER BY where it is read. */
export function keyColumns(keys: readonly SortKey[]): { readonly columns: string; readonly order: string } {
  return {
    columns: keys.map(({ value }, index) => `${value} AS key_${index}`).join(", "),
    order: keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", "),
  };
}

/** The order from its end, of keys that are never null. */
export function reversed(keys: readonly SortKey[]): readonly SortKey[] {
  return keys.map(({ value, direction }) => ({ value, direction: direction.startsWith("ASC") ? "DESC" : "ASC" }));
}
