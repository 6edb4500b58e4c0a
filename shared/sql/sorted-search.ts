/**
 * Builds the page of a search that is sorted by an indexed column. If many entries have the words, a scan in the order
 * soon meets enough of them, and no other entries have to be read for their values.
 */
import type { Sort } from "../sort.ts";
import { fewOrManySql } from "./few-or-many.ts";
import { sortKeys, storedKeys } from "./order.ts";
import { lookupSql, offsetSql, type Parts, placedSql, type Statement } from "./page-query.ts";
import { endingScanSql } from "./page-scan.ts";

const TOTAL = "SELECT total FROM whole";

/** A scan of an index passes so many entries in the time that looking one up by its key takes. */
const PACE = 16;

/** `stored` is SQL of the entries column that the search is sorted by. */
export type IndexedOrder = { readonly sort: Sort; readonly stored: string };

/** `found` is SQL of FROM and WHERE that find the texts `w` with the words. */
export function sortedParts(statement: Statement, { sort, stored }: IndexedOrder, found: string): Parts {
  const keys = storedKeys(sort, stored);
  const isMatch = "(e.id IN (SELECT id FROM matched)) IS TRUE";
  const ids = fewOrManySql(statement, {
    from: (test) => `FROM matched ${lookupSql("e.content_type_id = matched.content_type_id AND e.id = matched.id")}
    WHERE ${test}`,
    scan: (test, most) => {
      const more = [`${stored} IS NOT NULL`, test];
      return endingScanSql(statement, [isMatch], { keys, length: null, more, most: String(most), read: [] });
    },
    // The scan leaves out entries without a value, which come last: where the page holds some, all are found.
    keys: sortKeys(sort, stored),
    total: TOTAL,
    before: `${offsetSql(statement)}::float8`,
    share: 1,
    pace: PACE,
    ends: true,
  });
  const matched = `matched AS MATERIALIZED (
  SELECT w.content_type_id, w.id ${found})`;
  const whole = "whole AS MATERIALIZED (SELECT count(*) AS total FROM matched)";
  return { tables: [matched, whole], ...placedSql(statement, ids), total: TOTAL };
}
