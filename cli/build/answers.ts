/**
 * Enumerates every free request of an app together with its answer, in the order in which they can be written: whatever
 * an answer names comes before it. Source: contract.md section 8.
 */
import type { Address } from "../../shared/address.ts";
import { catalogBody, entryBody, lastPage, listBody, schemaBody } from "../../shared/body.ts";
import {
  type App,
  type Column,
  type ContentType,
  defaultPerPage,
  findColumn,
  TIMESTAMPS,
} from "../../shared/catalog.ts";
import { readBatches } from "../../shared/database/cursor.ts";
import type { Session } from "../../shared/database/database.ts";
import { type EntryRow, readEntryRow, renderEntry } from "../../shared/entry.ts";
import { answerLive, countsOf } from "../../shared/live.ts";
import { allEntriesQuery, entryCountsQuery, headsQuery } from "../../shared/query.ts";
import { shownOfEntry, shownOfList } from "../../shared/shown.ts";
import { defaultSort, readSort } from "../../shared/sort.ts";

export type FreeAnswer = { readonly address: Address; readonly body: string };

/** Batches of answers, out of one snapshot: `session` is in a read transaction. */
export async function* freeAnswers(session: Session, app: App): AsyncGenerator<readonly FreeAnswer[]> {
  const counts = countsOf(await session.query(entryCountsQuery(app.key)));
  for (const type of app.types) {
    yield* entriesAndPages(session, app, type, counts.get(type.slug) ?? 0);
    for (const column of filterColumns(type)) yield* filters(session, app, type, column);
    yield* sorts(session, app, type);
  }
  yield app.types.map((type) => ({ address: { kind: "schema", slug: type.slug }, body: schemaBody(type) }));
  yield [{ address: { kind: "catalog" }, body: catalogBody(app, counts) }];
}

export function filterColumns(type: ContentType): Column[] {
  return type.filterable_fields.map((name) => findColumn(type, name)).filter((column) => column !== undefined);
}

/** Every spelling of `sort` that is free. */
export function sortSpellings(type: ContentType): string[] {
  return [...new Set([...type.sortable_fields, ...TIMESTAMPS])].flatMap((name) => [name, `-${name}`]);
}

/** One pass in the order of the default pages gives each entry its file and fills page after page. */
async function* entriesAndPages(
  session: Session,
  app: App,
  type: ContentType,
  total: number,
): AsyncGenerator<FreeAnswer[]> {
  const perPage = defaultPerPage(type);
  const whole = shownOfEntry(type);
  const listed = shownOfList(type);
  let items: string[] = [];
  let page = 0n;
  const nextPage = (): FreeAnswer => {
    const body = listBody(items, { page: ++page, perPage, total });
    items = [];
    return { address: { kind: "page", slug: type.slug, page }, body };
  };
  for await (const rows of readBatches(session, allEntriesQuery(app.key, type, defaultSort(type)))) {
    const batch: FreeAnswer[] = [];
    for (const row of rows) {
      const entry = readEntryRow(row, 0) as EntryRow;
      batch.push({
        address: { kind: "entry", slug: type.slug, id: entry.id },
        body: entryBody(renderEntry(app, whole, entry)),
      });
      items.push(renderEntry(app, listed, entry));
      if (items.length === perPage) batch.push(nextPage());
    }
    yield batch;
  }
  if (page < lastPage(total, perPage)) yield [nextPage()];
}

type ValueHead = { readonly value: string; readonly total: number; readonly items: string[] };

/** The first page of every value of a filterable column. */
async function* filters(session: Session, app: App, type: ContentType, column: Column): AsyncGenerator<FreeAnswer[]> {
  const perPage = defaultPerPage(type);
  const shown = shownOfList(type);
  const answerOf = ({ value, total, items }: ValueHead): FreeAnswer => ({
    address: { kind: "filter", slug: type.slug, field: column.name, value: spellValue(column, value) },
    body: listBody(items, { page: 1n, perPage, total }),
  });
  let heads: ValueHead[] = [];
  for await (const rows of readBatches(session, headsQuery(app.key, type, column, defaultSort(type), perPage))) {
    for (const row of rows) {
      const [value, total] = row as [string, string];
      if (heads.at(-1)?.value !== value) heads.push({ value, total: Number(total), items: [] });
      heads.at(-1)?.items.push(renderEntry(app, shown, readEntryRow(row, 2) as EntryRow));
    }
    // The last value's entries may go on in the next batch.
    yield heads.slice(0, -1).map(answerOf);
    heads = heads.slice(-1);
  }
  yield heads.map(answerOf);
}

/** PostgreSQL spells doubles in its own way: the tree names them as JavaScript does. */
function spellValue(column: Column, value: string): string {
  return column.type === "number" ? String(Number(value)) : value;
}

async function* sorts(session: Session, app: App, type: ContentType): AsyncGenerator<FreeAnswer[]> {
  const shown = shownOfList(type);
  for (const spelling of sortSpellings(type)) {
    const sort = readSort(type, spelling);
    if (sort === null) continue;
    const plan = { kind: "list", type, conditions: [], sort, page: 1n, perPage: defaultPerPage(type), shown } as const;
    const body = await answerLive(session, app, plan);
    if (typeof body === "string") yield [{ address: { kind: "sort", slug: type.slug, sort: spelling }, body }];
  }
}
