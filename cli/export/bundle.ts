/** Writes the content of an app as a bundle: definitions, entries with the drafts, and media. */
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { copy, ensureDir, move, outputFile, remove } from "fs-extra/esm";
import { ConfigError } from "../../shared/config.ts";
import { readBatches, type Session } from "../../shared/database/database.ts";
import { namesIn, readText } from "../../shared/files.ts";
import { findMediaFolder, listMedia, nameMediaFolder } from "../../shared/media.ts";
import { sql } from "../../shared/sql/query.ts";
import { UnknownAppError } from "../../shared/tree.ts";
import { chooseKey, readRow, readRows } from "../database.ts";
import { readApp } from "../import/definition.ts";
import { APP, ENTRIES, MEDIA, namePath, TYPES } from "../import/folder.ts";
import type { BundleApp, BundleType } from "../import/shape.ts";

export type Exported = {
  readonly app: BundleApp;
  /** Numbers of entries by type. */
  readonly entries: ReadonlyMap<string, number>;
  readonly media: number;
};

export type ExportOptions = {
  /** Null for the only app. */
  readonly appKey: string | null;
  /** Slugs of types; null for all. */
  readonly types: readonly string[] | null;
  /** The app that the bundle is to be of; null for the one that is exported. */
  readonly as: BundleApp | null;
  readonly dataDir: string;
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
};

/**
 * Reads one snapshot, in memory that does not grow with the content. The folder may hold an older export of the app,
 * which is replaced when all has been written. Throws ConfigError for a folder that holds anything else.
 */
export async function exportApp(session: Session, folder: string, options: ExportOptions): Promise<Exported> {
  const { app, id } = await readStoredApp(session, options.appKey);
  const told = options.as ?? app;
  refuseForeignFolder(folder, told.key);
  const types = await readTypes(session, id, options.types);
  const part = join(folder, ".export");
  await remove(part);
  await ensureDir(folder);
  try {
    await writeDefinition(join(part, APP), told);
    await ensureDir(join(part, TYPES.folder));
    for (const type of types) await writeDefinition(join(part, namePath(TYPES, type.slug)), type);
    const entries = await writeEntries(session, part, id, types, options);
    const media = await copyMedia(options.dataDir, app.key, join(part, MEDIA));
    for (const name of [MEDIA, ENTRIES.folder, TYPES.folder]) await remove(join(folder, name));
    for (const name of namesIn(part)) await move(join(part, name), join(folder, name), { overwrite: true });
    return { app: told, entries, media };
  } finally {
    await remove(part);
  }
}

function refuseForeignFolder(folder: string, key: string): void {
  if (namesIn(folder).filter((name) => !name.startsWith(".")).length === 0) return;
  const text = readText(join(folder, APP));
  const found = text === null ? null : readApp(text);
  if (found !== null && "value" in found && found.value.key === key) return;
  throw new ConfigError([
    `${folder} holds something else than a bundle of ${key}: name another folder, or a new one; it is made when it is not there.`,
  ]);
}

/** Reads the app that is asked for, or the only one. Throws UnknownAppError and ConfigError as chooseKey does. */
export async function readStoredApp(
  session: Session,
  asked: string | null,
): Promise<{ readonly app: BundleApp; readonly id: number }> {
  const rows = await readRows<{ readonly key: string }>(
    session,
    `SELECT key FROM precast.apps ORDER BY key COLLATE "C"`,
  );
  if (rows.length === 0) throw new UnknownAppError(asked === null ? [] : [asked], []);
  const key = chooseKey(
    rows.map((row) => row.key),
    asked,
  );
  const select = "SELECT id, key, name, media_base_url FROM precast.apps WHERE key = $1";
  const { id, ...app } = await readRow<BundleApp & { readonly id: number }>(session, select, [key]);
  return { app, id };
}

async function readTypes(session: Session, app: number, wanted: readonly string[] | null): Promise<BundleType[]> {
  const types = await readRows<BundleType>(
    session,
    `SELECT slug, name, description, icon, position, published, default_sort, per_page, summary_fields,
       (SELECT coalesce(json_agg(json_strip_nulls(json_build_object('name', name, 'type', type, 'label', label, 'required',
          required, 'searchable', searchable, 'multiple', multiple, 'target', target)) ORDER BY position, name), '[]')
        FROM precast.fields WHERE content_type_id = kind.id) AS fields,
       filterable_fields, sortable_fields
     FROM precast.content_types AS kind WHERE app_id = $1::integer ORDER BY slug COLLATE "C"`,
    [String(app)],
  );
  const unknown = wanted?.filter((slug) => !types.some((type) => type.slug === slug)) ?? [];
  if (unknown.length > 0)
    throw new ConfigError([
      `There is no content type ${unknown.join(", ")}; the types are ${types.map(({ slug }) => slug).join(", ")}.`,
    ]);
  return wanted === null ? types : types.filter(({ slug }) => wanted.includes(slug));
}

/** What is null may be left out of a bundle. */
export async function writeDefinition(file: string, definition: object): Promise<void> {
  const told = Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null));
  await outputFile(file, `${JSON.stringify(told, null, 2)}\n`);
}

const TIME = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
/**
 * The data stays text: JSON.parse would change a number such as 9007199254740993. What SQL wrote under names that are no
 * fields stands in no answer, and an import would refuse it.
 */
const LINES = `SELECT format('{"id":"%s","status":"%s","published_at":%s,"created_at":"%s","updated_at":"%s","data":%s}',
    id, status, coalesce('"' || ${TIME("published_at")} || '"', 'null'), ${TIME("created_at")}, ${TIME("updated_at")},
    (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(data || rich) WHERE $3::jsonb ? key))
  FROM precast.entries WHERE content_type_id = (SELECT id FROM precast.content_types WHERE app_id = $1::integer AND slug = $2)
  ORDER BY id`;

async function writeEntries(
  session: Session,
  folder: string,
  app: number,
  types: readonly BundleType[],
  { onProgress }: ExportOptions,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const { total } = await readRow<{ readonly total: number }>(
    session,
    `SELECT count(*) AS total FROM precast.entries WHERE content_type_id IN
       (SELECT id FROM precast.content_types WHERE app_id = $1::integer)`,
    [String(app)],
  );
  let done = 0;
  for (const { slug, fields } of types) {
    const names = JSON.stringify(fields.map(({ name }) => name));
    const file = join(folder, namePath(ENTRIES, slug));
    let count = 0;
    await outputFile(file, "");
    for await (const rows of readBatches(session, sql(LINES, [String(app), slug, names]))) {
      await appendFile(file, rows.map(([line]) => `${line}\n`).join(""));
      count += rows.length;
      done += rows.length;
      onProgress?.({ done, total });
    }
    counts.set(slug, count);
  }
  return counts;
}

async function copyMedia(dataDir: string, key: string, folder: string): Promise<number> {
  const names = listMedia(dataDir, key);
  const from = join(findMediaFolder(dataDir), nameMediaFolder(key));
  for (const name of names) await copy(join(from, name), join(folder, name), { preserveTimestamps: true });
  return names.length;
}
