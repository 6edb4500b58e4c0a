/** The data model of Directus: its collections, fields and relations, and what each field means for a bundle. */
import type { SourceCollection, SourceField } from "../record.ts";

export type Field = {
  readonly collection: string;
  readonly field: string;
  readonly type: string;
  readonly schema?: { readonly is_primary_key?: boolean } | null;
  readonly meta?: {
    readonly special?: readonly string[] | null;
    readonly interface?: string | null;
    readonly options?: { readonly choices?: readonly { readonly value?: unknown }[] | null; masked?: boolean } | null;
    readonly required?: boolean;
  } | null;
};
type Relation = {
  readonly collection: string;
  readonly field: string;
  readonly related_collection?: string | null;
  readonly meta?: {
    readonly one_field?: string | null;
    readonly junction_field?: string | null;
    readonly one_collection_field?: string | null;
    readonly sort_field?: string | null;
  } | null;
};
export type Schema = {
  readonly collections: readonly {
    readonly collection: string;
    readonly meta?: { readonly note?: string | null } | null;
  }[];
  readonly fields: readonly Field[];
  readonly relations: readonly Relation[];
};

/** Rows of a collection in between, which belong to the field of another collection. */
export type Junction = {
  readonly collection: string;
  /** Names the record that a row belongs to. */
  readonly parent: string;
  /** Names the other record, or the language of a translation; null where that is one of several collections. */
  readonly other: string;
  readonly target: string | null;
  /** Names the collection of the other record, where that is one of several. */
  readonly targetField: string | null;
  readonly sort: string | null;
};

/** What a field is made of. */
export type Part =
  | { readonly kind: "value"; readonly name: string; readonly form: "plain" | "html" | "markdown" | "json" }
  | {
      readonly kind: "key" | "created" | "updated" | "published" | "status" | "secret" | "person";
      readonly name: string;
    }
  | { readonly kind: "media"; readonly name: string }
  | { readonly kind: "one" | "children"; readonly name: string; readonly target: string }
  | { readonly kind: "rows" | "translations"; readonly name: string; readonly junction: Junction };

/** The fields of a collection, without those that only arrange a form. */
export function listParts(collection: string, schema: Schema): readonly Part[] {
  return schema.fields.flatMap((field) => (field.collection === collection ? (findPart(field, schema) ?? []) : []));
}

function findPart({ collection, field: name, type, schema, meta }: Field, all: Schema): Part | null {
  const special = meta?.special ?? [];
  const choices = meta?.options?.choices?.map(({ value }) => value) ?? [];
  if (schema?.is_primary_key === true && name === "id") return { kind: "key", name };
  if (special.includes("date-created")) return { kind: "created", name };
  if (special.includes("date-updated")) return { kind: "updated", name };
  if (special.includes("user-created") || special.includes("user-updated")) return null;
  if (special.includes("conceal") || type === "hash" || meta?.options?.masked === true) return { kind: "secret", name };
  if (name === "status" && choices.includes("published")) return { kind: "status", name };
  if (/^(?:date_published|published_(?:at|on)|publish_date)$/.test(name) && isTime(type))
    return { kind: "published", name };
  if (type === "alias") return findAlias(collection, name, special, all);
  const target = all.relations.find((one) => one.collection === collection && one.field === name)?.related_collection;
  if (target === "directus_files") return { kind: "media", name };
  if (target === "directus_users") return { kind: "person", name };
  if (target != null) return target.startsWith("directus_") ? null : { kind: "one", name, target };
  const form = { "input-rich-text-html": "html", "input-rich-text-md": "markdown" }[meta?.interface ?? ""];
  const plain = type === "json" || type.startsWith("geometry") ? "json" : "plain";
  return { kind: "value", name, form: (form as "html" | "markdown" | undefined) ?? plain };
}

function findAlias(collection: string, name: string, special: readonly string[], { relations }: Schema): Part | null {
  const own = relations.find((one) => one.related_collection === collection && one.meta?.one_field === name);
  if (own === undefined) return null;
  const other = own.meta?.junction_field;
  if (other == null)
    return own.collection.startsWith("directus_") ? null : { kind: "children", name, target: own.collection };
  const far = relations.find((one) => one.collection === own.collection && one.field === other);
  const junction = {
    collection: own.collection,
    parent: own.field,
    other,
    target: far?.related_collection ?? null,
    targetField: far?.meta?.one_collection_field ?? null,
    sort: own.meta?.sort_field ?? null,
  };
  return { kind: special.includes("translations") ? "translations" : "rows", name, junction };
}

function isTime(type: string): boolean {
  return ["timestamp", "dateTime", "date"].includes(type);
}

/** What the data model declares of a collection's fields; the values of the others tell. */
export function declareCollection(collection: string, parts: readonly Part[], schema: Schema): SourceCollection {
  const note = schema.collections.find((one) => one.collection === collection)?.meta?.note;
  const fields = parts.flatMap((part) => {
    const field = schema.fields.find((one) => one.collection === collection && one.field === part.name);
    return field === undefined ? [] : (declareField(part, field) ?? []);
  });
  return { kind: "collection", collection, ...(note ? { description: note } : {}), fields };
}

function declareField(part: Part, { type, meta }: Field): SourceField | null {
  const told = { name: part.name, required: meta?.required === true };
  if (part.kind === "media") return { ...told, type: "media" };
  if (part.kind === "one") return { ...told, type: "relation", target: part.target };
  if (part.kind === "children") return { name: part.name, type: "relation", multiple: true, target: part.target };
  if (part.kind !== "value") return null;
  if (part.form === "html" || part.form === "markdown") return { ...told, type: "rich_text" };
  if (part.form === "json")
    return /tags|select-multiple/.test(meta?.interface ?? "") ? told : { ...told, type: "json" };
  if (["integer", "bigInteger", "float", "decimal"].includes(type)) return { ...told, type: "number" };
  if (type === "boolean" || type === "date") return { ...told, type };
  if (type === "dateTime" || type === "timestamp") return { ...told, type: "datetime" };
  const isChoice = (meta?.options?.choices?.length ?? 0) > 0;
  return { ...told, type: isChoice ? "select" : "text", ...(type === "csv" ? { multiple: true } : {}) };
}
