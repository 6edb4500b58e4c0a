/** Finds entries and those that they name, as many as are asked for in the same way, with one query. */
import { entryBody } from "./body.ts";
import { type App, findType } from "./catalog.ts";
import type { Row, Session } from "./database/database.ts";
import { type Populated, renderEntry } from "./entry.ts";
import { readEntryRow } from "./entry-row.ts";
import type { EntryPlan } from "./plan.ts";
import { entryNotFound, type Refusal, typeNotFound } from "./refusal.ts";
import { shownOfEntry } from "./shown.ts";
import { entriesQuery } from "./sql/query.ts";

/** The text of an answer, and the edition of what is in it (editionQuery); null where it has none. */
export type Found = { readonly text: string; readonly edition: string | null };

/** What stands in the columns of entriesQuery. */
const [PLACE, FIELD, ENTRY, EDITION] = [0, 1, 2, 8];

/** In the order of the plans; all have the type and the relations of the first, and are of one moment. */
export async function findEntries(
  session: Pick<Session, "query">,
  app: App,
  plans: readonly EntryPlan[],
): Promise<readonly (Found | Refusal)[]> {
  const [first] = plans;
  if (first === undefined) return [];
  const ids = plans.map(({ id }) => id);
  const [head, ...rows] = await session.query(entriesQuery(app.key, first, ids));
  if (head === undefined) return plans.map(typeNotFound);
  const found = plans.map((): Row[] => []);
  for (const row of rows) found[Number(row[PLACE]) - 1]?.push(row);
  return plans.map((plan, index) => entryOf(app, plan, found[index] ?? [], head[EDITION] ?? null));
}

function entryOf(app: App, plan: EntryPlan, rows: readonly Row[], edition: string | null): Found | Refusal {
  const [first] = rows;
  const found = first === undefined ? null : readEntryRow(first, ENTRY);
  if (found === null) return entryNotFound();
  if (plan.refusal !== null) return plan.refusal;
  return { text: entryBody(renderEntry(app, plan.shown, found, populatedOf(app, plan, rows))), edition };
}

/** What stands for the UUIDs of the relations that are to be populated. */
function populatedOf(app: App, plan: EntryPlan, rows: readonly Row[]): Populated {
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
