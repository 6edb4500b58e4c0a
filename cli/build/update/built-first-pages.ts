/** Reads the first pages of filters and sorts that the tree holds, without the entries that have been touched since. */
import type { Address } from "../../../shared/address.ts";
import type { Column, ContentType } from "../../../shared/catalog.ts";
import { defaultSort, type Sort } from "../../../shared/sort.ts";
import { sortOrders } from "../answers/sorts.ts";
import { type BuiltTree, ForeignTreeError, idOfItem, listIn } from "./built.ts";
import type { Totals } from "./built-page.ts";
import type { TouchedType } from "./touched.ts";

/** A first page: of the list of a filter value in `column`, or, if that is null, of all entries in a sort order. */
export type FirstPage = {
  readonly column: Column | null;
  readonly sort: Sort;
  /** One for each spelling of a sort. */
  readonly addresses: readonly Address[];
  readonly total: number;
  /** Ids of the touched entries that the list now contains. */
  readonly present: readonly string[];
  /** `untouched` are the other items of the tree's page; `isComplete` is whether that page holds the whole list. */
  readonly untouched: readonly string[];
  readonly isComplete: boolean;
};

export type TreeView = { readonly built: BuiltTree; readonly touchedIds: ReadonlySet<string> };

/** Reads the pages one by one, because many values may be touched. */
export function* readFirstPages(
  type: ContentType,
  view: TreeView,
  facets: TouchedType["facets"],
  present: readonly string[],
  totals: Totals,
): Generator<FirstPage> {
  yield* filterFirstPages(type, view, facets);
  yield* sortFirstPages(type, view, present, totals);
}

function* filterFirstPages(type: ContentType, view: TreeView, facets: TouchedType["facets"]): Generator<FirstPage> {
  const sort = defaultSort(type);
  for (const [column, values] of facets) {
    for (const [value, { before, now }] of values) {
      const address = { kind: "filter", slug: type.slug, field: column.name, value } as const;
      const file = readFirstPage(view, address);
      if (file.total < before) throw new ForeignTreeError(`${type.slug}/filter/${column.name}`);
      const total = file.total - before + now.length;
      yield { ...file, column, sort, addresses: [address], total, present: now };
    }
  }
}

function* sortFirstPages(
  type: ContentType,
  view: TreeView,
  present: readonly string[],
  totals: Totals,
): Generator<FirstPage> {
  for (const { sort, spellings } of sortOrders(type)) {
    const addresses = spellings.map((spelling) => ({ kind: "sort", slug: type.slug, sort: spelling }) as const);
    const file = readFirstPage(view, addresses[0] as Address);
    if (file.total !== totals.before) throw new ForeignTreeError(`${type.slug}/sort`);
    yield { ...file, column: null, sort, addresses, total: totals.total, present };
  }
}

function readFirstPage({ built, touchedIds }: TreeView, address: Address) {
  const file = built.read(address);
  const { items, total } = file === null ? { items: [], total: 0 } : listIn(file, address);
  // A value without a file is new, or somebody has removed the file.
  const isComplete = file !== null && items.length === total;
  return { total, untouched: items.filter((item) => !touchedIds.has(idOfItem(item))), isComplete };
}
