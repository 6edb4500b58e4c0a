/** Builds the sort answers of a type: the first page of every free sort order. Source: contract.md section 8. */
import type { FreeAnswer } from "../../shared/api/address.ts";
import { listBody } from "../../shared/api/answer.ts";
import { type App, type ContentType, defaultPerPage, TIMESTAMPS } from "../../shared/api/catalog.ts";
import { readSort, type Sort, shownOfList } from "../../shared/api/columns.ts";
import { type EntryRow, readEntryRow, renderEntry } from "../../shared/api/entry.ts";
import type { Session } from "../../shared/database/database.ts";
import { headIdsQuery, headQuery } from "../../shared/sql/tree.ts";

/** A sort order that a free request can ask for, with every value of `sort` that means it. */
type SortOrder = { readonly sort: Sort; readonly spellings: readonly string[] };

export function sortOrders(type: ContentType): SortOrder[] {
  const names = [...new Set([...type.sortable_fields, ...TIMESTAMPS])];
  const orders = new Map<string, { sort: Sort; spellings: string[] }>();
  for (const spelling of names.flatMap((name) => [name, `-${name}`])) {
    const sort = readSort(type, spelling);
    if (sort === null) continue;
    const key = `${sort.column.name} ${sort.descending}`;
    const order = orders.get(key) ?? { sort, spellings: [] };
    orders.set(key, order);
    order.spellings.push(spelling);
  }
  return [...orders.values()];
}

/** Number of files for the sorts of a type. */
export function countSortFiles(type: ContentType): number {
  return sortOrders(type).reduce((sum, { spellings }) => sum + spellings.length, 0);
}

/** Queries the sort answers of a type, one query per order. `total` is the number of its published entries. */
export async function* sortAnswers(
  session: Session,
  app: App,
  type: ContentType,
  total: number,
): AsyncGenerator<FreeAnswer[]> {
  const meta = { page: 1n, perPage: defaultPerPage(type), total };
  for (const order of sortOrders(type)) {
    yield spelledAnswers(type, order, listBody(await firstPageItems(session, app, type, order.sort), meta));
  }
}

/** Builds the sort answers of a type with one query for ids. `items` holds the list items of all its entries by id. */
export async function* sortAnswersOf(
  session: Session,
  app: App,
  type: ContentType,
  items: ReadonlyMap<string, string>,
): AsyncGenerator<FreeAnswer[]> {
  const perPage = defaultPerPage(type);
  const orders = sortOrders(type);
  const sorts = orders.map(({ sort }) => sort);
  const [ids] = items.size === 0 ? [] : await session.query(headIdsQuery(app.key, type, sorts, perPage));
  for (const [index, order] of orders.entries()) {
    const first = (ids?.[index] ?? "").split(",").filter((id) => id !== "");
    const body = listBody(
      first.map((id) => items.get(id) as string),
      { page: 1n, perPage, total: items.size },
    );
    yield spelledAnswers(type, order, body);
  }
}

/** The list items of the first page in a sort order. */
export async function firstPageItems(session: Session, app: App, type: ContentType, sort: Sort): Promise<string[]> {
  const shown = shownOfList(type);
  const rows = await session.query(headQuery(app.key, type, sort, defaultPerPage(type)));
  return rows.map((row) => renderEntry(app, shown, readEntryRow(row, 0) as EntryRow));
}

function spelledAnswers(type: ContentType, { spellings }: SortOrder, body: string): FreeAnswer[] {
  return spellings.map((sort) => ({ address: { kind: "sort", slug: type.slug, sort }, body }));
}
