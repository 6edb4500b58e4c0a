/**
 * Which sorts of a type to write anew when some of its entries have changed. A sort is computed where a touched entry
 * stood or now stands in its first page; anywhere else its items are as they were, and its total may be another.
 */
import { listBody } from "../../../shared/body.ts";
import { type App, type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import type { Sort } from "../../../shared/sort.ts";
import { firstsQuery } from "../../../shared/tree-query.ts";
import { headItems, type SortHead, sortAnswers, sortHeads } from "../answers/answers.ts";
import type { Rewrite } from "../stage/stage.ts";
import { type BuiltTree, idOfItem, itemsIn, itemsTextIn } from "./built.ts";
import type { Rewrites, Totals } from "./pages.ts";
import type { Touched } from "./touched.ts";

/** A first page in the tree: null where it has to be computed, whatever was there. */
type Standing = { readonly items: string; readonly last: string } | null;
type Contest = { readonly sort: Sort; readonly candidates: readonly string[]; readonly last: string };

export async function planSorts(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  listed: readonly Touched[],
  { before, total }: Totals,
): Promise<Rewrites> {
  if (listed.length === 0) return { files: 0, answers: () => [] };
  const meta = { page: 1n, perPage: defaultPerPage(type), total };
  const heads = sortHeads(type).map((head) => ({ head, standing: standingOf(type, head, built, listed) }));
  const contests = heads.flatMap(({ head, standing }) => (standing === null ? [] : contestOf(head, standing, listed)));
  const entered = await findEntered(session, app, type, contests);
  const computed = heads.filter(({ head, standing }) => standing === null || entered.has(head.sort));
  const recounted = total === before ? [] : heads.filter((head) => !computed.includes(head));

  async function* answers(): AsyncGenerator<Rewrite[]> {
    for (const { head } of computed) {
      yield sortAnswers(type, head, listBody(await headItems(session, app, type, head.sort), meta));
    }
    for (const { head, standing } of recounted) yield sortAnswers(type, head, listBody([standing?.items ?? ""], meta));
  }
  const files = [...computed, ...recounted].reduce((sum, { head }) => sum + head.spellings.length, 0);
  return { files, answers };
}

function standingOf(type: ContentType, head: SortHead, built: BuiltTree, listed: readonly Touched[]): Standing {
  const file = built.read({ kind: "sort", slug: type.slug, sort: head.spellings[0] as string });
  if (file === null) return null;
  const ids = itemsIn(file).map(idOfItem);
  const last = ids.at(-1);
  const touched = listed.some(({ id }) => ids.includes(id));
  // A page with room shows every entry: whoever is added stands in it.
  const room = ids.length < defaultPerPage(type) && listed.some(({ change }) => change === "added");
  return touched || room || last === undefined ? null : { items: itemsTextIn(file), last };
}

/** Whether an entry that stood behind the first page comes before its last one now. */
function contestOf(head: SortHead, { last }: { readonly last: string }, listed: readonly Touched[]): Contest[] {
  const { sort } = head;
  const moved = listed.filter(
    ({ change, columns }) => change !== "removed" && (columns.has(sort.column.name) || columns.has("published_at")),
  );
  return moved.length === 0 ? [] : [{ sort, last, candidates: [last, ...moved.map(({ id }) => id)] }];
}

async function findEntered(
  session: Session,
  app: App,
  type: ContentType,
  contests: readonly Contest[],
): Promise<ReadonlySet<Sort>> {
  if (contests.length === 0) return new Set();
  const [firsts] = await session.query(firstsQuery(app.key, type, contests));
  return new Set(contests.filter(({ last }, index) => firsts?.[index] !== last).map(({ sort }) => sort));
}
