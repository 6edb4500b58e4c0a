/** Which default pages of a type to write anew when some of its entries have changed. */
import { lastPage, listBody } from "../../shared/body.ts";
import { type App, type ContentType, defaultPerPage } from "../../shared/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { type EntryRow, readEntryRow, renderEntry } from "../../shared/entry.ts";
import { shownOfList } from "../../shared/shown.ts";
import { defaultSort } from "../../shared/sort.ts";
import { pagesOfQuery } from "../../shared/tree-query.ts";
import { type FreeAnswer, pageAnswers } from "./answers.ts";
import type { Rewrite } from "./stage.ts";
import type { Touched } from "./touched.ts";

/** How many entries the tree shows of the type, and how many the database does. */
export type Totals = { readonly before: number; readonly total: number };

export type Rewrites = {
  /** How many files are looked at. */
  readonly files: number;
  readonly answers: () => AsyncIterable<Rewrite[]> | Iterable<Rewrite[]>;
};

/** Of so many entries at most the default pages are looked up one by one. */
const FEW = 50;

export async function planPages(
  session: Session,
  app: App,
  type: ContentType,
  listed: readonly Touched[],
  { before, total }: Totals,
): Promise<Rewrites> {
  const perPage = defaultPerPage(type);
  const { column } = defaultSort(type);
  const moved = listed.some(
    ({ change, columns }) => change !== "edited" || columns.has(column.name) || columns.has("published_at"),
  );
  if (!moved && listed.length <= FEW) {
    const answers = listed.length === 0 ? [] : await somePages(session, app, type, listed, total);
    return { files: answers.length, answers: () => [answers] };
  }
  const gone: Rewrite[] = [];
  for (let page = lastPage(total, perPage) + 1; page <= lastPage(before, perPage); page++) {
    gone.push({ address: { kind: "page", slug: type.slug, page: BigInt(page) }, body: null });
  }
  async function* answers(): AsyncGenerator<Rewrite[]> {
    yield* pageAnswers(session, app, type, total);
    yield gone;
  }
  return { files: lastPage(total, perPage) + gone.length, answers };
}

/** The pages on which these entries stand. */
async function somePages(
  session: Session,
  app: App,
  type: ContentType,
  listed: readonly Touched[],
  total: number,
): Promise<FreeAnswer[]> {
  const perPage = defaultPerPage(type);
  const shown = shownOfList(type);
  const ids = listed.map(({ id }) => id);
  const pages = new Map<string, string[]>();
  for (const row of await session.query(pagesOfQuery(app.key, type, perPage, ids))) {
    const page = row[0] as string;
    if (!pages.has(page)) pages.set(page, []);
    pages.get(page)?.push(renderEntry(app, shown, readEntryRow(row, 1) as EntryRow));
  }
  return [...pages].map(([text, items]) => {
    const page = BigInt(text);
    return { address: { kind: "page", slug: type.slug, page }, body: listBody(items, { page, perPage, total }) };
  });
}
