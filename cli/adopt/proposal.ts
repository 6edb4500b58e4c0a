/** Proposes a content type for each table, with the SELECT that yields its entries, and says what it leaves out. */
import { makeFieldName, makeLabel, makeSlug, makeUnique } from "../convert/names.ts";
import type { BundleType } from "../import/shape.ts";
import type { ForeignKey, Table } from "./catalog.ts";
import { describeColumn, isSearchable, isTitle, type Kind, SECRET } from "./column.ts";
import type { MappedType } from "./map.ts";
import { findLinks, type LeftOut, type Link, type List, type Preset } from "./preset.ts";
import { findRoles, type Roles } from "./roles.ts";

export type Proposal = { readonly types: readonly MappedType[]; readonly leftOut: readonly LeftOut[] };

/** A field and the SQL of its value. */
type Proposed = { readonly field: BundleType["fields"][number]; readonly sql: string };

/** What all types need to know of each other. */
type Surroundings = {
  readonly preset: Preset;
  readonly tables: ReadonlyMap<string, Table>;
  /** Slugs of the tables that become types, by the ids of the tables. */
  readonly slugs: ReadonlyMap<string, string>;
  readonly leave: (table: Table, column: string | null, why: string) => void;
};

/** `asked` are the tables to adopt, null for all but those of the system. They may refer to any of `all`. */
export function proposeTypes(all: readonly Table[], asked: readonly Table[] | null, preset: Preset): Proposal {
  const leftOut: LeftOut[] = [...preset.leftOut];
  const leave: Surroundings["leave"] = (table, column, why) => void leftOut.push({ table: table.id, column, why });
  const chosen = asked ?? all.filter((table) => !preset.isSystem(table));
  const links = findLinks(all, preset).filter(({ owner }) => chosen.some(({ id }) => id === owner));
  const adopted = chosen.filter((table) => {
    if (links.some(({ table: part }) => part.id === table.id)) return false;
    if (preset.keyOf(table).length > 0) return true;
    leave(table, null, "it has no primary key, by which its entries could be told apart");
    return false;
  });
  const slugs = new Map<string, string>();
  for (const table of adopted)
    slugs.set(table.id, makeUnique(makeSlug(nameApart(table, adopted)), new Set(slugs.values()), "-"));
  const surroundings = { preset, tables: new Map(all.map((table) => [table.id, table])), slugs, leave };
  const types = adopted.map((table, index) => {
    const own = links.filter(({ owner }) => owner === table.id);
    return proposeType(table, index + 1, own, surroundings);
  });
  for (const link of links) {
    if (!("to" in link) || !slugs.has(link.owner) || isReachable(link, surroundings)) continue;
    leave(link.table, null, `it leads to ${link.to.table}, which is not adopted`);
  }
  return { types, leftOut };
}

/** `blog_posts` where there is another table of posts: that of the schema public keeps its name. */
function nameApart({ schema, name }: Table, tables: readonly Table[]): string {
  const isAlone = tables.filter((table) => table.name === name).length === 1;
  return isAlone || schema === "public" ? name : `${schema}_${name}`;
}

function isReachable({ to }: Link, { preset, tables, slugs }: Surroundings): boolean {
  const target = tables.get(to.table);
  return slugs.has(to.table) || (target !== undefined && preset.writeFile(target, "r") !== null);
}

function proposeType(
  table: Table,
  position: number,
  parts: readonly (Link | List)[],
  surroundings: Surroundings,
): MappedType {
  const { preset, slugs, tables } = surroundings;
  const roles = findRoles(table, preset);
  const taken = new Set<string>();
  const fields: Proposed[] = [];
  const add = (wanted: string, label: string, kind: Kind, sql: string, required: boolean) => {
    const isAmbiguous = kind.type === "media" && taken.has(`${makeFieldName(wanted)}_url`);
    const name = makeUnique(makeFieldName(isAmbiguous ? `${wanted}_file` : wanted), taken, "_");
    for (const one of [name, ...(kind.type === "media" ? [`${name}_url`] : [])]) taken.add(one);
    fields.push({ sql, field: makeField(name, label, kind, required) });
  };
  for (const column of table.columns) {
    if (roles.used.has(column.name)) continue;
    const found = describeValue(table, column, surroundings);
    if (found !== null) add(column.name, labelOf(column), found.kind, found.sql, column.required && !found.mayLack);
  }
  for (const key of table.foreignKeys) {
    const target = tables.get(key.table);
    const target_slug = slugs.get(key.table);
    if (key.columns.length === 1 || target === undefined || target_slug === undefined) continue;
    const kind: Kind = { type: "relation", multiple: false, target: target_slug };
    add(target.name, makeLabel(target.name), kind, writeReference(table, key, target, surroundings), false);
  }
  for (const part of parts) {
    if ("to" in part && !isReachable(part, surroundings)) continue;
    add(part.name, makeLabel(part.name), kindOfPart(part, surroundings), writePart(part, surroundings), false);
  }
  const slug = slugs.get(table.id) as string;
  return {
    tables: [table.id, ...new Set(parts.map(({ table: part }) => part.id))],
    select: writeSelect(table, roles, fields, preset),
    content_type: makeType(table, slug, position, fields),
  };
}

function describeValue(
  table: Table,
  column: Table["columns"][number],
  surroundings: Surroundings,
): { readonly kind: Kind; readonly sql: string; readonly mayLack: boolean } | null {
  const { preset, slugs, tables, leave } = surroundings;
  const key = table.foreignKeys.find(({ columns }) => columns.length === 1 && columns[0] === column.name);
  const target = key === undefined ? undefined : tables.get(key.table);
  if (SECRET.test(column.name)) return leaveOut("its name is that of a secret");
  if (key !== undefined && target !== undefined) {
    const file = preset.writeFile(target, "r");
    const slug = slugs.get(target.id);
    if (file !== null)
      return { kind: plain("media"), sql: writeReference(table, key, target, surroundings), mayLack: true };
    if (slug !== undefined) {
      const kind: Kind = { type: "relation", multiple: false, target: slug };
      return { kind, sql: writeReference(table, key, target, surroundings), mayLack: !isKey(key, target, preset) };
    }
    if (preset.isSystem(target)) return leaveOut(`it leads to ${target.id}, which is not adopted`);
  }
  const kind = preset.kindOf(table, column) ?? describeColumn(column);
  if (kind === null) return leaveOut(`a value of the type ${column.type} has no JSON`);
  return { kind, sql: kind.write?.(`t.${column.sql}`) ?? `t.${column.sql}`, mayLack: false };

  function leaveOut(why: string): null {
    leave(table, column.name, why);
    return null;
  }
}

function plain(type: Kind["type"]): Kind {
  return { type, multiple: false };
}

// Writes SQL. In a SELECT, `t` is the table of the type, `r` one that is referred to, and `j` one in between.

function columnSql(table: Table, name: string): string {
  return table.columns.find((column) => column.name === name)?.sql ?? `"${name.replaceAll('"', '""')}"`;
}

/** What identifies a row of a table, or names its file. A key of several columns is a JSON array of them. */
function writeKey(table: Table, alias: string, preset: Preset): string {
  const columns = preset.keyOf(table).map((name) => `${alias}.${columnSql(table, name)}`);
  const key = columns.length === 1 ? columns.join() : `jsonb_build_array(${columns.join(", ")})`;
  return preset.writeFile(table, alias) ?? key;
}

/** Whether the columns that refer to a row are its key already. */
function isKey(key: ForeignKey, target: Table, preset: Preset): boolean {
  return preset.writeFile(target, "r") === null && String(key.targets) === String(preset.keyOf(target));
}

function matchColumns(left: string, leftTable: Table, key: ForeignKey, right: string, rightTable: Table): string {
  const pairs = key.columns.map(
    (name, index) =>
      `${right}.${columnSql(rightTable, key.targets[index] as string)} = ${left}.${columnSql(leftTable, name)}`,
  );
  return pairs.join(" AND ");
}

function writeReference(table: Table, key: ForeignKey, target: Table, { preset }: Surroundings): string {
  const columns = key.columns.map((name) => `t.${columnSql(table, name)}`);
  if (!isKey(key, target, preset))
    return `(SELECT ${writeKey(target, "r", preset)} FROM ${target.sql} AS r WHERE ${matchColumns("t", table, key, "r", target)})`;
  if (columns.length === 1) return columns.join();
  return `CASE WHEN num_nulls(${columns.join(", ")}) = 0 THEN jsonb_build_array(${columns.join(", ")}) END`;
}

function kindOfPart(part: Link | List, { preset, tables, slugs }: Surroundings): Kind {
  if (!("to" in part)) return part.kind;
  const target = tables.get(part.to.table) as Table;
  if (preset.writeFile(target, "r") !== null) return { type: "media", multiple: part.multiple };
  return { type: "relation", multiple: part.multiple, target: slugs.get(target.id) as string };
}

function writePart(part: Link | List, { preset, tables }: Surroundings): string {
  const { table, from, condition, order } = part;
  const owner = tables.get(part.owner) as Table;
  const where = [matchColumns("j", table, from, "t", owner), ...(condition === null ? [] : [condition])].join(" AND ");
  const sort = order.map((name) => `j.${columnSql(table, name)}`).join(", ");
  if (!("to" in part)) {
    const list = (value: string) => `ARRAY(SELECT ${value} FROM ${table.sql} AS j WHERE ${where} ORDER BY ${sort})`;
    if (part.value !== null) return list(`j.${columnSql(table, part.value)}`);
    const inner = [...from.columns, ...order].map((name) => `'${name.replaceAll("'", "''")}'`);
    return `to_jsonb(${list(`to_jsonb(j) - ARRAY[${inner.join(", ")}]`)})`;
  }
  const target = tables.get(part.to.table) as Table;
  const isDirect = isKey(part.to, target, preset) && part.to.columns.length === 1;
  const value = isDirect ? `j.${columnSql(table, part.to.columns[0] as string)}` : writeKey(target, "r", preset);
  const join = isDirect ? "" : ` JOIN ${target.sql} AS r ON ${matchColumns("j", table, part.to, "r", target)}`;
  const select = `SELECT ${value} FROM ${table.sql} AS j${join} WHERE ${where} ORDER BY ${sort}`;
  return part.multiple ? `ARRAY(${select})` : `(${select} LIMIT 1)`;
}

function writeSelect(table: Table, roles: Roles, fields: readonly Proposed[], preset: Preset): string[] {
  const values = [
    `${writeKey(table, "t", preset)} AS id`,
    ...roles.columns,
    ...fields.map(({ field, sql }) => `${sql} AS ${field.name}`),
  ];
  const conditions = [...roles.conditions, ...preset.conditionsOf(table)];
  return [
    "SELECT",
    ...values.map((value, index) => `  ${value}${index < values.length - 1 ? "," : ""}`),
    `FROM ${table.sql} AS t`,
    ...(conditions.length === 0 ? [] : [`WHERE ${conditions.join(" AND ")}`]),
  ];
}

// Writes definitions.

function makeField(name: string, label: string, kind: Kind, required: boolean): Proposed["field"] {
  const { type, multiple, target = null } = kind;
  const searchable = !multiple && kind.write === undefined && isSearchable(name, type);
  return { name, type, label, required, searchable, multiple, target };
}

/** Few values make a filter worth its files; an order costs two files at most. */
function makeType(table: Table, slug: string, position: number, proposed: readonly Proposed[]): BundleType {
  const fields = proposed.map(({ field }) => field);
  const named = (is: (field: BundleType["fields"][number]) => boolean) => fields.filter(is).map(({ name }) => name);
  return {
    slug,
    name: makeLabel(table.name),
    description: table.comment ?? "",
    icon: "document",
    position,
    published: true,
    default_sort: null,
    per_page: null,
    summary_fields: null,
    fields,
    filterable_fields: named(({ type }) => ["select", "boolean", "relation"].includes(type)),
    sortable_fields: named(
      ({ name, type, multiple }) =>
        !multiple && (["number", "date", "datetime"].includes(type) || (type === "text" && isTitle(name))),
    ),
  };
}

const LONGEST_LABEL = 60;

function labelOf({ name, comment }: { readonly name: string; readonly comment: string | null }): string {
  const isLabel = comment !== null && comment.length <= LONGEST_LABEL && !comment.includes("\n");
  return isLabel ? comment : makeLabel(name);
}
