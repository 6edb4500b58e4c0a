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
import { planHeads } from "./heads.ts";
import { findPlaces, planPages } from "./pages.ts";
import { findTouched, readEntries, type Touched } from "./touched.ts";

export type Update = {
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
): Promise<Update> {
  const touched = await findTouched(session, app, type, built, ids);
  const counted = touched.absent || touched.listed.some(({ change }) => change !== "edited");
  const total = counted ? Number((await session.query(countQuery(app.key, type.slug)))[0]?.[0]) : before;
  if (total !== before + balanceOf(touched.listed)) throw new ForeignTreeError(`${type.slug}/entry`);
  const places = await findPlaces(session, app, type, touched.listed);
  const items = new Map(places.map(({ id, item }) => [id, item]));
  const pages = planPages(type, built, touched.listed, places, { before, total });
  const heads = planHeads(session, app, type, built, touched, items, { before, total });
  await built.bring([...pages.reads, ...heads.reads]);

  async function* rewrites(): AsyncGenerator<Rewrite[]> {
    yield* entryAnswers(session, app, type, touched.written);
    yield* pages.answers();
    yield* heads.answers();
    yield touched.gone.map((id) => ({ address: { kind: "entry", slug: type.slug, id }, body: null }));
  }
  const files = touched.written.length + touched.gone.length + pages.files + heads.files;
  return { total, files, rewrites };
}

/** By how many entries the type has grown, found by comparison with the entry files of the tree. */
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
  for (let at = 0; at < ids.length; at += BATCH) {
    const entries = await readEntries(session, app, type, ids.slice(at, at + BATCH));
    yield [...entries.values()].map((entry) => entryAnswer(app, type, entry));
  }
}
