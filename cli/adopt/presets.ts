/** What is known of the tables that Directus, Strapi 5 and Payload make on PostgreSQL. */
import type { Session } from "../../shared/database/database.ts";
import type { PresetName } from "../../shared/settings/common.ts";
import { readRows } from "../database.ts";
import type { ForeignKey, Table } from "./catalog.ts";
import type { Kind } from "./column.ts";
import { type LeftOut, type Link, type List, PLAIN, type Preset, withoutId } from "./preset.ts";

type KnownName = Exclude<PresetName, "none">;
type NamedPreset = Preset & { readonly name: KnownName | null };
type Read = (session: Session, tables: readonly Table[]) => Promise<Partial<Preset>>;

/** `mark` is a table that no other system has. */
const PRESETS: Readonly<Record<KnownName, { readonly mark: string; readonly read: Read }>> = {
  directus: { mark: "directus_collections", read: readDirectus },
  strapi: { mark: "strapi_core_store_settings", read: readStrapi },
  payload: { mark: "payload_migrations", read: readPayload },
};

/** The preset that is asked for, or the one whose tables there are. */
export async function readPreset(
  session: Session,
  tables: readonly Table[],
  asked: PresetName | null,
): Promise<NamedPreset> {
  const names = Object.keys(PRESETS) as KnownName[];
  const has = (name: KnownName) => tables.some((table) => table.name === PRESETS[name].mark);
  const name = asked === "none" ? null : (asked ?? names.find(has) ?? null);
  if (name === null) return { ...PLAIN, name };
  if (!has(name))
    throw new Error(`The database has no table ${PRESETS[name].mark}, so its tables are not those of ${name}.`);
  return { ...PLAIN, ...(await PRESETS[name].read(session, tables)), name };
}

const hasColumn = (table: Table, name: string) => table.columns.some((column) => column.name === name);
const findTable = (tables: readonly Table[], name: string) => tables.find((table) => table.name === name);

// Directus: collections are tables, what its interfaces mean stands in directus_fields.

type DirectusField = {
  readonly collection: string;
  readonly field: string;
  readonly interface: string | null;
  readonly special: string | null;
};

/** `write` is for a list in one text, which `special` calls csv. */
const SPLIT = (column: string) => `string_to_array(nullif(${column}, ''), ',')`;

async function readDirectus(session: Session, tables: readonly Table[]): Promise<Partial<Preset>> {
  const { sql = "directus_fields" } = findTable(tables, "directus_fields") ?? {};
  const fields = await readRows<DirectusField>(session, `SELECT collection, field, interface, special FROM ${sql}`);
  return {
    isSystem: (table) => PLAIN.isSystem(table) || table.name.startsWith("directus_"),
    writeFile: ({ name }, alias) => (name === "directus_files" ? `${alias}.filename_disk` : null),
    kindOf: (table, column) => {
      const found = fields.find(({ collection, field }) => collection === table.name && field === column.name);
      return found === undefined ? null : describeInterface(found);
    },
  };
}

function describeInterface({ interface: shown, special }: DirectusField): Kind | null {
  const csv = special?.includes("csv") ? { write: SPLIT } : {};
  if (shown === "input-rich-text-html") return { type: "rich_text", multiple: false };
  if (shown === "input-rich-text-md" || shown === "input-multiline") return { type: "text", multiple: false };
  if (shown === "select-dropdown" || shown === "select-radio")
    return special?.includes("cast-") ? null : { type: "select", multiple: false };
  if (["select-multiple-dropdown", "select-multiple-checkbox", "tags"].includes(shown ?? ""))
    return { type: "select", multiple: true, ...csv };
  return null;
}

// Payload: lists, arrays, blocks and relations to many lie in tables beside that of their collection.

const PAYLOAD_SYSTEM = /^(payload_|_.*_v($|_))|_sessions$/;

async function readPayload(session: Session, tables: readonly Table[]): Promise<Partial<Preset>> {
  const isFile = (table: Table) => ["filename", "mime_type", "filesize"].every((name) => hasColumn(table, name));
  const isUser = (table: Table) => hasColumn(table, "salt") && hasColumn(table, "hash");
  const isSystem = (table: Table) => PLAIN.isSystem(table) || PAYLOAD_SYSTEM.test(table.name) || isUser(table);
  const parts: (Link | List)[] = [];
  const leftOut: LeftOut[] = [];
  for (const table of tables) {
    const from = table.foreignKeys.find(({ columns }) => /^_?parent_id$/.test(columns.join()));
    const owner = tables.find(({ id }) => id === from?.table);
    if (from === undefined || owner === undefined || isSystem(table) || isSystem(owner)) continue;
    const found = await readPart(session, { owner: owner.id, table, from, condition: null }, owner);
    for (const one of found) {
      if ("why" in one) leftOut.push(one);
      else parts.push(one);
    }
  }
  const inner = new Set(leftOut.filter(({ column }) => column === null).map(({ table }) => table));
  return {
    isSystem: (table) => isSystem(table) || inner.has(table.id),
    writeFile: (table, alias) => (isFile(table) ? `${alias}.filename` : null),
    parts,
    leftOut,
  };
}

type Beside = Pick<List, "owner" | "table" | "from" | "condition">;

/** What a table beside that of a collection holds. */
async function readPart(session: Session, part: Beside, owner: Table): Promise<(Link | List | LeftOut)[]> {
  const { table } = part;
  const leave = (column: string | null, why: string): LeftOut => ({ table: table.id, column, why });
  if (hasColumn(owner, "_parent_id"))
    return [leave(null, `it is a part of ${owner.id}, which becomes JSON without it`)];
  if (hasColumn(table, "_locale")) return [leave(null, "fields of several languages are not carried")];
  const name = table.name.startsWith(`${owner.name}_`) ? table.name.slice(owner.name.length + 1) : table.name;
  const json: Kind = { type: "json", multiple: false };
  if (hasColumn(table, "value"))
    return [{ ...part, name, order: ["order"], value: "value", kind: { type: "select", multiple: true } }];
  if (hasColumn(table, "_order")) return [{ ...part, name, order: ["_order"], value: null, kind: json }];
  if (!hasColumn(table, "path")) return [];
  const value = ["text", "number"].find((column) => hasColumn(table, column));
  const targets = table.foreignKeys.filter((key) => key !== part.from);
  return (await readPaths(session, table, targets)).map(({ path, to: [to, ...others] }) => {
    const at = { ...part, name: path, condition: `j.path = ${literal(path)}`, order: ["order", "id"] };
    if (path.includes(".")) return leave(path, "it stands in an array or a block, which becomes JSON without it");
    if (value !== undefined) return { ...at, value, kind: value === "text" ? { type: "text", multiple: true } : json };
    if (to === undefined || others.length > 0) return leave(path, "its entries are of several types");
    return { ...at, to, multiple: true };
  });
}

type Path = { readonly path: string; readonly to: readonly ForeignKey[] };

/** The fields whose values the rows are, and where these lead. */
async function readPaths(session: Session, { sql }: Table, targets: readonly ForeignKey[]): Promise<Path[]> {
  const counts = targets.map(({ columns }) => `count("${columns.join()}") > 0`).join(", ");
  const rows = await readRows<{ readonly path: string; readonly used: readonly boolean[] }>(
    session,
    `SELECT path, ARRAY[${counts}]::boolean[] AS used FROM ${sql} GROUP BY path ORDER BY path COLLATE "C"`,
  );
  return rows.map(({ path, used }) => ({ path, to: targets.filter((_, index) => used[index]) }));
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

// Strapi 5: a document has a row for its draft and one for what is published; links and files lie in tables between.

const STRAPI_SYSTEM = /^(strapi_|admin_|up_|i18n_|upload_folders|files(_|$)|components_)|_(cmps|components)$/;

async function readStrapi(session: Session, tables: readonly Table[]): Promise<Partial<Preset>> {
  const { sql: settings = "strapi_core_store_settings" } = findTable(tables, "strapi_core_store_settings") ?? {};
  const types = await readStrapiTypes(session, settings);
  const typeOf = (table: Table) => types.find(({ collectionName }) => collectionName === table.name);
  const isDocument = (table: Table) => hasColumn(table, "document_id") && !STRAPI_SYSTEM.test(table.name);
  const links = tables.flatMap((table) => findStrapiLink(table, tables, types));
  const files = findTable(tables, "files");
  const related = findTable(tables, "files_related_mph");
  const media =
    files === undefined || related === undefined
      ? []
      : tables.filter(isDocument).flatMap((table) => listStrapiMedia(table, typeOf(table), { files, related }));
  const components = tables.filter(({ name }) => /_(cmps|components)$/.test(name));
  const defaultLocale = `(SELECT value::jsonb #>> '{}' FROM ${settings} WHERE key = 'plugin_i18n_default_locale')`;
  return {
    isSystem: (table) => PLAIN.isSystem(table) || STRAPI_SYSTEM.test(table.name) || /_lnk$/.test(table.name),
    writeFile: ({ name }, alias) => (name === "files" ? `${alias}.hash || ${alias}.ext` : null),
    keyOf: (table) => (isDocument(table) ? ["document_id"] : table.key),
    conditionsOf: (table) => [
      `(t.published_at IS NOT NULL OR NOT EXISTS (SELECT FROM ${table.sql} AS p WHERE p.document_id = t.document_id AND p.locale IS NOT DISTINCT FROM t.locale AND p.published_at IS NOT NULL))`,
      `(t.locale IS NULL OR t.locale = ${defaultLocale})`,
    ],
    kindOf: (table, { name }) => describeAttribute(typeOf(table)?.attributes[camelCase(name)]?.type),
    usedColumns: ["id", "document_id", "locale"],
    parts: [...links, ...media],
    leftOut: components.map(({ id }) => ({
      table: id,
      column: null,
      why: "components and dynamic zones are not carried",
    })),
  };
}

type StrapiAttribute = { readonly type: string; readonly relation?: string; readonly multiple?: boolean };
type StrapiType = {
  readonly uid: string;
  readonly collectionName: string;
  readonly attributes: Readonly<Record<string, StrapiAttribute>>;
};

async function readStrapiTypes(session: Session, settings: string): Promise<StrapiType[]> {
  const text = `SELECT one.uid, one.schema -> 'collectionName' AS "collectionName", one.schema -> 'attributes' AS attributes
    FROM ${settings} AS settings, jsonb_each(settings.value::jsonb) AS one (uid, schema)
    WHERE settings.key = 'strapi_content_types_schema' ORDER BY one.uid`;
  return readRows<StrapiType>(session, text);
}

function describeAttribute(type: string | undefined): Kind | null {
  if (type === "enumeration") return { type: "select", multiple: false };
  return type === "richtext" || type === "text" ? { type: "text", multiple: false } : null;
}

function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

const LINK_TABLE = /_lnk$/;

/** `articles_tags_lnk` (id, article_id, tag_id, tag_ord, article_ord). A table that leads to itself has one order. */
function findStrapiLink(table: Table, tables: readonly Table[], types: readonly StrapiType[]): Link[] {
  const [from, to] = table.foreignKeys;
  const owner = tables.find(({ id }) => id === from?.table);
  if (!LINK_TABLE.test(table.name) || from === undefined || to === undefined || owner === undefined) return [];
  const name = table.name.replace(`${owner.name}_`, "").replace(LINK_TABLE, "");
  const attributes = types.find(({ collectionName }) => collectionName === owner.name)?.attributes;
  const multiple = attributes?.[camelCase(name)]?.relation?.endsWith("Many") ?? false;
  const orders = [`${withoutId(to.columns.join())}_ord`, `${withoutId(from.columns.join())}_ord`];
  const order = [...orders.filter((column) => hasColumn(table, column)).slice(0, 1), "id"];
  return [{ owner: owner.id, name, table, from, to, condition: null, order, multiple }];
}

/** Which files are whose, and in which field, stands in the rows of one table for all types. */
function listStrapiMedia(
  owner: Table,
  type: StrapiType | undefined,
  { files, related }: { readonly files: Table; readonly related: Table },
): Link[] {
  const media = Object.entries(type?.attributes ?? {}).filter(([, attribute]) => attribute.type === "media");
  return media.map(([field, { multiple = false }]) => ({
    owner: owner.id,
    name: field,
    table: related,
    from: { columns: ["related_id"], table: owner.id, targets: ["id"] },
    to: { columns: ["file_id"], table: files.id, targets: ["id"] },
    condition: `j.related_type = ${literal(type?.uid ?? "")} AND j.field = ${literal(field)}`,
    order: ["order", "id"],
    multiple,
  }));
}
