/**
 * What a proposal has to know of tables that is not in their catalog, and what it knows of any: that a table between two
 * others links them.
 */
import type { Column, ForeignKey, Table } from "./catalog.ts";
import type { Kind } from "./column.ts";

/** A field of a type whose values are rows of another table. */
type Part = {
  /** The id of the table that has the field. */
  readonly owner: string;
  readonly name: string;
  readonly table: Table;
  /** From that table to its owner. */
  readonly from: ForeignKey;
  /** SQL that the rows meet, where `j` is that table. */
  readonly condition: string | null;
  readonly order: readonly string[];
};
/** The rows lead to entries of another type, or to files. */
export type Link = Part & { readonly to: ForeignKey; readonly multiple: boolean };
/** The rows are values: of one column, or, as JSON, of all. */
export type List = Part & { readonly value: string | null; readonly kind: Kind };

/** What is not adopted of a table, or of a column or field of it. */
export type LeftOut = { readonly table: string; readonly column: string | null; readonly why: string };

export type Preset = {
  /** Tables that are not adopted, and of which nothing is said. */
  readonly isSystem: (table: Table) => boolean;
  /** SQL of the names of files, of a table that holds files under an alias: a reference to it is a media field. */
  readonly writeFile: (table: Table, alias: string) => string | null;
  /** The columns that tell entries apart. */
  readonly keyOf: (table: Table) => readonly string[];
  /** SQL that the rows of entries meet, where `t` is the table. */
  readonly conditionsOf: (table: Table) => readonly string[];
  /** Null where the type of the column decides. */
  readonly kindOf: (table: Table, column: Column) => Kind | null;
  /** Names of columns that become no fields. */
  readonly usedColumns: readonly string[];
  readonly parts: readonly (Link | List)[];
  /** Content that no part carries. */
  readonly leftOut: readonly LeftOut[];
};

/** Where other programs note what they have done to the schema. */
const BOOKKEEPING =
  /^(_?_?(schema|knex|prisma|drizzle|goose|sequelize|django|typeorm)?_?migrations?(_lock)?|flyway_schema_history|ar_internal_metadata|SequelizeMeta|databasechangelog(lock)?|alembic_version|sessions?)$/i;

/** What holds for tables of one's own. */
export const PLAIN: Preset = {
  isSystem: ({ name, isView }) => isView || BOOKKEEPING.test(name),
  writeFile: () => null,
  keyOf: ({ key, isView, columns }) => (isView ? columns.map(({ name }) => name).filter((name) => name === "id") : key),
  conditionsOf: () => [],
  kindOf: () => null,
  usedColumns: [],
  parts: [],
  leftOut: [],
};

/** The parts that the preset knows, and the tables that can be nothing but links between two others. */
export function findLinks(tables: readonly Table[], preset: Preset): (Link | List)[] {
  const known = new Set(preset.parts.map(({ table }) => table.id));
  const referred = new Set(tables.flatMap(({ foreignKeys }) => foreignKeys.map(({ table }) => table)));
  const links = tables
    .filter((table) => !known.has(table.id) && !referred.has(table.id) && !preset.isSystem(table))
    .flatMap(findLink);
  return [...preset.parts, ...links];
}

const ORDER = /^_?(order|position|sort|sort_?order|rank|ord|seq|weight)$|_ord(er)?$/i;
const IDLE = /^(id|uuid|(created|updated|inserted|modified)(_?(at|on))?|date_?(created|updated))$/i;

function findLink(table: Table): Link[] {
  const [from, to, ...others] = table.foreignKeys;
  if (from === undefined || to === undefined || others.length > 0) return [];
  const linking = new Set([...from.columns, ...to.columns]);
  const isLink = table.columns.every(({ name }) => linking.has(name) || ORDER.test(name) || IDLE.test(name));
  const orders = table.columns.filter(({ name }) => ORDER.test(name) && !linking.has(name)).map(({ name }) => name);
  const isOnly = from.columns.length === 1 && isUnique(table, from.columns[0] as string);
  const part = { owner: from.table, table, from, to, condition: null, order: [...orders, ...to.columns] };
  return isLink ? [{ ...part, name: nameLink(table, from, to), multiple: !isOnly }] : [];
}

function isUnique({ columns }: Table, name: string): boolean {
  return columns.some((column) => column.name === name && column.isUnique);
}

/** `posts_tags` and `post_tags` are the tags of a post, `related (post_id, other_id)` its others. */
function nameLink(table: Table, from: ForeignKey, to: ForeignKey): string {
  const start = `${withoutSchema(from.table)}_`;
  if (table.name.startsWith(start)) return table.name.slice(start.length);
  return from.table === to.table ? withoutId(to.columns[0] as string) : withoutSchema(to.table);
}

function withoutSchema(id: string): string {
  return id.slice(id.indexOf(".") + 1);
}

export function withoutId(column: string): string {
  return column.replace(/_?id$/i, "") || column;
}
