/** Builds the default pages of a type while its entries are read in order. Source: contract.md section 8. */
import { lastPage, listBody } from "../../../shared/body.ts";
import { type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import { shownOfList } from "../../../shared/shown.ts";
import type { FreeAnswer } from "./free-answer.ts";

/** `add` returns the page that the item fills, if it does; `rest` returns the last page if that is not full. */
export function openPages(type: ContentType, total: number) {
  const perPage = defaultPerPage(type);
  let items: string[] = [];
  let page = 0n;
  const next = (): FreeAnswer[] => {
    const body = listBody(items, { page: ++page, perPage, total });
    items = [];
    return [{ address: { kind: "page", slug: type.slug, page }, body }];
  };
  return {
    shown: shownOfList(type),
    add: (item: string) => (items.push(item) === perPage ? next() : []),
    rest: () => (page < lastPage(total, perPage) ? next() : []),
  };
}
