/**
 * Plans which files of a type to write when some of its entries have changed. An edit that neither moves an entry nor
 * changes the total affects the entry, its default page, the filters of its values and the sorts whose first page holds
 * it. A change of the total affects every default page and every sort.
 */
import type { App, ContentType } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import { countQuery } from "../../../shared/sql/tree-query.ts";
import { entryAnswer } from "../answers/answers.ts";
import type { FreeAnswer } from "../answers/free-answer.ts";
import type { Rewrite } from "../stage/staged-app.ts";
import { type BuiltTree, ForeignTreeError } from "./built.ts";
import { planFirstPages } from "./first-pages.ts";
import { findPlaces, planPages } from "./pages.ts";
import { findTouched, readEntries, type Touched } from "./touched.ts";

export type UpdatePlan = {
  readonly total: number;
  /** Number of files that are processed. */
  readonly files: number;
  readonly rewrites: () => AsyncGenerator<Rewrite[]>;
};

const BATCH = 200;

/** `ids` are the entries that may differ; `before` is the number of entries of the type in the tree. */
export async function planUpdate(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  ids: readonly string[],
  before: number,
): Promise<UpdatePlan> {
  const touched = await findTouched(session, app, type, built, ids);
  const needsCount = touched.hasAbsent || touched.listed.some(({ change }) => change !== "edited");
  const total = needsCount ? Number((await session.query(countQuery(app.key, type.slug)))[0]?.[0]) : before;
  if (total !== before + growthOf(touched.listed)) throw new ForeignTreeError(`${type.slug}/entry`);
  const places = await findPlaces(session, app, type, touched.listed);
  const items = new Map(places.map(({ id, item }) => [id, item]));
  const pages = planPages(type, built, touched.listed, places, { before, total });
  const firstPages = planFirstPages(session, app, type, built, touched, items, { before, total });
  await built.fetchFiles([...pages.reads, ...firstPages.reads]);

  async function* rewrites(): AsyncGenerator<Rewrite[]> {
    yield* entryAnswers(session, app, type, touched.written);
    yield* pages.answers();
    yield* firstPages.answers();
    yield touched.gone.map((id) => ({ address: { kind: "entry", slug: type.slug, id }, body: null }));
  }
  const files = touched.written.length + touched.gone.length + pages.files + firstPages.files;
  return { total, files, rewrites };
}

/** By how many entries the type has grown, found by comparison with the entry files of the tree. */
function growthOf(listed: readonly Touched[]): number {
  const count = (wanted: Touched["change"]) => listed.filter(({ change }) => change === wanted).length;
  return count("added") - count("removed");
}

async function* entryAnswers(
  session: Session,
  app: App,
  type: ContentType,
  ids: readonly string[],
): AsyncGenerator<FreeAnswer[]> {
  for (let at = 0; at < ids.length; at += BATCH) {
    const entries = await readEntries(session, app, type, ids.slice(at, at + BATCH));
    yield [...entries.values()].map((entry) => entryAnswer(app, type, entry));
  }
}
