/** Answers a plan from the database: turns rows into a body, or into a refusal when type or entry does not exist. */
import { type Body, catalogBody, entryBody, listBody, makeBody, schemaBody } from "./api/answer.ts";
import { type App, findType, oncePerObject } from "./api/catalog.ts";
import { shownOfEntry } from "./api/columns.ts";
import { type Populated, readEntryLines, readEntryRow, renderEntry } from "./api/entry.ts";
import { entryNotFound, type Refusal, typeNotFound } from "./api/errors.ts";
import type { EntryPlan, ListPlan, Plan, SearchPlan } from "./api/plan.ts";
import type { Session } from "./database/database.ts";
import { DatabaseFault } from "./database/errors.ts";
import { cacheSlots, NO_SLOTS, readSlots, type SlotCache, type Slots, slotsQuery } from "./sql/columns.ts";
import { entryCountsQuery, readCounts } from "./sql/counts.ts";
import { entriesQuery } from "./sql/entries.ts";
import { listQuery } from "./sql/list.ts";
import type { Query, Row } from "./sql/query.ts";
import { searchQuery } from "./sql/search.ts";

/** An answer, and the version of its content in the same snapshot (contentVersionQuery), null when the answer has none. */
export type LiveAnswer = { readonly body: Body; readonly contentVersion: string | null };

/** Throws DatabaseFault, also when the slots of the type change faster than they can be read. */
export async function answerLive(
  session: Pick<Session, "query">,
  app: App,
  plan: Plan,
  cache: SlotCache,
): Promise<LiveAnswer | Refusal> {
  switch (plan.kind) {
    case "catalog":
      return withoutVersion(catalogBody(app, readCounts(await session.query(entryCountsQuery(app.key)))));
    case "schema":
      return withoutVersion(schemaBody(plan.type));
    case "list":
    case "search":
      return answerList(app, plan, await queryPage(session, app, plan, cache));
    case "entry":
      return (await answerEntries(session, app, [plan]))[0] ?? typeNotFound();
  }
}

function withoutVersion(text: string): LiveAnswer {
  return { body: makeBody(text), contentVersion: null };
}

function answerList(app: App, plan: ListPlan | SearchPlan, row: Row | null): LiveAnswer | Refusal {
  if (row === null) return typeNotFound();
  const [total, contentVersion = null, page = null] = row;
  if (page === "") throw new Error(`a page of "${plan.type.slug}" is too large to be answered`);
  const entries = readEntryLines(page);
  const items = entries.map((entry) => renderEntry(app, plan.shown, entry));
  const meta = { page: plan.page, perPage: plan.perPage, total: Number(total) };
  return { body: makeBody(listBody(items, meta, plan.kind === "search" ? plan.query : undefined)), contentVersion };
}

/**
 * Queries with the slots that were last known. A result without rows means that the slots have changed, that the type
 * is gone or that it is no longer small: then reads the slots again. Returns null only when the type is gone.
 */
async function queryPage(
  session: Pick<Session, "query">,
  app: App,
  plan: ListPlan | SearchPlan,
  cache: SlotCache,
): Promise<Row | null> {
  const key = `${app.key} ${plan.type.slug}`;
  for (let attempt = 0, known = cache.get(key); attempt < MAX_ATTEMPTS; attempt++, known = undefined) {
    const slots = known ?? (await readCurrentSlots(session, app, plan));
    if (slots === null) return null;
    if (slots !== known) cacheSlots(cache, key, slots);
    const [row] = await session.query(cachedQuery(app, plan, slots));
    if (row !== undefined) return row;
  }
  throw new DatabaseFault("unavailable", `the slots of "${plan.type.slug}" change faster than they can be read`);
}

const MAX_ATTEMPTS = 5;

/** Null when the type no longer exists or is unpublished. */
async function readCurrentSlots(
  session: Pick<Session, "query">,
  app: App,
  { type }: ListPlan | SearchPlan,
): Promise<Slots | null> {
  const [row] = await session.query(slotsQuery(app.key, type.slug));
  return readSlots(row);
}

/** The queries that were made for plans with these slots: a plan that is answered again reuses its query. */
const keepQueries = oncePerObject((_: Slots) => new WeakMap<Plan, Query>());

function cachedQuery(app: App, plan: ListPlan | SearchPlan, slots: Slots): Query {
  const queries = keepQueries(slots);
  const query = queries.get(plan) ?? pageQuery(app, plan, slots);
  queries.set(plan, query);
  return query;
}

// Finds several entries that are requested in the same way, together with their related entries, with one query.

/** Indexes of the columns of entriesQuery. ENTRY is the first column of the entry. */
const [PLACE, FIELD, ENTRY, CONTENT_VERSION] = [0, 1, 2, 8];

/** Answers in the order of `plans`, all from one snapshot. All plans must have the type and `populate` of the first. */
export async function answerEntries(
  session: Pick<Session, "query">,
  app: App,
  plans: readonly EntryPlan[],
): Promise<readonly (LiveAnswer | Refusal)[]> {
  const [first] = plans;
  if (first === undefined) return [];
  const ids = plans.map(({ id }) => id);
  const [head, ...rows] = await session.query(entriesQuery(app.key, first, ids));
  if (head === undefined) return plans.map(typeNotFound);
  const found = plans.map((): Row[] => []);
  for (const row of rows) found[Number(row[PLACE]) - 1]?.push(row);
  return plans.map((plan, index) => makeEntryAnswer(app, plan, found[index] ?? [], head[CONTENT_VERSION] ?? null));
}

function makeEntryAnswer(
  app: App,
  plan: EntryPlan,
  rows: readonly Row[],
  contentVersion: string | null,
): LiveAnswer | Refusal {
  const [first] = rows;
  const found = first === undefined ? null : readEntryRow(first, ENTRY);
  if (found === null) return entryNotFound();
  if (plan.refusal !== null) return plan.refusal;
  const text = renderEntry(app, plan.shown, found, groupPopulated(app, plan, rows));
  return { body: makeBody(entryBody(text)), contentVersion };
}

/** The related entries that replace the UUIDs of the fields in `plan.populate`. */
function groupPopulated(app: App, plan: EntryPlan, rows: readonly Row[]): Populated {
  const populated = new Map<string, string>();
  for (const field of plan.populate) {
    const target = findType(app, field.target ?? "");
    const entries = rows
      .filter((row) => row[FIELD] === field.name)
      .map((row) => readEntryRow(row, ENTRY))
      .filter((entry) => entry !== null);
    const texts = target === undefined ? [] : entries.map((entry) => renderEntry(app, shownOfEntry(target), entry));
    populated.set(field.name, field.multiple ? `[${texts.join(",")}]` : (texts[0] ?? "null"));
  }
  return populated;
}

// What others may know of an answer before it is made.

/** The query that answers a plan; null for a schema, which needs none. */
export function buildQuery(app: App, plan: Plan, slots: Slots): Query | null {
  switch (plan.kind) {
    case "catalog":
      return entryCountsQuery(app.key);
    case "schema":
      return null;
    case "list":
    case "search":
      return pageQuery(app, plan, slots);
    case "entry":
      return entriesQuery(app.key, plan, [plan.id]);
  }
}

function pageQuery(app: App, plan: ListPlan | SearchPlan, slots: Slots): Query {
  return plan.kind === "list" ? listQuery(app.key, plan, slots) : searchQuery(app.key, plan, slots);
}

/** The type's slots at this moment, for a list or search; NO_SLOTS for other plans and for a missing type. */
export async function currentSlots(session: Pick<Session, "query">, app: App, plan: Plan): Promise<Slots> {
  if (plan.kind !== "list" && plan.kind !== "search") return NO_SLOTS;
  return (await readCurrentSlots(session, app, plan)) ?? NO_SLOTS;
}
