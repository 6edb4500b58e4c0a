/**
 * Generates edits as a CMS makes them, in plain SQL. An edit names what it changes by numbers and looks up in the
 * database what they stand for: so any edit fits any content, and fast-check can shrink a history of edits.
 */
import { createHash } from "node:crypto";
import fc from "fast-check";
import type { FieldType } from "../../shared/api/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";

export type KnownField = { readonly name: string; readonly type: FieldType; readonly multiple: boolean };
export type KnownType = {
  readonly id: number;
  readonly slug: string;
  readonly filterable: readonly string[];
  readonly sortable: readonly string[];
  readonly fields: readonly KnownField[];
  readonly entries: readonly string[];
};
export type KnownApp = {
  readonly id: number;
  readonly key: string;
  readonly media: string | null;
  readonly types: readonly KnownType[];
};

/** `write` returns the SQL for this content; an empty string when there is nothing to change. */
export type Edit = { readonly write: (apps: readonly KnownApp[]) => string; readonly toString: () => string };

/** The content that a session sees, including its own uncommitted changes. */
export async function readKnown(session: Session): Promise<KnownApp[]> {
  const rows = await session.query(
    sql(`SELECT coalesce(json_agg(json_build_object('id', app.id, 'key', app.key, 'media', app.media_base_url, 'types', (
  SELECT coalesce(json_agg(json_build_object('id', type.id, 'slug', type.slug,
    'filterable', type.filterable_fields, 'sortable', type.sortable_fields,
    'fields', (SELECT coalesce(json_agg(json_build_object('name', field.name, 'type', field.type, 'multiple', field.multiple)
      ORDER BY field.position, field.name), '[]') FROM precast.fields AS field WHERE field.content_type_id = type.id),
    'entries', (SELECT coalesce(json_agg(e.id ORDER BY e.id), '[]') FROM precast.entries AS e WHERE e.content_type_id = type.id)
  ) ORDER BY type.id), '[]') FROM precast.content_types AS type WHERE type.app_id = app.id)) ORDER BY app.id), '[]')::text
FROM precast.apps AS app`),
  );
  return JSON.parse(rows[0]?.[0] as string) as KnownApp[];
}

// ---- Short pools of values, so that they tie, disappear and come back

const LONG = "long ".repeat(14);
/** The values whose file names are hashes, by hash. */
export const LONG_VALUES = new Map([LONG].map((text) => [createHash("sha256").update(text).digest("hex"), text]));

/** Values as JSON text, so that numbers keep digits that a double cannot hold. */
const TEXTS = ["a", "A", "ä", "", "b c", "a/b?c=d&e#f", "%2F+%", " ", "null", "1", "😀", `"<\\>'`, LONG].map((text) =>
  JSON.stringify(text),
);
const KEYS = ["a", "B", "c", "D-1"];
const SLUGS = ["posts", "pages", "page", "entry", "0", "a-b_c"];
export const IDS = Array.from({ length: 10 }, (_, index) => uuid(`pool ${index}`));
const INSTANTS = [
  "2026-01-20T15:30:00Z",
  "2026-01-20T15:30:00.001Z",
  "2026-01-20T21:15:00+05:45",
  "2025-12-31T23:59:59.999Z",
  "2026-01-21T00:00:00Z",
];
const POOLS: Readonly<Record<FieldType, readonly string[]>> = {
  text: TEXTS,
  select: ['"News"', '"news"', '"x,y"', '""'],
  media: ['"c 1.png"', '"ü/1.png"', '"a"'],
  rich_text: ['"<p>a</p>"', '"<p>b</p>"', '""'],
  relation: [IDS[0], IDS[1], IDS[1]?.toUpperCase(), uuid("nobody")].map((id) => JSON.stringify(id)),
  number: ["0", "1", "1.0", "2.5", "-7", "0.1", "0.10000000000000000555", "1e21", "12345678901234567890123", "1e-330"],
  boolean: ["true", "false"],
  date: ['"2026-01-20"', '"2026-01-21"', '"1969-12-31"'],
  datetime: INSTANTS.map((instant) => JSON.stringify(instant)),
  json: ["{}", '{"b":1,"a":[2]}', '"x"', "[]", "1"],
};
/** Values of a `multiple` field, as indexes into its pool. */
const ARRAYS = [[], [0], [1], [0, 1], [1, 0], [0, 0], [2, 0, 1]];

const FIELDS: readonly KnownField[] = [
  { name: "title", type: "text", multiple: false },
  { name: "aliases", type: "text", multiple: true },
  { name: "body", type: "rich_text", multiple: false },
  { name: "category", type: "select", multiple: false },
  { name: "tags", type: "select", multiple: true },
  { name: "cover", type: "media", multiple: false },
  { name: "author_id", type: "relation", multiple: false },
  { name: "related", type: "relation", multiple: true },
  { name: "constructor", type: "number", multiple: false },
  { name: "page", type: "boolean", multiple: false },
  { name: "day", type: "date", multiple: false },
  { name: "starts_at", type: "datetime", multiple: false },
  { name: "extra", type: "json", multiple: false },
];
const TIMESTAMPS = ["published_at", "created_at", "updated_at"];

const canFilter = ({ type }: KnownField) => type !== "rich_text" && type !== "json";
const canSort = (field: KnownField) => canFilter(field) && field.type !== "relation" && !field.multiple;

function uuid(name: string): string {
  const hex = createHash("md5").update(name).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function at<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T;
}

/** A value as JSON text; null to leave the key out. */
function valueText({ type, multiple }: KnownField, index: number): string | null {
  const pool = POOLS[type];
  if (index % 7 === 6) return index % 2 === 0 ? null : "null";
  if (!multiple) return at(pool, index);
  return `[${at(ARRAYS, index)
    .map((one) => at(pool, one + Math.floor(index / 7)))
    .join(",")}]`;
}

function dataText(fields: readonly KnownField[], seed: number): string {
  const pairs = fields.map(({ name }, index) => [name, valueText(at(fields, index), mix(seed, index))] as const);
  return `{${pairs
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${JSON.stringify(name)}:${value}`)
    .join(",")}}`;
}

/** A deterministic hash of two numbers. */
function mix(seed: number, index: number): number {
  return Math.abs(Math.imul(seed * 31 + index + 1, 0x9e3779b1) >>> 9);
}

// ---- SQL

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function arrayOf(names: readonly string[]): string {
  return `ARRAY[${names.map(quoted).join(",")}]::text[]`;
}

type TypePlan = {
  readonly slug: string;
  readonly published: boolean;
  readonly perPage: number | null;
  readonly defaultSort: string | null;
  readonly fields: readonly KnownField[];
  readonly filterable: readonly string[];
  readonly sortable: readonly string[];
};

function typeSql(appKey: string, plan: TypePlan): string {
  const fields = plan.fields.map(({ name, type, multiple }, index) => {
    const target = type === "relation" ? quoted(at(SLUGS, 0)) : "NULL";
    return `(${quoted(name)}, ${index}, ${quoted(type)}, ${quoted(name)}, ${multiple}, ${target}::text)`;
  });
  return `WITH type AS (
  INSERT INTO precast.content_types (app_id, slug, published, per_page, default_sort, filterable_fields, sortable_fields)
  SELECT id, ${quoted(plan.slug)}, ${plan.published}, ${plan.perPage ?? "NULL"},
    ${plan.defaultSort === null ? "NULL" : quoted(plan.defaultSort)}, ${arrayOf(plan.filterable)}, ${arrayOf(plan.sortable)}
  FROM precast.apps WHERE key = ${quoted(appKey)} RETURNING id)
INSERT INTO precast.fields (content_type_id, name, position, type, label, multiple, target)
SELECT type.id, field.* FROM type, (VALUES ${fields.join(", ")}) AS field;\n`;
}

type EntryPlan = { readonly id: string; readonly seed: number };

/** Inserts entries, or overwrites those that exist. `type` is an SQL expression for the id of the type. */
function entriesSql(type: string, fields: readonly KnownField[], entries: readonly EntryPlan[]): string {
  if (entries.length === 0) return "";
  const rows = entries.map(({ id, seed }) => {
    const instants = [2, 3, 5].map((step) => quoted(at(INSTANTS, mix(seed, step))));
    const status = seed % 8 === 7 ? "draft" : "published";
    return `(${quoted(id)}::uuid, '${status}', ${quoted(dataText(fields, seed))}::jsonb, ${instants
      .map((instant) => `${instant}::timestamptz`)
      .join(", ")})`;
  });
  return `INSERT INTO precast.entries (content_type_id, id, status, data, published_at, created_at, updated_at)
SELECT (${type}), entry.* FROM (VALUES ${rows.join(", ")}) AS entry
ON CONFLICT (content_type_id, id) DO UPDATE SET status = excluded.status, data = excluded.data,
  published_at = excluded.published_at, updated_at = excluded.updated_at;\n`;
}

function typeNumber(appKey: string, slug: string): string {
  return `SELECT type.id FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
WHERE app.key = ${quoted(appKey)} AND type.slug = ${quoted(slug)}`;
}

const DEFINITION =
  "name, description, icon, position, published, default_sort, per_page, summary_fields, filterable_fields, sortable_fields";
const FIELD = "name, position, type, label, required, searchable, multiple, target";
const ENTRY = "id, status, data, rich, published_at, created_at, updated_at";

/** Copies a type, deletes the original and gives the copy its slug: the same definition under another id. */
function remakeType(type: KnownType, withEntries: boolean): string {
  const copy = "(SELECT id FROM precast.content_types WHERE slug = 'copying')";
  const entries = `INSERT INTO precast.entries (content_type_id, ${ENTRY})
SELECT ${copy}, ${ENTRY} FROM precast.entries WHERE content_type_id = ${type.id};`;
  return `INSERT INTO precast.content_types (app_id, slug, ${DEFINITION})
SELECT app_id, 'copying', ${DEFINITION} FROM precast.content_types WHERE id = ${type.id};
INSERT INTO precast.fields (content_type_id, ${FIELD})
SELECT ${copy}, ${FIELD} FROM precast.fields WHERE content_type_id = ${type.id};
${withEntries ? entries : ""}
DELETE FROM precast.content_types WHERE id = ${type.id};
UPDATE precast.content_types SET slug = ${quoted(type.slug)} WHERE slug = 'copying';`;
}

function remakeApp(app: KnownApp, withEntries: boolean): string {
  const pair = `precast.content_types AS old JOIN precast.content_types AS new ON new.slug = old.slug
  AND new.app_id = (SELECT id FROM precast.apps WHERE key = 'copying') WHERE old.app_id = ${app.id}`;
  const numbered = `(SELECT old.id AS old_id, new.id AS new_id FROM ${pair}) AS pair`;
  const entries = `INSERT INTO precast.entries (content_type_id, ${ENTRY})
SELECT pair.new_id, ${ENTRY} FROM precast.entries JOIN ${numbered} ON pair.old_id = content_type_id;`;
  return `INSERT INTO precast.apps (key, name, media_base_url)
SELECT 'copying', name, media_base_url FROM precast.apps WHERE id = ${app.id};
INSERT INTO precast.content_types (app_id, slug, ${DEFINITION})
SELECT (SELECT id FROM precast.apps WHERE key = 'copying'), slug, ${DEFINITION}
FROM precast.content_types WHERE app_id = ${app.id};
INSERT INTO precast.fields (content_type_id, ${FIELD})
SELECT pair.new_id, ${FIELD} FROM precast.fields JOIN ${numbered} ON pair.old_id = content_type_id;
${withEntries ? entries : ""}
DELETE FROM precast.apps WHERE id = ${app.id};
UPDATE precast.apps SET key = ${quoted(app.key)} WHERE key = 'copying';`;
}

/** Swaps the names of two rows by way of a third name, because names are unique at every moment. */
function swap(table: string, column: string, one: { id: number; name: string }, other: { id: number; name: string }) {
  const rename = (id: number, name: string) =>
    `UPDATE precast.${table} SET ${column} = ${quoted(name)} WHERE id = ${id};\n`;
  return rename(one.id, "swapping") + rename(other.id, one.name) + rename(one.id, other.name);
}

function setLists(type: KnownType, filterable: readonly string[], sortable: readonly string[]): string {
  return `UPDATE precast.content_types SET filterable_fields = ${arrayOf(filterable)}, sortable_fields = ${arrayOf(sortable)}
WHERE id = ${type.id};\n`;
}

/** Removes a field from every list that names it, so that it may be deleted or change its type. */
function releaseField(type: KnownType, name: string): string {
  const others = (names: readonly string[]) => names.filter((one) => one !== name);
  return `${setLists(type, others(type.filterable), others(type.sortable))}UPDATE precast.content_types SET
  summary_fields = array_remove(summary_fields, ${quoted(name)}),
  default_sort = CASE WHEN ltrim(default_sort, '-') = ${quoted(name)} THEN NULL ELSE default_sort END
WHERE id = ${type.id};\n`;
}

function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
}

// ---- The edits

/** Numbers that choose the type, entry, field and value of an edit. */
type Choice = { readonly type: number; readonly entry: number; readonly field: number; readonly value: number };
type InType = { readonly app: KnownApp; readonly type: KnownType; readonly apps: readonly KnownApp[] };
type InEntry = InType & { readonly where: string };

const small = fc.nat({ max: 30 });
const choices = fc.record({ type: small, entry: small, field: small, value: fc.nat({ max: 97 }) });

function edit(name: string, write: (apps: readonly KnownApp[], choice: Choice) => string): fc.Arbitrary<Edit> {
  return choices.map((choice) => ({
    write: (apps) => write(apps, choice),
    toString: () => `${name} (${Object.values(choice).join(", ")})`,
  }));
}

function inType(name: string, write: (known: InType, choice: Choice) => string): fc.Arbitrary<Edit> {
  return edit(name, (apps, choice) => {
    const all = apps.flatMap((app) => app.types.map((type) => ({ app, type, apps })));
    return all.length === 0 ? "" : write(at(all, choice.type), choice);
  });
}

function inEntry(name: string, write: (known: InEntry, choice: Choice) => string): fc.Arbitrary<Edit> {
  return inType(name, (known, choice) => {
    const { id, entries } = known.type;
    if (entries.length === 0) return "";
    return write({ ...known, where: `content_type_id = ${id} AND id = ${quoted(at(entries, choice.entry))}` }, choice);
  });
}

function inField(name: string, write: (known: InType & { field: KnownField }, choice: Choice) => string) {
  return inType(name, (known, choice) => {
    const { fields } = known.type;
    return fields.length === 0 ? "" : write({ ...known, field: at(fields, choice.field) }, choice);
  });
}

function inApp(name: string, write: (app: KnownApp, choice: Choice, apps: readonly KnownApp[]) => string) {
  return edit(name, (apps, choice) => (apps.length === 0 ? "" : write(at(apps, choice.type), choice, apps)));
}

const setEntry = (name: string, set: (choice: Choice, known: InEntry) => string) =>
  inEntry(name, (known, choice) => `UPDATE precast.entries SET ${set(choice, known)} WHERE ${known.where};\n`);

const instant = (choice: Choice) => quoted(at(INSTANTS, choice.value));

const ENTRY_EDITS: readonly fc.Arbitrary<Edit>[] = [
  inType("write an entry", ({ type }, { entry, value }) =>
    entriesSql(String(type.id), type.fields, [{ id: at(IDS, entry), seed: value }]),
  ),
  setEntry("unpublish", () => "status = 'draft'"),
  setEntry("publish", (choice) => `status = 'published', published_at = coalesce(published_at, ${instant(choice)})`),
  setEntry("edit a field", ({ field, value }, { type }) => {
    const one = type.fields.length === 0 ? undefined : at(type.fields, field);
    const text = one === undefined ? null : valueText(one, value);
    if (one === undefined) return "data = data";
    return text === null ? `data = data - ${quoted(one.name)}` : `data = data || ${quoted(`{"${one.name}":${text}}`)}`;
  }),
  setEntry("edit all fields", ({ value }, { type }) => `data = ${quoted(dataText(type.fields, value))}, rich = '{}'`),
  setEntry("edit what no field holds", ({ value }) => `data = data || '{"stranger": ${value}}'`),
  setEntry("move in published_at", (choice) => `published_at = ${instant(choice)}`),
  setEntry("move in updated_at", (choice) => `updated_at = ${instant(choice)}`),
  setEntry("move in created_at", (choice) => `created_at = ${instant(choice)}`),
  setEntry("touch", () => "data = data"),
  setEntry("give another id", ({ value }) => `id = ${quoted(at(IDS, value))}`),
  inEntry("delete", ({ where }) => `DELETE FROM precast.entries WHERE ${where};\n`),
  inEntry("delete and write again", ({ type, where }, { entry, value }) => {
    const again = entriesSql(String(type.id), type.fields, [{ id: at(type.entries, entry), seed: value }]);
    return `DELETE FROM precast.entries WHERE ${where};\n${again}`;
  }),
  inEntry("edit and edit back", ({ where }) => {
    const set = (status: string) => `UPDATE precast.entries SET status = ${status} WHERE ${where};\n`;
    return set("CASE status WHEN 'draft' THEN 'draft' ELSE 'draft' END") + set("'draft'");
  }),
  inEntry("move to another type", ({ apps, where }, { value }) => {
    const types = apps.flatMap((app) => app.types);
    return `UPDATE precast.entries SET content_type_id = ${at(types, value).id} WHERE ${where};\n`;
  }),
];

const BULK_EDITS: readonly fc.Arbitrary<Edit>[] = [
  inType("write 30 entries", ({ type }, { value }) => {
    const entries = Array.from({ length: 30 }, (_, index) => ({ id: uuid(`many ${index}`), seed: value + index }));
    return entriesSql(String(type.id), type.fields, entries);
  }),
  inType(
    "touch all entries",
    ({ type }) => `UPDATE precast.entries SET data = data WHERE content_type_id = ${type.id};\n`,
  ),
  inType("publish all", ({ type }, choice) => {
    const set = `status = 'published', published_at = coalesce(published_at, ${instant(choice)})`;
    return `UPDATE precast.entries SET ${set} WHERE content_type_id = ${type.id};\n`;
  }),
  inType("unpublish half", ({ type }, { value }) => {
    const half = type.entries.filter((_, index) => (index + value) % 2 === 0);
    return `UPDATE precast.entries SET status = 'draft' WHERE content_type_id = ${type.id} AND id = ANY (${arrayOf(half)}::uuid[]);\n`;
  }),
  inType("delete all entries", ({ type }) => `DELETE FROM precast.entries WHERE content_type_id = ${type.id};\n`),
  inType("move all entries to another type", ({ type, apps }, { value }) => {
    const other = at(
      apps.flatMap((app) => app.types),
      value,
    );
    return `UPDATE precast.entries SET content_type_id = ${other.id} WHERE content_type_id = ${type.id};\n`;
  }),
  inType("shift all in published_at", ({ type }) => {
    return `UPDATE precast.entries SET published_at = published_at - interval '1 ms' WHERE content_type_id = ${type.id};\n`;
  }),
];

const set = (assignment: (choice: Choice, known: InType) => string) => (known: InType, choice: Choice) =>
  `UPDATE precast.content_types SET ${assignment(choice, known)} WHERE id = ${known.type.id};\n`;

const TYPE_EDITS: readonly fc.Arbitrary<Edit>[] = [
  inType(
    "set per_page",
    set(({ value }) => `per_page = ${["NULL", "1", "2", "3", "4"][value % 5]}`),
  ),
  inType(
    "set default_sort",
    set(({ value, field }, { type }) => {
      const names = [...type.fields.filter(canSort).map(({ name }) => name), ...TIMESTAMPS];
      return `default_sort = ${value % 6 === 5 ? "NULL" : quoted((value % 2 === 0 ? "-" : "") + at(names, field))}`;
    }),
  ),
  inType(
    "set the type's name",
    set(({ value }) => `name = 'Name ${value % 3}', icon = 'i', description = 'd'`),
  ),
  inType(
    "set the type's position",
    set(({ value }) => `position = ${["NULL", "1", "2"][value % 3]}`),
  ),
  inType(
    "set summary_fields",
    set(({ field }, { type }) => {
      const names = type.fields.map(({ name }) => name);
      return `summary_fields = ${names.length === 0 ? "NULL" : arrayOf([at(names, field)])}`;
    }),
  ),
  inType(
    "unpublish or publish the type",
    set(() => "published = NOT published"),
  ),
  inType(
    "rename the type",
    set(({ value }) => `slug = ${quoted(at(SLUGS, value))}`),
  ),
  inType("give the type to another app", ({ type, apps }, { value }) => {
    return `UPDATE precast.content_types SET app_id = ${at(apps, value).id} WHERE id = ${type.id};\n`;
  }),
  inType("swap two types", ({ app, type }, { value }) => {
    const other = at(app.types, value);
    if (other.id === type.id) return "";
    return swap("content_types", "slug", { id: type.id, name: type.slug }, { id: other.id, name: other.slug });
  }),
  inType("delete the type", ({ type }) => `DELETE FROM precast.content_types WHERE id = ${type.id};\n`),
  inType("make the type again", ({ type }, { value }) => remakeType(type, value % 3 > 0)),
  inType("add a type", ({ app }, { value, field, entry }) => {
    const slug = at(SLUGS, value);
    if (app.types.some((type) => type.slug === slug)) return "";
    const plan = typePlan(slug, {
      fields: field * 37 + value,
      filters: 8191,
      sorts: 3,
      perPage: 2,
      sort: 5,
      published: true,
    });
    const entries = IDS.slice(0, entry % 5).map((id, index) => ({ id, seed: value + index }));
    return typeSql(app.key, plan) + entriesSql(typeNumber(app.key, slug), plan.fields, entries);
  }),
];

const FIELD_EDITS: readonly fc.Arbitrary<Edit>[] = [
  inType("toggle filterable", ({ type }, { field }) => {
    const names = [...type.fields.filter(canFilter).map(({ name }) => name), ...TIMESTAMPS];
    return setLists(type, toggled(type.filterable, at(names, field)), type.sortable);
  }),
  inType("toggle sortable", ({ type }, { field }) => {
    const names = [...type.fields.filter(canSort).map(({ name }) => name), ...TIMESTAMPS];
    return setLists(type, type.filterable, toggled(type.sortable, at(names, field)));
  }),
  inField("remove a field", ({ type, field }) => {
    const gone = `DELETE FROM precast.fields WHERE content_type_id = ${type.id} AND name = ${quoted(field.name)};\n`;
    return releaseField(type, field.name) + gone;
  }),
  inType("add a field", ({ type }, { field, value }) => {
    const missing = FIELDS.filter(({ name }) => !type.fields.some((one) => one.name === name));
    if (missing.length === 0) return "";
    const { name, type: kind, multiple } = at(missing, field);
    const target = kind === "relation" ? "'posts'" : "NULL";
    return `INSERT INTO precast.fields (content_type_id, name, position, type, multiple, target)
VALUES (${type.id}, ${quoted(name)}, ${value % 15}, '${kind}', ${multiple}, ${target});\n`;
  }),
  inField("rename a field", ({ type, field }, { value }) => {
    const renamed = `renamed_${value % 3}`;
    const data = `UPDATE precast.entries SET data = data - ${quoted(field.name)} || jsonb_build_object('${renamed}', data -> ${quoted(field.name)})
WHERE content_type_id = ${type.id} AND data ? ${quoted(field.name)};\n`;
    return `${releaseField(type, field.name)}UPDATE precast.fields SET name = '${renamed}'
WHERE content_type_id = ${type.id} AND name = ${quoted(field.name)};\n${value % 2 === 0 ? data : ""}`;
  }),
  inField("change a field's type", ({ type, field }, { value }) => {
    const kinds: readonly FieldType[] = [
      "text",
      "select",
      "number",
      "boolean",
      "date",
      "datetime",
      "json",
      "rich_text",
    ];
    const kind = at(kinds, value);
    return `${releaseField(type, field.name)}UPDATE precast.fields SET type = '${kind}', searchable = false, target = NULL,
  multiple = ${value % 5 === 0 && (kind === "text" || kind === "select")}
WHERE content_type_id = ${type.id} AND name = ${quoted(field.name)};\n`;
  }),
  inField("change a filterable field's type in place", ({ type, field }, { value }) => {
    if (!canFilter(field)) return "";
    const kind = field.multiple ? at(["text", "select"], value) : at(["text", "select", "date"], value);
    return `UPDATE precast.fields SET type = '${kind}', target = NULL WHERE content_type_id = ${type.id} AND name = ${quoted(field.name)};\n`;
  }),
  inField("change a field's label", ({ type, field }, { value }) => {
    return `UPDATE precast.fields SET label = 'Label ${value % 3}' WHERE content_type_id = ${type.id} AND name = ${quoted(field.name)};\n`;
  }),
  inField("change a field's position", ({ type, field }, { value }) => {
    return `UPDATE precast.fields SET position = ${value % 15} WHERE content_type_id = ${type.id} AND name = ${quoted(field.name)};\n`;
  }),
];

const APP_EDITS: readonly fc.Arbitrary<Edit>[] = [
  inApp("delete the app", ({ id }) => `DELETE FROM precast.apps WHERE id = ${id};\n`),
  inApp("make the app again", (app, { value }) => remakeApp(app, value % 3 > 0)),
  inApp("rename the app's key", ({ id }, { value }) => {
    return `UPDATE precast.apps SET key = ${quoted(at(KEYS, value))} WHERE id = ${id};\n`;
  }),
  inApp("swap two apps", (app, { value }, apps) => {
    const other = at(apps, value);
    if (other.id === app.id) return "";
    return swap("apps", "key", { id: app.id, name: app.key }, { id: other.id, name: other.key });
  }),
  inApp("set media_base_url", ({ id }, { value }) => {
    const address = ["NULL", "'https://m.test'", "'https://m.test/x/'"][value % 3];
    return `UPDATE precast.apps SET media_base_url = ${address} WHERE id = ${id};\n`;
  }),
  inApp(
    "set the app's name",
    ({ id }, { value }) => `UPDATE precast.apps SET name = 'App ${value % 3}' WHERE id = ${id};\n`,
  ),
];

const truncate = edit("truncate", () => "TRUNCATE precast.entries;\n");
const nothing = edit("nothing", () => "");

const unlocked = fc.oneof(
  { weight: 20, arbitrary: fc.oneof(...ENTRY_EDITS) },
  { weight: 3, arbitrary: fc.oneof(...BULK_EDITS) },
  { weight: 4, arbitrary: fc.oneof(...TYPE_EDITS) },
  { weight: 3, arbitrary: fc.oneof(...FIELD_EDITS) },
  { weight: 2, arbitrary: fc.oneof(...APP_EDITS) },
);

/** Edits that a transaction may hold open while others read; `TRUNCATE` would make every reader wait. */
export function arbitraryEdit(): fc.Arbitrary<Edit> {
  return unlocked;
}

export function arbitraryEditOrTruncate(): fc.Arbitrary<Edit> {
  return fc.oneof(
    { weight: 20, arbitrary: unlocked },
    { weight: 1, arbitrary: truncate },
    { weight: 1, arbitrary: nothing },
  );
}

// ---- The initial content

type TypeSeed = {
  readonly fields: number;
  readonly filters: number;
  readonly sorts: number;
  readonly perPage: number;
  readonly sort: number;
  readonly published: boolean;
};

/** The bits of `fields`, `filters` and `sorts` say which fields exist, can be filtered and can be sorted. */
function typePlan(slug: string, seed: TypeSeed): TypePlan {
  const chosen = <T>(list: readonly T[], bits: number) => list.filter((_, index) => (bits >> index) % 2 === 1);
  const fields = chosen(FIELDS, seed.fields);
  const sorts = [...fields.filter(canSort).map(({ name }) => name), ...TIMESTAMPS];
  const filters = [...fields.filter(canFilter).map(({ name }) => name), ...TIMESTAMPS];
  return {
    slug,
    published: seed.published,
    perPage: seed.perPage === 0 ? null : seed.perPage,
    defaultSort: seed.sort % 4 === 0 ? null : (seed.sort % 2 === 0 ? "-" : "") + at(sorts, seed.sort),
    fields: fields.length === 0 ? FIELDS.slice(0, 1) : fields,
    filterable: chosen(filters, seed.filters),
    sortable: chosen(sorts, seed.sorts),
  };
}

const bits = fc.nat({ max: 2 ** 13 - 1 });
const typeSeeds: fc.Arbitrary<TypeSeed> = fc.record({
  fields: bits,
  filters: bits,
  sorts: bits,
  perPage: fc.nat({ max: 4 }),
  sort: small,
  published: fc.nat({ max: 9 }).map((number) => number > 0),
});

export type Start = { readonly script: string; readonly toString: () => string };

/** One or two apps of one to three types; twins have the same definition and other entries. */
export function arbitraryStart(): fc.Arbitrary<Start> {
  const types = fc.array(
    fc.record({
      type: typeSeeds,
      entries: fc.array(fc.nat({ max: 97 }), { minLength: 3, maxLength: 10, size: "max" }),
    }),
    {
      minLength: 1,
      maxLength: 3,
    },
  );
  return fc
    .record({ types, apps: fc.integer({ min: 1, max: 2 }), twins: fc.boolean() })
    .map(({ types, apps, twins }) => {
      const keys = KEYS.slice(0, apps);
      const scripts = keys.map((key, number) => {
        const own = types.map(({ type, entries }, index) => {
          const plan = typePlan(at(SLUGS, index), twins ? (types[0]?.type ?? type) : type);
          const rows = entries.slice(0, IDS.length).map((seed, place) => ({ id: at(IDS, place), seed: seed + number }));
          return typeSql(key, plan) + entriesSql(typeNumber(key, plan.slug), plan.fields, rows);
        });
        return `INSERT INTO precast.apps (key) VALUES (${quoted(key)});\n${own.join("")}`;
      });
      return {
        script: scripts.join(""),
        toString: () => `${apps} apps${twins ? " of twins" : ""}: ${JSON.stringify(types)}`,
      };
    });
}
