/** Turns a row of Directus into a record: with files, references, the rows of junctions, and translations. */
import { join, relative } from "node:path";
import { isFile } from "../../../shared/files.ts";
import type { Losses } from "../losses.ts";
import { renderMarkdown } from "../markdown.ts";
import type { Place, SourceRecord, SourceValue } from "../record.ts";
import { type Junction, listParts, type Part, type Schema } from "./directus-schema.ts";

export type Row = { readonly [name: string]: unknown };
export type File = { readonly id: string; readonly filename_disk?: string; readonly filename_download?: string } & Row;
export type Reading = {
  /** The folder of the template. */
  readonly folder: string;
  readonly schema: Schema;
  readonly files: ReadonlyMap<string, File>;
  /** The rows of junctions, by the names of junctions and then by the records that they belong to. */
  readonly rows: ReadonlyMap<string, ReadonlyMap<string, readonly Row[]>>;
  readonly locale: string | null;
  readonly losses: Losses;
};

export function readRecord(
  collection: string,
  parts: readonly Part[],
  row: Row,
  place: Place,
  reading: Reading,
): SourceRecord {
  const { losses, schema } = reading;
  const primary = schema.fields.find((one) => one.collection === collection && one.schema?.is_primary_key === true);
  const key = row[primary?.field ?? "id"];
  const fields: Record<string, SourceValue> = {};
  const dates: Record<"created" | "updated" | "published", string | null> = {
    created: null,
    updated: null,
    published: null,
  };
  let status: SourceRecord["status"] = "published";
  for (const part of parts) {
    const value = row[part.name];
    if (part.kind === "created" || part.kind === "updated" || part.kind === "published")
      dates[part.kind] = typeof value === "string" ? value : null;
    else if (part.kind === "status") {
      if (value !== "published") status = "draft";
      if (value !== "published" && value !== "draft")
        losses.count(place, `status ${String(value)} of ${collection}`, "becomes a draft: publish what shall be seen");
    } else if (part.kind === "secret" && value != null)
      losses.count(place, `${collection}.${part.name}`, "is hidden in Directus, and everything here is public");
    else if (part.kind === "person" && value != null)
      losses.count(
        place,
        `${collection}.${part.name}`,
        "leads to a user of Directus: keep authors in a collection of their own",
      );
    else Object.assign(fields, readPart(collection, part, row, String(key), place, reading));
  }
  const published = dates.published ?? (status === "published" ? dates.created : null);
  return {
    kind: "record",
    collection,
    key: key == null ? null : String(key),
    place,
    status,
    ...dates,
    published,
    fields,
  };
}

function readPart(
  collection: string,
  part: Part,
  row: Row,
  key: string,
  place: Place,
  reading: Reading,
): Record<string, SourceValue> {
  const value = row[part.name];
  switch (part.kind) {
    case "value":
      return { [part.name]: readValue(part, value, reading) };
    case "media":
      return { [part.name]: value == null ? null : makeMedia(String(value), reading) };
    case "one":
      return {
        [part.name]: value == null ? null : { kind: "reference", collection: part.target, key: readKey(value) },
      };
    case "children":
      if (!Array.isArray(value)) return {};
      return { [part.name]: value.map((one) => ({ kind: "reference", collection: part.target, key: readKey(one) })) };
    case "rows": {
      const own = reading.rows.get(nameJunction(part.junction))?.get(key) ?? [];
      return { [part.name]: own.flatMap((one) => readJunctionRow(part.junction, one, reading) ?? []) };
    }
    case "translations":
      return readTranslations(collection, part.name, part.junction, key, place, reading);
    default:
      return {};
  }
}

/** What a row leads to; an object where the row itself tells something, such as the background of a block. */
function readJunctionRow(junction: Junction, row: Row, reading: Reading): SourceValue {
  const { parent, other, sort, target, targetField } = junction;
  const value = row[other];
  if (value == null) return null;
  const collection = targetField === null ? target : String(row[targetField]);
  const found: SourceValue =
    target === "directus_files"
      ? makeMedia(readKey(value), reading)
      : { kind: "reference", collection, key: readKey(value) };
  const kept = new Set([parent, other, sort, targetField]);
  const own = listParts(junction.collection, reading.schema).filter(
    ({ kind, name }) => kind === "value" && !kept.has(name),
  );
  const told = own.filter(({ name }) => name !== "sort" && row[name] != null);
  if (told.length === 0) return found;
  const fields = Object.fromEntries(
    told.map((part) => [part.name, readValue(part as Part & { kind: "value" }, row[part.name], reading)]),
  );
  return { kind: "object", fields: { ...fields, item: found } };
}

/** The fields of one language, or an array with all of them. */
function readTranslations(
  collection: string,
  name: string,
  junction: Junction,
  key: string,
  place: Place,
  reading: Reading,
): Record<string, SourceValue> {
  const rows = reading.rows.get(nameJunction(junction))?.get(key) ?? [];
  const parts = listParts(junction.collection, reading.schema).filter(({ name: one }) => one !== junction.parent);
  const readAll = (row: Row) =>
    Object.assign(
      {},
      ...parts
        .filter((part) => part.name !== junction.other)
        .map((part) => readPart(junction.collection, part, row, "", place, reading)),
    );
  if (reading.locale === null)
    return {
      [name]: rows.map((row) => ({
        kind: "object",
        fields: { language: String(row[junction.other]), ...readAll(row) },
      })),
    };
  const own = rows.find((row) => row[junction.other] === reading.locale);
  for (const row of rows)
    if (row !== own)
      reading.losses.count(
        place,
        `${String(row[junction.other])} of ${collection}`,
        `convert again with --locale ${String(row[junction.other])}`,
      );
  // What is not translated stays.
  const told = Object.entries(own === undefined ? {} : (readAll(own) as Record<string, SourceValue>));
  return Object.fromEntries(told.filter(([, value]) => value !== null));
}

function readValue({ form }: Part & { kind: "value" }, value: unknown, reading: Reading): SourceValue {
  if (value === null || value === undefined) return null;
  if (form === "html" || form === "markdown") {
    const html = form === "html" ? String(value) : renderMarkdown(String(value));
    return { kind: "html", html: leadToFiles(html, reading), folder: reading.folder };
  }
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  return typeof value === "object" ? { kind: "json", value } : (value as SourceValue);
}

/** Texts refer to files by their ids: `https://cms.example.com/assets/<id>?width=800`. */
function leadToFiles(html: string, reading: Reading): string {
  return html.replace(/\b(src|href)="[^"]*\/assets\/([0-9a-f-]{36})[^"]*"/g, (all, name: string, id: string) => {
    const { path } = makeMedia(id, reading);
    return path === null ? all : `${name}="${encodeURI(relative(reading.folder, path))}"`;
  });
}

function makeMedia(id: string, { files, folder }: Reading): Extract<SourceValue, { kind: "media" }> {
  const { filename_disk: disk = id, filename_download: name = disk } = files.get(id) ?? {};
  const path = ["assets", "files", "uploads"].map((place) => join(folder, place, disk)).find(isFile) ?? null;
  return { kind: "media", path, name, address: path === null ? `/assets/${id}` : null };
}

/** The key of a record that is named by it, or is there itself. */
function readKey(value: unknown): string {
  return String(typeof value === "object" && value !== null ? (value as Row).id : value);
}

export function nameJunction({ collection, parent }: Junction): string {
  return `${collection}.${parent}`;
}
