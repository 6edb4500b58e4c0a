/**
 * Finds which entries of a type differ from the tree, and which filter lists that affects: compares the entries in the
 * database with the files that an earlier build wrote of them.
 */
import { type App, type Column, type ContentType, TIMESTAMPS } from "../../shared/api/catalog.ts";
import { shownOfList } from "../../shared/api/columns.ts";
import { type EntryRow, findFacets, readEntryRow } from "../../shared/api/entry.ts";
import type { Session } from "../../shared/database/database.ts";
import { entriesOfQuery } from "../../shared/sql/tree.ts";
import { entryAnswer } from "./answers.ts";
import { type BuiltTree, builtValuesIn, valuesIn } from "./built.ts";
import { filterColumns } from "./lists.ts";

/** An entry whose list item differs. */
export type Touched = {
  readonly id: string;
  readonly change: "added" | "removed" | "edited";
  /** The columns whose values differ. */
  readonly columns: ReadonlySet<string>;
};

export type TouchedType = {
  /** Ids of the entries whose files are written. */
  readonly written: readonly string[];
  /** Ids of the entries whose files are deleted. */
  readonly gone: readonly string[];
  readonly listed: readonly Touched[];
  /** Whether some entry has no file and needs none: it is a draft, or somebody else has deleted its file. */
  readonly hasAbsent: boolean;
  /** For each filterable column, the values whose lists change. */
  readonly facets: ReadonlyMap<Column, ReadonlyMap<string, Membership>>;
};

/** How many of the touched entries had a value in the tree, and the ids of those that have it now. */
type Membership = { readonly before: number; readonly now: readonly string[] };

const READ_BATCH = 200;

/** `ids` are the entries that may differ. */
export async function findTouched(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  ids: readonly string[],
): Promise<TouchedType> {
  const written: string[] = [];
  const gone: string[] = [];
  const listed: Touched[] = [];
  let hasAbsent = false;
  const facets = new Map(filterColumns(type).map((column) => [column, new Map<string, Counting>()]));
  for (let at = 0; at < ids.length; at += READ_BATCH) {
    const batch = ids.slice(at, at + READ_BATCH);
    const entries = await readEntries(session, app, type, batch);
    await built.fetchFiles(batch.map((id) => ({ kind: "entry", slug: type.slug, id })));
    for (const id of batch) {
      const before = built.read({ kind: "entry", slug: type.slug, id });
      const entry = entries.get(id);
      const after = entry === undefined ? null : entryAnswer(app, type, entry).body;
      if (before === null && after === null) hasAbsent = true;
      if (before === after) continue;
      (after === null ? gone : written).push(id);
      const old = before === null ? null : builtValuesIn(before, type, id);
      const fresh = after === null ? null : valuesIn(after);
      const touched = compare(type, id, old, fresh);
      if (touched === null) continue;
      listed.push(touched);
      for (const [column, values] of facets) {
        for (const value of findFacets(column, old?.get(column.name))) addTo(values, value, 1, []);
        for (const value of findFacets(column, fresh?.get(column.name))) addTo(values, value, 0, [id]);
      }
    }
  }
  return { written, gone, listed, hasAbsent, facets };
}

/** A membership while the entries are compared. */
type Counting = { before: number; readonly now: string[] };

function addTo(values: Map<string, Counting>, value: string, before: number, now: readonly string[]): void {
  const known = values.get(value) ?? { before: 0, now: [] };
  known.before += before;
  known.now.push(...now);
  values.set(value, known);
}

/** Reads those of these entries that are published, by id. */
export async function readEntries(
  session: Session,
  app: App,
  type: ContentType,
  ids: readonly string[],
): Promise<Map<string, EntryRow>> {
  const rows = await session.query(entriesOfQuery(app.key, type, ids));
  const entries = rows.map((row) => readEntryRow(row, 0) as EntryRow);
  return new Map(entries.map((entry) => [entry.id, entry]));
}

type Values = ReadonlyMap<string, string>;

/** Null when no value that a list item shows differs: only rich text has changed. */
function compare(type: ContentType, id: string, old: Values | null, fresh: Values | null): Touched | null {
  const columns = [...shownOfList(type).fields.map(({ name }) => name), ...TIMESTAMPS];
  const differing = new Set(columns.filter((name) => old?.get(name) !== fresh?.get(name)));
  if (differing.size === 0) return null;
  return { id, change: old === null ? "added" : fresh === null ? "removed" : "edited", columns: differing };
}
