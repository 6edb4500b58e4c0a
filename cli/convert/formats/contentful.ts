/** Reads Contentful: the JSON of `contentful space export`, with the files of its assets where these were downloaded. */
import { dirname, join } from "node:path";
import { isFile } from "../../../shared/files.ts";
import { readJsonValues } from "../json-values.ts";
import { countLosses, type Losses } from "../losses.ts";
import {
  type Place,
  type ReadContext,
  type SourceCollection,
  SourceError,
  type SourceRecord,
  type SourceValue,
} from "../record.ts";
import { listSources, type SourceFile } from "../source.ts";
import {
  type ContentType,
  type Control,
  type Declared,
  isMarkdown,
  type Link,
  makeCollection,
  type Sys,
} from "./contentful-model.ts";
import { type Asset, renderMarkdown, renderRichText } from "./contentful-text.ts";

type Localized = Readonly<Record<string, unknown>>;
type Item = {
  readonly sys: Sys;
  readonly fields?: Readonly<Record<string, Localized>>;
  readonly metadata?: { readonly tags?: readonly Link[]; readonly concepts?: readonly Link[] };
};
/** What entries need and the export has before or behind them: found by a first pass. */
type Space = {
  readonly file: SourceFile;
  readonly types: ReadonlyMap<string, ContentType>;
  /** How editors write a field, by type and field. */
  readonly controls: ReadonlyMap<string, Control>;
  readonly typesOfEntries: ReadonlyMap<string, string>;
  readonly assets: ReadonlyMap<string, Item>;
  readonly tags: ReadonlyMap<string, string>;
  /** The language to read, and those that stand in for it where a value is missing. */
  readonly locales: readonly string[];
  readonly defaultLocale: string;
};
type Reading = Space & { readonly losses: Losses };

const EXPECTED = "the JSON file that `contentful space export` writes, or the folder that holds it";

export async function* readContentful(
  source: string,
  context: ReadContext,
): AsyncGenerator<SourceRecord | SourceCollection> {
  const [file, another] = await listSources(source, ["*.json"], EXPECTED);
  if (file === undefined || another !== undefined)
    throw new SourceError({ file: source, line: null }, `holds several JSON files; specify ${EXPECTED}`);
  // Each of the two passes is half of the way.
  const halfway = { advance: (bytes: number) => context.advance(bytes / 2) };
  const losses = countLosses(context);
  const reading = { ...(await surveySpace(file, context.locale, halfway)), losses };
  for (const type of reading.types.values()) yield makeCollection(type, reading.controls);
  for await (const { value, path, place } of readJsonValues(file, ["$.entries.*", "$.assets.*"], halfway)) {
    if (path[0] === "entries") yield readEntry(value as Item, place, reading);
    else yield readAsset(value as Item, place, reading);
  }
  losses.tell();
}

async function surveySpace(
  file: SourceFile,
  wanted: string | null,
  progress: Pick<ReadContext, "advance">,
): Promise<Space> {
  const types = new Map<string, ContentType>();
  const controls = new Map<string, Control>();
  const typesOfEntries = new Map<string, string>();
  const assets = new Map<string, Item>();
  const tags = new Map<string, string>();
  const locales: { code: string; default?: boolean; fallbackCode?: string | null }[] = [];
  const parts = ["contentTypes", "editorInterfaces", "entries", "assets", "tags", "locales"];
  const paths = parts.map((part) => `$.${part}.*`);
  for await (const { value, path, place } of readJsonValues(file, paths, progress)) {
    const [part] = path as [string];
    const item = value as Item;
    if (["contentTypes", "entries", "assets"].includes(part) && typeof item?.sys?.id !== "string")
      throw new SourceError(place, `is one of "${part}" without sys.id: specify ${EXPECTED}`);
    if (part === "contentTypes") types.set(item.sys.id, value as ContentType);
    else if (part === "entries") typesOfEntries.set(item.sys.id, findLinked(item.sys.contentType));
    else if (part === "assets") assets.set(item.sys.id, item);
    else if (part === "tags") tags.set(item.sys.id, (value as { name: string }).name);
    else if (part === "locales") locales.push(value as { code: string });
    else
      for (const control of (value as { controls?: Control[] }).controls ?? [])
        controls.set(`${findLinked(item.sys.contentType)} ${control.fieldId}`, control);
  }
  const whole = { file: file.name, line: null };
  if (types.size === 0 || locales.length === 0)
    throw new SourceError(whole, `has no contentTypes or no locales: specify ${EXPECTED}`);
  const defaultLocale = (locales.find((locale) => locale.default) ?? locales[0])?.code as string;
  const chain: string[] = [];
  for (let code = wanted ?? defaultLocale; !chain.includes(code); ) {
    const locale = locales.find((one) => one.code === code);
    if (locale === undefined) {
      const codes = locales.map((one) => one.code).sort();
      throw new SourceError(whole, `has no locale ${JSON.stringify(code)}; it has ${codes.join(", ")}`);
    }
    chain.push(code);
    code = locale.fallbackCode ?? code;
  }
  return { file, types, controls, typesOfEntries, assets, tags, locales: chain, defaultLocale };
}

function readEntry({ sys, fields = {}, metadata }: Item, place: Place, reading: Reading): SourceRecord {
  const { types, tags, losses } = reading;
  const collection = findLinked(sys.contentType);
  const declared = types.get(collection);
  if (declared === undefined)
    throw new SourceError(
      place,
      `entry ${sys.id} is of the type ${JSON.stringify(collection)}, which the export lacks`,
    );
  const values: Record<string, SourceValue> = {};
  for (const field of declared.fields) {
    const localized = fields[field.id];
    if (localized === undefined) continue;
    if (field.omitted)
      losses.count(place, `${collection}.${field.id}`, "is omitted from Contentful's own answers as well");
    else values[field.id] = readValue(collection, field, pickValue(localized, field, place, reading), place, reading);
  }
  const names = (metadata?.tags ?? []).map((tag) => tags.get(tag.sys.id) ?? tag.sys.id);
  if (names.length > 0) values["tags" in values ? "metadata_tags" : "tags"] = names;
  if (metadata?.concepts?.length)
    losses.count(place, "concepts", "a taxonomy is not in the export: tag entries instead");
  return makeRecord(collection, sys, values, place, losses);
}

function readAsset({ sys, fields = {} }: Item, place: Place, reading: Reading): SourceRecord {
  const { types, losses } = reading;
  const pick = (name: string) =>
    (pickValue(fields[name] ?? {}, { localized: true }, place, reading) ?? null) as SourceValue;
  const values = { title: pick("title"), description: pick("description"), file: makeMedia(sys.id, reading) };
  return makeRecord(types.has("assets") ? "contentful_assets" : "assets", sys, values, place, losses);
}

function makeRecord(
  collection: string,
  sys: Sys,
  fields: SourceRecord["fields"],
  place: Place,
  losses: Losses,
): SourceRecord {
  const isPublished = typeof sys.publishedVersion === "number" || typeof sys.publishedAt === "string";
  const isArchived = typeof sys.archivedVersion === "number";
  if (isArchived) losses.count(place, "archived content", "nothing here is archived: it becomes a draft");
  if (isPublished && Number(sys.version) > Number(sys.publishedVersion) + 1)
    losses.count(
      place,
      "published texts that were changed since",
      "the export has only the changed ones: publish them",
    );
  const date = (name: string) => (typeof sys[name] === "string" ? (sys[name] as string) : null);
  const status = isPublished && !isArchived ? "published" : "draft";
  return {
    kind: "record",
    collection,
    key: sys.id,
    place,
    status,
    published: date("firstPublishedAt") ?? date("publishedAt"),
    created: date("createdAt"),
    updated: date("updatedAt"),
    fields,
  };
}

/** The value in the language that is read; the default language where a field has no others. */
function pickValue(
  localized: Localized,
  { localized: isLocalized = false }: Pick<Declared, "localized">,
  place: Place,
  { locales, defaultLocale, losses }: Reading,
): unknown {
  const chosen = (isLocalized ? locales : [defaultLocale]).find((code) => localized[code] !== undefined);
  for (const code of Object.keys(localized))
    if (code !== chosen) losses.count(place, `values in ${code}`, `convert again with --locale ${code} for these`);
  return chosen === undefined ? null : localized[chosen];
}

function readValue(
  type: string,
  field: Omit<Declared, "items">,
  value: unknown,
  place: Place,
  reading: Reading,
): SourceValue {
  const { losses, typesOfEntries, assets } = reading;
  if (value === null || value === undefined) return null;
  if (Array.isArray(value) && field.type === "Array") {
    const item = { ...field, ...(field as Declared).items } as Declared;
    return value.map((one) => readValue(type, item, one, place, reading)).filter((one) => one !== null);
  }
  if (field.type === "RichText") {
    const { html, lost } = renderRichText(value, (id) => findAsset(id, reading));
    for (const what of lost) losses.count(place, what, "rich text holds no entries: their text is kept, or nothing");
    return { kind: "html", html, folder: dirname(reading.file.path) };
  }
  if (field.type === "Text" && isMarkdown(type, field.id, reading.controls))
    return { kind: "html", html: renderMarkdown(String(value)), folder: null };
  if (field.type === "Link") {
    const { id } = (value as Link).sys;
    if (field.linkType === "Asset" && assets.has(id)) return makeMedia(id, reading);
    const collection = typesOfEntries.get(id);
    if (field.linkType === "Entry" && collection !== undefined) return { kind: "reference", collection, key: id };
    losses.count(
      place,
      `links of ${type}.${field.id}`,
      "lead to what the export lacks: export drafts and archived content",
    );
    return null;
  }
  return typeof value === "object" ? { kind: "json", value } : (value as SourceValue);
}

function findAsset(id: string, reading: Reading): Asset | null {
  const fields = reading.assets.get(id)?.fields;
  if (fields === undefined) return null;
  const pick = (name: string) =>
    [...reading.locales, reading.defaultLocale]
      .map((code) => fields[name]?.[code])
      .find((value) => value !== undefined);
  const file = pick("file") as { url?: string; fileName?: string; contentType?: string } | undefined;
  if (file?.url === undefined) return null;
  const address = new URL(file.url, "https://assets.ctfassets.net");
  // Downloaded files lie below the names of the hosts that they come from.
  const path = join(dirname(reading.file.path), address.host, decodeURIComponent(address.pathname));
  const isHere = isFile(path);
  return {
    address: address.href,
    path: isHere ? path : null,
    source: isHere ? `${address.host}${address.pathname}` : address.href,
    name: file.fileName ?? address.pathname.split("/").at(-1) ?? id,
    isImage: file.contentType?.startsWith("image/") === true,
    text: String(pick("description") ?? pick("title") ?? ""),
  };
}

function makeMedia(id: string, reading: Reading): SourceValue {
  const asset = findAsset(id, reading);
  if (asset === null) return null;
  const { path, name, address } = asset;
  return { kind: "media", path, name, address };
}

function findLinked(link: unknown): string {
  return (link as Link | undefined)?.sys?.id ?? "";
}
