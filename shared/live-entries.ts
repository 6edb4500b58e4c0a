/** Finds several entries that are requested in the same way, together with their related entries, with one query. */
import { type Body, bodyOf } from "./answer.ts";
import { entryBody } from "./body.ts";
import { type App, findType } from "./catalog.ts";
import type { Session } from "./database/database.ts";
import { type Populated, renderEntry } from "./entry.ts";
import { readEntryRow } from "./entry-row.ts";
import type { EntryPlan } from "./plan.ts";
import type { Row } from "./query.ts";
import { entryNotFound, type Refusal, typeNotFound } from "./refusal.ts";
import { shownOfEntry } from "./shown.ts";
import { entriesQuery } from "./sql/entries-query.ts";

/** An answer, and the edition of its content in the same snapshot (editionQuery), null when the answer has none. */
export type LiveAnswer = { readonly body: Body; readonly edition: string | null };

/** Indexes of the columns of entriesQuery. ENTRY is the first column of the entry. */
const [PLACE, FIELD, ENTRY, EDITION] = [0, 1, 2, 8];

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
  return plans.map((plan, index) => entryOf(app, plan, found[index] ?? [], head[EDITION] ?? null));
}

function entryOf(app: App, plan: EntryPlan, rows: readonly Row[], edition: string | null): LiveAnswer | Refusal {
  const [first] = rows;
  const found = first === undefined ? null : readEntryRow(first, ENTRY);
  if (found === null) return entryNotFound();
  if (plan.refusal !== null) return plan.refusal;
  const text = renderEntry(app, plan.shown, found, populatedOf(app, plan, rows));
  return { body: bodyOf(entryBody(text)), edition };
}

/** The related entries that replace the UUIDs of the fields in `plan.populate`. */
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
