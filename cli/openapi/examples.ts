/** Reads the entries that examples are taken from: of each type the first by id, which new entries seldom displace. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { nameFolder } from "../../shared/api/address.ts";
import type { App, ContentType } from "../../shared/api/catalog.ts";
import { shownOfEntry } from "../../shared/api/columns.ts";
import { isRefusal } from "../../shared/api/errors.ts";
import type { Session } from "../../shared/database/database.ts";
import { answerEntries } from "../../shared/live.ts";
import { readRows } from "../database.ts";

/** An entry as its own endpoint shows it. */
export type Entry = { readonly [name: string]: unknown };
/** By the slug of the type. */
export type Examples = ReadonlyMap<string, readonly Entry[]>;

/** Enough that most fields have a value in one of them. */
const MAX_ENTRIES = 20;

export async function readStoredExamples(session: Session, app: App): Promise<Examples> {
  const examples = new Map<string, readonly Entry[]>();
  for (const type of app.types) examples.set(type.slug, await readEntries(session, app, type));
  return examples;
}

async function readEntries(session: Session, app: App, type: ContentType): Promise<readonly Entry[]> {
  const rows = await readRows<{ id: string }>(
    session,
    `SELECT e.id FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id
JOIN precast.entries AS e ON e.content_type_id = type.id AND e.status = 'published'
WHERE app.key = $1 AND type.slug = $2 ORDER BY e.id LIMIT ${MAX_ENTRIES}`,
    [app.key, type.slug],
  );
  const shown = shownOfEntry(type);
  const plans = rows.map(({ id }) => ({ kind: "entry", type, id, shown, populate: [], refusal: null }) as const);
  const answers = await answerEntries(session, app, plans);
  return answers.flatMap((answer) => (isRefusal(answer) ? [] : [parseEntry(String(answer.body.bytes))]));
}

/** The same entries, from the files of a tree. Without a tree, there are none. */
export function readBuiltExamples(out: string, app: App): Examples {
  return new Map(app.types.map(({ slug }) => [slug, readFiles(join(out, nameFolder(app.key), slug, "entry"))]));
}

function readFiles(folder: string): readonly Entry[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).sort().slice(0, MAX_ENTRIES);
  return files.map((file) => parseEntry(readFileSync(join(folder, file), "utf8")));
}

function parseEntry(body: string): Entry {
  return JSON.parse(body).data;
}
