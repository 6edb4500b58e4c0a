/** Answers a plan from the database: turns rows into a body, or into a refusal when type or entry does not exist. */
import { bodyOf } from "./answer.ts";
import { catalogBody, listBody, schemaBody } from "./body.ts";
import type { App } from "./catalog.ts";
import type { Session } from "./database/database.ts";
import { DatabaseFault } from "./database/fault.ts";
import { renderEntry } from "./entry.ts";
import { readEntryLines } from "./entry-row.ts";
import { answerEntries, type LiveAnswer } from "./live-entries.ts";
import { oncePerObject } from "./per-object.ts";
import { findPlace, rememberPlace } from "./places.ts";
import type { ListPlan, Plan, SearchPlan } from "./plan.ts";
import type { Query, Row } from "./query.ts";
import { type Refusal, typeNotFound } from "./refusal.ts";
import { countsOf, entryCountsQuery } from "./sql/counts.ts";
import { entriesQuery, typesOf } from "./sql/entries-query.ts";
import { listQuery } from "./sql/list-query.ts";
import { searchQuery } from "./sql/search-query.ts";
import { cacheSlots, NO_SLOTS, readSlots, type SlotCache, type Slots, slotsQuery } from "./sql/slots.ts";

/** The query that answers a plan; null for a schema, which needs none. */
export function queryOf(app: App, plan: Plan, slots: Slots): Query | null {
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

/** The queries that were made for plans with these slots: a plan that is answered again reuses its query. */
const queriesOf = oncePerObject((_: Slots) => new WeakMap<Plan, Query>());

function cachedQuery(app: App, plan: ListPlan | SearchPlan, slots: Slots): Query {
  const place = plan.kind === "list" ? findPlace(slots, plan) : null;
  if (plan.kind === "list" && place !== null) return listQuery(app.key, plan, slots, place);
  const queries = queriesOf(slots);
  const query = queries.get(plan) ?? pageQuery(app, plan, slots);
  queries.set(plan, query);
  return query;
}

/** The slugs of the types whose entries are in an answer. Null for catalog and schema, which have no edition. */
export function typesIn(plan: Plan): readonly string[] | null {
  switch (plan.kind) {
    case "catalog":
    case "schema":
      return null;
    case "list":
    case "search":
      return [plan.type.slug];
    case "entry":
      return typesOf(plan);
  }
}

/** Throws DatabaseFault, also when the slots of the type change faster than they can be read. */
export async function answerLive(
  session: Pick<Session, "query">,
  app: App,
  plan: Plan,
  cache: SlotCache,
): Promise<LiveAnswer | Refusal> {
  switch (plan.kind) {
    case "catalog":
      return withoutEdition(catalogBody(app, countsOf(await session.query(entryCountsQuery(app.key)))));
    case "schema":
      return withoutEdition(schemaBody(plan.type));
    case "list":
    case "search":
      return answerList(app, plan, await queryPage(session, app, plan, cache));
    case "entry":
      return (await answerEntries(session, app, [plan]))[0] ?? typeNotFound();
  }
}

function withoutEdition(text: string): LiveAnswer {
  return { body: bodyOf(text), edition: null };
}

/** What a page was queried with, and the row of the result. */
type Page = { readonly slots: Slots; readonly row: Row };

/**
 * Queries with the slots that were last known. A result without rows means that the slots have changed, that the type
 * is gone, or that what the query relies on no longer holds (Parts.premise in sql/page-query.ts): then reads the slots
 * again. Returns null only when the type is gone.
 */
async function queryPage(
  session: Pick<Session, "query">,
  app: App,
  plan: ListPlan | SearchPlan,
  cache: SlotCache,
): Promise<Page | null> {
  const key = `${app.key} ${plan.type.slug}`;
  for (let attempt = 0, known = cache.get(key); attempt < MAX_ATTEMPTS; attempt++, known = undefined) {
    const slots = known ?? (await readCurrentSlots(session, app, plan));
    if (slots === null) return null;
    if (slots !== known) cacheSlots(cache, key, slots);
    const [row] = await session.query(cachedQuery(app, plan, slots));
    if (row !== undefined) return { slots, row };
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

function answerList(app: App, plan: ListPlan | SearchPlan, found: Page | null): LiveAnswer | Refusal {
  if (found === null) return typeNotFound();
  const [total, edition = null, page = null] = found.row;
  if (page === "") throw new Error(`a page of "${plan.type.slug}" is too large to be answered`);
  const entries = readEntryLines(page);
  const last = entries.length === plan.perPage ? entries.at(-1) : undefined;
  if (plan.kind === "list" && last !== undefined && edition !== null)
    rememberPlace(found.slots, plan, edition, last.id);
  const items = entries.map((entry) => renderEntry(app, plan.shown, entry));
  const meta = { page: plan.page, perPage: plan.perPage, total: Number(total) };
  return { body: bodyOf(listBody(items, meta, plan.kind === "search" ? plan.query : undefined)), edition };
}

/** The type's slots at this moment, for a list or search; NO_SLOTS for other plans and for a missing type. */
export async function currentSlots(session: Pick<Session, "query">, app: App, plan: Plan): Promise<Slots> {
  if (plan.kind !== "list" && plan.kind !== "search") return NO_SLOTS;
  return (await readCurrentSlots(session, app, plan)) ?? NO_SLOTS;
}
