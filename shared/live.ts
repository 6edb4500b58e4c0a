/** Answers a plan from the database: rows become a body, or the refusal that the content itself gives. */

import { catalogBody, entryBody, listBody, schemaBody } from "./body.ts";
import { type App, findType } from "./catalog.ts";
import type { Query, Row, Session } from "./database/database.ts";
import { type Populated, readEntryRow, renderEntry } from "./entry.ts";
import type { EntryPlan, ListPlan, Plan, SearchPlan } from "./plan.ts";
import { entryCountsQuery, entryQuery, listQuery, searchQuery } from "./query.ts";
import { entryNotFound, type Refusal, typeNotFound } from "./refusal.ts";
import { shownOfEntry } from "./shown.ts";

/** The query that answers a plan; null for one that needs none. */
export function queryOf(app: App, plan: Plan): Query | null {
  switch (plan.kind) {
    case "catalog":
      return entryCountsQuery(app.key);
    case "schema":
      return null;
    case "list":
      return listQuery(app.key, plan);
    case "search":
      return searchQuery(app.key, plan);
    case "entry":
      return entryQuery(app.key, plan);
  }
}

/** The body as text. */
export async function answerLive(session: Pick<Session, "query">, app: App, plan: Plan): Promise<string | Refusal> {
  const query = queryOf(app, plan);
  const rows = query === null ? [] : await session.query(query);
  switch (plan.kind) {
    case "catalog":
      return catalogBody(app, countsOf(rows));
    case "schema":
      return schemaBody(plan.type);
    case "list":
    case "search":
      return answerList(app, plan, rows);
    case "entry":
      return answerEntry(app, plan, rows);
  }
}

export function countsOf(rows: readonly Row[]): Map<string, number> {
  return new Map(rows.map(([slug, count]) => [slug as string, Number(count)]));
}

function answerList(app: App, plan: ListPlan | SearchPlan, rows: readonly Row[]): string | Refusal {
  const first = rows[0];
  if (first === undefined) return typeNotFound();
  const entries = rows.map((row) => readEntryRow(row, 1)).filter((entry) => entry !== null);
  const items = entries.map((entry) => renderEntry(app, plan.shown, entry));
  const meta = { page: plan.page, perPage: plan.perPage, total: Number(first[0]) };
  return listBody(items, meta, plan.kind === "search" ? plan.query : undefined);
}

function answerEntry(app: App, plan: EntryPlan, rows: readonly Row[]): string | Refusal {
  const first = rows[0];
  if (first === undefined) return typeNotFound();
  const found = readEntryRow(first, 1);
  if (found === null) return entryNotFound();
  if (plan.refusal !== null) return plan.refusal;
  return entryBody(renderEntry(app, plan.shown, found, populatedOf(app, plan, rows)));
}

/** What stands for the UUIDs of the relations that are to be populated. */
function populatedOf(app: App, plan: EntryPlan, rows: readonly Row[]): Populated {
  const populated = new Map<string, string>();
  const own = readMultiples(plan, rows[0]);
  for (const field of plan.populate) {
    const target = findType(app, field.target ?? "");
    const entries = rows
      .filter((row) => row[0] === field.name)
      .map((row) => readEntryRow(row, 1))
      .filter((entry) => entry !== null);
    const texts = target === undefined ? [] : entries.map((entry) => renderEntry(app, shownOfEntry(target), entry));
    if (!field.multiple) populated.set(field.name, texts[0] ?? "null");
    else if (own.has(field.name)) populated.set(field.name, `[${texts.join(",")}]`);
  }
  return populated;
}

/** The `multiple` relations in which the entry holds an array: in the others `null` stays `null`. */
function readMultiples(plan: EntryPlan, row: Row | undefined): ReadonlySet<string> {
  const data = JSON.parse(row?.[2] ?? "{}") as Record<string, unknown>;
  return new Set(plan.populate.map((field) => field.name).filter((name) => Array.isArray(data[name])));
}
