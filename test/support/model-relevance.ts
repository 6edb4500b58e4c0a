/** Checks that a page of a search by relevance is one that the contract allows. */

import { isDeepStrictEqual } from "node:util";
import type { Json } from "./model-entry.ts";

type Found = { groups?: string[][]; items?: Json[]; body: unknown };
type Page = { data: Json[]; meta: { current_page: number; per_page: number; total: number } };

/**
 * What is wrong with the server's body where the model's `order` is `groups`; `undefined` if nothing is.
 *
 * The page must have the model's `meta`, as many items of the full-word group as fall on it, these first, the rest
 * from the other group, nothing twice, each item with the model's content.
 */
export function relevanceFault(model: Found, actual: unknown): string | undefined {
  const expected = model.body as Page;
  const { data, meta } = actual as Page;
  const [full = [], partial = []] = model.groups ?? [];
  if (!isDeepStrictEqual(meta, expected.meta)) return `meta ${JSON.stringify(meta)}`;
  if (data.length !== expected.data.length) return `${data.length} items in place of ${expected.data.length}`;
  if (new Set(data.map((item) => item.id)).size !== data.length) return "an id stands twice";
  const fullOnPage = expected.data.filter((item) => full.includes(String(item.id))).length;
  const strange = data.findIndex((item, index) => !(index < fullOnPage ? full : partial).includes(String(item.id)));
  if (strange >= 0) return `item ${strange} (${data[strange]?.id}) is not of the group that stands there`;
  const items = model.items ?? [];
  const different = data.find((item) => !items.some((one) => isDeepStrictEqual(one, item)));
  return different && `item ${different.id} reads otherwise`;
}
