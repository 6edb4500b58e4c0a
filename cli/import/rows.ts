/** Writes the rows of a bundle: its app, content types, fields and entries. */
import { readBatches, type Session } from "../../shared/database/database.ts";
import { type Query, type Row, sql, type Value } from "../../shared/sql/query.ts";
import { readRows } from "../database.ts";
import type { Entry } from "./entry.ts";
import { type Changes, deletions, type MissingTarget, NO_CHANGES } from "./report.ts";
import type { BundleApp, BundleType } from "./shape.ts";

/** `field` has the name of the `<media>_url` companion of the media field `media`. Both belong to the type `slug`. */
type Clash = { readonly slug: string; readonly field: string; readonly media: string };

const TYPE_COLUMNS = [
  ...["name", "description", "icon", "position", "published", "default_sort", "per_page"],
  ...["summary_fields", "filterable_fields", "sortable_fields"],
];
const FIELD_COLUMNS = ["position", "type", "label", "required", "searchable", "multiple", "target"];

/** Inserts or updates the app and returns the id of its row. */
export async function writeApp(session: Session, { key, name, media_base_url }: BundleApp): Promise<string> {
  const statement = upsert("apps", "key", ["name", "media_base_url"], "SELECT $1, $2, $3");
  await session.query(sql(statement, [key, name, media_base_url]));
  const [row] = await session.query(sql("SELECT id::text FROM precast.apps WHERE key = $1", [key]));
  return row?.[0] as string;
}

/** Creates the rows that `select` gives, or updates those that are there and differ. `key` is the table's unique key. */
function upsert(table: string, key: string, columns: readonly string[], select: string): string {
  return `INSERT INTO precast.${table} (${key}, ${columns.join(", ")}) ${select}
    ON CONFLICT (${key}) DO ${updateStatement(table, columns, columns.map(excluded).join(", "))}
    RETURNING ${key}`;
}

/** Counts created and updated rows. `old` is the table before the statement: all parts of it read one snapshot. */
function countedUpsert(table: string, key: string, columns: readonly string[], select: string): string {
  return `WITH written AS (${upsert(table, key, columns, select)})
  SELECT count(*) FILTER (WHERE old.ctid IS NULL)::text, count(old.ctid)::text
  FROM written LEFT JOIN precast.${table} AS old USING (${key})`;
}

/** Leaves rows alone that already have the values of `row`. */
function updateStatement(table: string, columns: readonly string[], row: string): string {
  const stored = columns.map((column) => `${table}.${column}`).join(", ");
  return `UPDATE SET (${columns.join(", ")}) = ROW (${row}) WHERE (${stored}) IS DISTINCT FROM (${row})`;
}

function excluded(column: string): string {
  return `excluded.${column}`;
}

function countChanges(rows: readonly Row[], wanted: number): Changes {
  const [created, updated] = (rows[0] ?? []).map(Number) as [number, number];
  return { created, updated, unchanged: wanted - created - updated, deleted: 0 };
}

/**
 * `isNew` is true when this transaction created the type and it has no entries. Other transactions cannot add entries
 * to it before this one commits. `leftovers` are the fields that the bundle lacks and the database keeps; a new type has
 * none.
 */
export type TypeRow = { readonly id: string; readonly isNew: boolean; readonly leftovers: readonly string[] };

/** Rows of the bundle's content types by slug. `app` is the id of the app's row. */
export async function readTypeRows(
  session: Session,
  app: string,
  types: readonly BundleType[],
): Promise<ReadonlyMap<string, TypeRow>> {
  const rows = await readRows<TypeRow & { readonly slug: string }>(
    session,
    `SELECT slug, id::text AS id, begun_in = pg_current_xact_id()
       AND NOT EXISTS (SELECT FROM precast.entries WHERE content_type_id = type.id) AS "isNew",
       (SELECT coalesce(jsonb_agg(name), '[]') FROM precast.fields
        WHERE content_type_id = type.id AND NOT wanted.fields ? name) AS leftovers
     FROM precast.content_types AS type JOIN jsonb_to_recordset($2::jsonb) AS wanted (slug text, fields jsonb) USING (slug)
     WHERE app_id = $1::integer`,
    [app, fieldNames(types)],
  );
  return new Map(rows.map(({ slug, ...row }) => [slug, row]));
}

export async function writeTypes(session: Session, app: string, types: readonly BundleType[]): Promise<Changes> {
  const select = `SELECT $1::integer, slug, ${TYPE_COLUMNS.join(", ")}
    FROM jsonb_populate_recordset(NULL::precast.content_types, $2::jsonb) ORDER BY slug`;
  const statement = countedUpsert("content_types", "app_id, slug", TYPE_COLUMNS, select);
  return countChanges(await session.query(sql(statement, [app, JSON.stringify(types)])), types.length);
}

/** Writes the fields in the order of the bundle. Fields that the bundle lacks follow them, in their previous order. */
export async function writeFields(session: Session, app: string, types: readonly BundleType[]): Promise<Changes> {
  const wanted = types.flatMap(({ slug, fields }) => fields.map((field, position) => ({ slug, position, ...field })));
  const select = `SELECT kind.id, field.name, ${FIELD_COLUMNS.map((column) => `field.${column}`).join(", ")}
    FROM jsonb_array_elements($2::jsonb) AS wanted
    JOIN precast.content_types AS kind ON kind.app_id = $1::integer AND kind.slug = wanted ->> 'slug'
    CROSS JOIN jsonb_populate_record(NULL::precast.fields, wanted) AS field
    ORDER BY kind.id, field.position`;
  const statement = countedUpsert("fields", "content_type_id, name", FIELD_COLUMNS, select);
  const rows = await session.query(sql(statement, [app, JSON.stringify(wanted)]));
  await session.query(moveLeftovers(app, types));
  return countChanges(rows, wanted.length);
}

function moveLeftovers(app: string, types: readonly BundleType[]): Query {
  return sql(
    `UPDATE precast.fields SET position = place.position
     FROM (
       SELECT field.content_type_id, field.name,
         jsonb_array_length(wanted.fields) - 1
           + row_number() OVER (PARTITION BY field.content_type_id ORDER BY field.position, field.name) AS position
       FROM jsonb_to_recordset($2::jsonb) AS wanted (slug text, fields jsonb)
       JOIN precast.content_types AS kind ON kind.app_id = $1::integer AND kind.slug = wanted.slug
       JOIN precast.fields AS field ON field.content_type_id = kind.id
       WHERE NOT wanted.fields ? field.name) AS place
     WHERE (fields.content_type_id, fields.name) = (place.content_type_id, place.name)
       AND fields.position <> place.position`,
    [app, fieldNames(types)],
  );
}

/** Finds clashes between the fields of the bundle and those that it lacks and the database keeps. */
export function findClashes(session: Session, app: string): Promise<Clash[]> {
  return readRows(
    session,
    `SELECT kind.slug, field.name AS field, media.name AS media
     FROM precast.content_types AS kind
     JOIN precast.fields AS media ON media.content_type_id = kind.id AND media.type = 'media'
     JOIN precast.fields AS field ON field.content_type_id = kind.id AND field.name = media.name || '_url'
     WHERE kind.app_id = $1::integer
     ORDER BY kind.slug, field.position`,
    [app],
  );
}

export function findMissingTargets(session: Session, app: string): Promise<MissingTarget[]> {
  return readRows(
    session,
    `SELECT kind.slug AS type, field.name AS field, field.target
     FROM precast.content_types AS kind
     JOIN precast.fields AS field ON field.content_type_id = kind.id AND field.type = 'relation'
     WHERE kind.app_id = $1::integer
       AND NOT EXISTS (
         SELECT FROM precast.content_types AS target WHERE target.app_id = kind.app_id AND target.slug = field.target)
     ORDER BY kind.slug, field.position`,
    [app],
  );
}

/** The slugs of types and the names of their fields, as JSON that SQL reads. */
function fieldNames(types: readonly BundleType[]): string {
  return JSON.stringify(types.map(({ slug, fields }) => ({ slug, fields: fields.map(({ name }) => name) })));
}

// Writes entries, a batch at a time.

const COLUMNS = ["status", "data", "rich", "published_at", "created_at", "updated_at"];
/** The entry of the bundle, with the values that the stored one has in the fields $6, which the bundle lacks. */
const MERGED = COLUMNS.map((column) => {
  if (column !== "data" && column !== "rich") return excluded(column);
  const kept = `SELECT jsonb_object_agg(key, value) FROM jsonb_each(entries.${column}) WHERE key = ANY ($6::text[])`;
  return `coalesce((${kept}), '{}') || excluded.${column}`;
}).join(", ");

/**
 * The database reads id, status and data from the line of the bundle (see `Entry.text`). Each column arrives as lines of
 * one text: PostgreSQL takes it apart in a tenth of the time that it needs for an array, whose elements are escaped.
 */
const BATCH = `unnest(string_to_array($2, E'\\n')::jsonb[], string_to_array($3, E'\\n'), string_to_array($4, E'\\n'),
      string_to_array($5, E'\\n'))`;
const STAMPS = `nullif(batch.published_at, '')::timestamptz(3), batch.created_at::timestamptz(3), batch.updated_at::timestamptz(3)`;
const INSERT = `
    INSERT INTO precast.entries (content_type_id, id, ${COLUMNS.join(", ")})
    SELECT $1::integer, (line ->> 'id')::uuid, line ->> 'status', line -> 'data', '{}', ${STAMPS}
    FROM ${BATCH} AS batch (line, published_at, created_at, updated_at)`;

/**
 * The places of the lines that are not stored just as they are. An upsert would find out as well, but its triggers run
 * and its locks are written for each row, which costs several times as much. Values that are stored in another spelling
 * are left to it. Looks up one entry at a time, as the upsert does.
 */
const FIND_DIFFERENT = `
  SELECT place::text FROM (
    SELECT place, (
      SELECT (stored.status, stored.rich || stored.data, stored.published_at, stored.created_at, stored.updated_at)
        IS NOT DISTINCT FROM (line ->> 'status', line -> 'data', ${STAMPS})
      FROM precast.entries AS stored
      WHERE (stored.content_type_id, stored.id) = ($1::integer, (line ->> 'id')::uuid)) AS is_same
    FROM ${BATCH} WITH ORDINALITY AS batch (line, published_at, created_at, updated_at, place)) AS compared
  WHERE is_same IS NOT TRUE`;

/** For a type without entries: leaves out the check for conflicts, which takes a twentieth of the time. */
const INSERT_NEW = `
  WITH written AS (${INSERT}
    RETURNING 1)
  SELECT count(*)::text, '0' FROM written`;

/**
 * `row` is what an entry becomes that is there already. On a conflict, the table's triggers have already brought
 * `excluded` into the form of the stored row (canonical values, rich text moved to `rich`), so that equal entries
 * compare as equal. The last SELECT sees the table as it was before the statement. Its subquery looks up one entry at a
 * time: as long as the database does not know the size of the table, a join would read the whole table for each batch.
 */
const upsertStatement = (row: string) => `
  WITH written AS (${INSERT}
    ON CONFLICT (content_type_id, id) DO ${updateStatement("entries", COLUMNS, row)}
    RETURNING content_type_id, id)
  SELECT count(*) FILTER (WHERE old_id IS NULL)::text, count(old_id)::text
  FROM (SELECT (
    SELECT old.id FROM precast.entries AS old WHERE (old.content_type_id, old.id) = (written.content_type_id, written.id)
  ) AS old_id FROM written) AS looked_up`;
const UPSERT = upsertStatement(COLUMNS.map(excluded).join(", "));
const UPSERT_KEEPING = upsertStatement(MERGED);

/** Inserts entries. Each replaces the stored entry with its id, but for the values of fields that the bundle lacks. */
export async function writeEntries(session: Session, type: TypeRow, entries: readonly Entry[]): Promise<Changes> {
  const keeps = type.leftovers.length > 0;
  const differing = type.isNew || keeps ? entries : await findDiffering(session, type, entries);
  if (differing.length === 0) return { ...NO_CHANGES, unchanged: entries.length };
  const statement = type.isNew ? INSERT_NEW : keeps ? UPSERT_KEEPING : UPSERT;
  const values = [...batchValues(type, differing), ...(keeps ? [type.leftovers] : [])];
  return countChanges(await session.query(sql(statement, values)), entries.length);
}

async function findDiffering(session: Session, type: TypeRow, entries: readonly Entry[]): Promise<readonly Entry[]> {
  const rows = await session.query(sql(FIND_DIFFERENT, batchValues(type, entries)));
  return rows.map(([place]) => entries[Number(place) - 1] as Entry);
}

function batchValues(type: TypeRow, entries: readonly Entry[]): Value[] {
  const column = (of: (entry: Entry) => string) => entries.map(of).join("\n");
  return [
    type.id,
    column((entry) => entry.text),
    column((entry) => entry.published_at ?? ""),
    column((entry) => entry.created_at),
    column((entry) => entry.updated_at),
  ];
}

// Deletes what an app has and the bundle lacks, as `--prune` asks for.

export type Pruned = { readonly types: Changes; readonly fields: Changes; readonly entries: Changes };

/**
 * Deletes the app's fields and types that the bundle lacks, and the entries of those types. Deletes the entries first,
 * because a trigger rewrites the entries of a type that loses a field.
 */
export async function pruneDefinitions(session: Session, app: string, types: readonly BundleType[]): Promise<Pruned> {
  const remove = async (table: string, condition: string) => {
    const rows = await session.query(
      sql(
        `WITH wanted AS (SELECT * FROM jsonb_to_recordset($2::jsonb) AS wanted (slug text, fields jsonb)),
         kind AS (
           SELECT content_types.id, wanted.slug IS NULL AS is_gone, wanted.fields
           FROM precast.content_types LEFT JOIN wanted USING (slug) WHERE app_id = $1::integer),
         deleted AS (DELETE FROM precast.${table} AS gone USING kind WHERE ${condition} RETURNING 1)
         SELECT count(*)::text FROM deleted`,
        [app, fieldNames(types)],
      ),
    );
    return deletions(Number(rows[0]?.[0]));
  };
  return {
    entries: await remove("entries", "gone.content_type_id = kind.id AND kind.is_gone"),
    fields: await remove("fields", "gone.content_type_id = kind.id AND (kind.is_gone OR NOT kind.fields ? gone.name)"),
    types: await remove("content_types", "gone.id = kind.id AND kind.is_gone"),
  };
}

const DELETE = `
  WITH deleted AS (
    DELETE FROM precast.entries WHERE content_type_id = $1::integer AND id = ANY ($2::text[]::uuid[]) RETURNING 1)
  SELECT count(*)::text FROM deleted`;

/** Deletes the entries of a type whose ids are not in `seen`. */
export async function pruneEntries(
  session: Session,
  { id: type }: TypeRow,
  seen: ReadonlyMap<string, number>,
): Promise<Changes> {
  let deleted = 0;
  const all = sql("SELECT id::text FROM precast.entries WHERE content_type_id = $1::integer", [type]);
  for await (const rows of readBatches(session, all)) {
    const stale = rows.map(([id]) => id as string).filter((id) => !seen.has(id));
    if (stale.length === 0) continue;
    const [row] = await session.query(sql(DELETE, [type, stale]));
    deleted += Number(row?.[0]);
  }
  return deletions(deleted);
}
