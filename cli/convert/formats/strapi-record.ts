/** Turns an entity of Strapi into a record: with its components, relations and files. */
import { basename, join } from "node:path";
import { isFile } from "../../../shared/files.ts";
import type { Losses } from "../losses.ts";
import { renderMarkdown } from "../markdown.ts";
import type { Place, SourceCollection, SourceField, SourceRecord, SourceValue } from "../record.ts";
import { renderBlocks } from "./strapi-text.ts";

export type Row = { readonly [name: string]: unknown };
export type Entity = { readonly type: string; readonly id: number; readonly data: Row };
type Attribute = {
  readonly type: string;
  readonly required?: boolean;
  readonly private?: boolean;
  readonly multiple?: boolean;
  readonly repeatable?: boolean;
  readonly component?: string;
  readonly relation?: string;
  readonly target?: string;
};
export type Schema = {
  readonly uid: string;
  readonly info?: { readonly displayName?: string; readonly pluralName?: string; readonly description?: string };
  readonly options?: { readonly draftAndPublish?: boolean };
  readonly attributes: Readonly<Record<string, Attribute>>;
};
type Link = { readonly type: string; readonly ref: number; readonly position: number };

/** What entities refer to before or after they are read. */
export type Archive = {
  /** The folder that it was unpacked into. */
  readonly root: string;
  readonly schemas: ReadonlyMap<string, Schema>;
  /** By type and id, then by field. */
  readonly links: ReadonlyMap<string, ReadonlyMap<string, readonly Link[]>>;
  /** The keys of entities by type and id: those of Strapi 5 are one for all versions of a document. */
  readonly keys: ReadonlyMap<string, string>;
  readonly files: ReadonlyMap<number, Row>;
};
export type Reading = Archive & { readonly losses: Losses };

/** What Strapi keeps of each entity. */
const OWN = new Set(
  [
    "id",
    "documentId",
    "createdAt",
    "updatedAt",
    "publishedAt",
    "createdBy",
    "updatedBy",
    "locale",
    "localizations",
  ].concat(["strapi_stage", "strapi_assignee", "strapi_reviewWorkflows_stage"]),
);
const MULTIPLE = /ToMany$/;

export function nameCollection({ uid, info }: Schema): string {
  return info?.pluralName ?? (uid.split(".").at(-1) as string);
}

export function declareCollection(schema: Schema, schemas: ReadonlyMap<string, Schema>): SourceCollection {
  const fields = Object.entries(schema.attributes).flatMap(([name, attribute]) => {
    const type = OWN.has(name) || attribute.private ? null : decideType(attribute);
    if (type === null) return [];
    const target = schemas.get(attribute.target ?? "");
    return [
      {
        name,
        required: attribute.required === true,
        ...(type === "tell" ? {} : { type }),
        ...(attribute.multiple || MULTIPLE.test(attribute.relation ?? "") ? { multiple: true } : {}),
        ...(type === "relation" && target !== undefined ? { target: nameCollection(target) } : {}),
      },
    ];
  });
  const { displayName: name, description } = schema.info ?? {};
  return {
    kind: "collection",
    collection: nameCollection(schema),
    ...(name ? { name } : {}),
    ...(description ? { description } : {}),
    fields,
  };
}

/** Null for what is not carried; `tell` where the values have to tell it. */
function decideType({ type, relation, target }: Attribute): NonNullable<SourceField["type"]> | "tell" | null {
  if (type === "password") return null;
  if (type === "relation") {
    if (/^morph/i.test(relation ?? "")) return "tell";
    return target?.startsWith("api::") ? "relation" : null;
  }
  if (["integer", "biginteger", "float", "decimal"].includes(type)) return "number";
  if (["string", "text", "email", "uid", "time"].includes(type)) return "text";
  if (type === "richtext" || type === "blocks") return "rich_text";
  if (type === "enumeration") return "select";
  if (type === "media" || type === "boolean" || type === "date") return type;
  if (type === "datetime" || type === "timestamp") return "datetime";
  return ["component", "dynamiczone", "json"].includes(type) ? "json" : "tell";
}

export function readEntity({ type, id, data }: Entity, schema: Schema, place: Place, reading: Reading): SourceRecord {
  const isDraft = schema.options?.draftAndPublish === true && !data.publishedAt;
  const created = readText(data.createdAt);
  return {
    kind: "record",
    collection: nameCollection(schema),
    key: reading.keys.get(`${type} ${id}`) ?? String(id),
    place,
    status: isDraft ? "draft" : "published",
    published: isDraft ? null : (readText(data.publishedAt) ?? created),
    created,
    updated: readText(data.updatedAt),
    fields: readFields(schema, id, data, place, reading),
  };
}

function readFields(
  schema: Schema,
  id: number,
  data: Row,
  place: Place,
  reading: Reading,
): Record<string, SourceValue> {
  const fields: Record<string, SourceValue> = {};
  const links = reading.links.get(`${schema.uid} ${id}`);
  for (const [name, attribute] of Object.entries(schema.attributes)) {
    const value = data[name];
    const linked = links?.get(name) ?? [];
    const told = `${nameCollection(schema)}.${name}`;
    if (OWN.has(name)) continue;
    if (attribute.private || attribute.type === "password") {
      if (value != null) reading.losses.count(place, told, "is private in Strapi, and everything here is public");
    } else if (attribute.type === "media") fields[name] = readFiles(linked, attribute, reading);
    else if (attribute.type === "relation") fields[name] = readLinks(told, linked, attribute, place, reading);
    else fields[name] = readValue(attribute, value, place, reading);
  }
  return fields;
}

function readFiles(linked: readonly Link[], { multiple }: Attribute, reading: Reading): SourceValue {
  const files = linked.flatMap(({ ref }) => {
    const file = reading.files.get(ref);
    return file === undefined ? [] : [makeMedia(file, reading)];
  });
  return multiple ? files : (files[0] ?? null);
}

function readLinks(
  told: string,
  linked: readonly Link[],
  { relation = "" }: Attribute,
  place: Place,
  reading: Reading,
): SourceValue {
  // The versions of a document are one entry.
  const found = new Map<string, SourceValue>();
  for (const { type, ref } of linked) {
    const schema = reading.schemas.get(type);
    const key = reading.keys.get(`${type} ${ref}`);
    if (type.startsWith("api::") && schema !== undefined && key !== undefined)
      found.set(`${type} ${key}`, { kind: "reference", collection: nameCollection(schema), key });
    else reading.losses.count(place, told, `leads to ${type}, which is no content, or not in the archive`);
  }
  return MULTIPLE.test(relation) ? [...found.values()] : (found.values().next().value ?? null);
}

function readValue(attribute: Attribute, value: unknown, place: Place, reading: Reading): SourceValue {
  const { losses, schemas, root } = reading;
  if (value === null || value === undefined) return null;
  if (attribute.type === "richtext" || attribute.type === "blocks") {
    const lose = (what: string) => losses.count(place, what, "HTML has no such thing: its text is kept");
    const html = attribute.type === "blocks" ? renderBlocks(value, lose) : renderMarkdown(String(value));
    return { kind: "html", html: leadToFiles(html, root), folder: root };
  }
  if (attribute.type === "component" || attribute.type === "dynamiczone") {
    if (Array.isArray(value)) return value.map((one) => readValue(attribute, one, place, reading));
    const { id, __component: own } = value as Row;
    const schema = schemas.get(String(own ?? attribute.component));
    if (schema === undefined) return { kind: "json", value };
    const fields = readFields(schema, Number(id), value as Row, place, reading);
    return { kind: "object", fields: own === undefined ? fields : { component: String(own), ...fields } };
  }
  return typeof value === "object" ? { kind: "json", value } : (value as SourceValue);
}

/** Texts have the addresses of uploads, with or without the host: `/uploads/bee_1a2b.png`. */
function leadToFiles(html: string, root: string): string {
  return html.replace(/\b(src|href)="[^"]*\/uploads\/([^"/?#]+)"/g, (all, name: string, file: string) =>
    isFile(join(root, "assets/uploads", decodeURI(file))) ? `${name}="assets/uploads/${file}"` : all,
  );
}

export function makeMedia(file: Row, { root }: Archive): Extract<SourceValue, { kind: "media" }> {
  const url = String(file.url ?? "");
  const path = join(root, "assets/uploads", `${String(file.hash)}${String(file.ext ?? "")}`);
  return {
    kind: "media",
    path: isFile(path) ? path : null,
    name: String(file.name ?? basename(url)),
    address: url || null,
  };
}

export function readText(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
