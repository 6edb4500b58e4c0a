/**
 * What of a type's files to write anew when some of its entries have changed. An edit that neither moves nor counts
 * touches the entry, its default page, the filters of its values and the sorts that it stands in; whatever changes the
 * total touches every default page and every sort.
 */
import { entryBody } from "../../../shared/body.ts";
import type { App, Column, ContentType } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import { renderEntry } from "../../../shared/entry.ts";
import { shownOfEntry } from "../../../shared/shown.ts";
import { countQuery } from "../../../shared/tree-query.ts";
import { type FreeAnswer, facetAnswers } from "../answers/answers.ts";
import type { Rewrite } from "../stage/stage.ts";
import { type BuiltTree, ForeignTreeError } from "./built.ts";
import { planPages } from "./pages.ts";
import { planSorts } from "./sorts.ts";
import { findTouched, readEntries, type Touched } from "./touched.ts";

export type Update = {
  readonly total: number;
  /** How many files are looked at. */
  readonly files: number;
  readonly rewrites: () => AsyncGenerator<Rewrite[]>;
};

const BATCH = 200;

/** `before` is how many entries the tree shows of the type. */
export async function planUpdate(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  ids: readonly string[],
  before: number,
): Promise<Update> {
  const touched = await findTouched(session, app, type, built, ids);
  const counted = touched.listed.some(({ change }) => change !== "edited");
  const total = counted ? Number((await session.query(countQuery(app.key, type.slug)))[0]?.[0]) : before;
  if (total !== before + balanceOf(touched.listed)) throw new ForeignTreeError(`${type.slug}/entry`);
  const pages = await planPages(session, app, type, built, touched.listed, { before, total });
  const sorts = await planSorts(session, app, type, built, touched.listed, { before, total });
  const facets = [...touched.facets].filter(([, values]) => values.size > 0);

  async function* rewrites(): AsyncGenerator<Rewrite[]> {
    yield* entryAnswers(session, app, type, touched.written);
    yield* pages.answers();
    for (const [column, values] of facets) yield* facetRewrites(session, app, type, column, [...values]);
    yield* sorts.answers();
    yield touched.gone.map((id) => ({ address: { kind: "entry", slug: type.slug, id }, body: null }));
  }
  const filters = facets.reduce((sum, [, values]) => sum + values.size, 0);
  const files = touched.written.length + touched.gone.length + pages.files + filters + sorts.files;
  return { total, files, rewrites };
}

/** By how many entries the type has grown, as the entry files of the tree tell it. */
function balanceOf(listed: readonly Touched[]): number {
  const count = (wanted: Touched["change"]) => listed.filter(({ change }) => change === wanted).length;
  return count("added") - count("removed");
}

async function* entryAnswers(
  session: Session,
  app: App,
  type: ContentType,
  ids: readonly string[],
): AsyncGenerator<FreeAnswer[]> {
  const shown = shownOfEntry(type);
  for (let at = 0; at < ids.length; at += BATCH) {
    const entries = await readEntries(session, app, type, ids.slice(at, at + BATCH));
    yield [...entries.values()].map((entry) => ({
      address: { kind: "entry", slug: type.slug, id: entry.id },
      body: entryBody(renderEntry(app, shown, entry)),
    }));
  }
}

/** The filters of these values; those that nothing matches any more go. */
async function* facetRewrites(
  session: Session,
  app: App,
  type: ContentType,
  column: Column,
  values: readonly string[],
): AsyncGenerator<Rewrite[]> {
  const left = new Set(values);
  for await (const answers of facetAnswers(session, app, type, column, values)) {
    for (const { address } of answers) if (address.kind === "filter") left.delete(address.value);
    yield answers;
  }
  yield [...left].map((value) => ({
    address: { kind: "filter", slug: type.slug, field: column.name, value },
    body: null,
  }));
}
