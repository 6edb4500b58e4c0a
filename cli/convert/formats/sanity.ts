/** Reads Sanity: what `sanity dataset export` writes, as its archive, unpacked, or as NDJSON alone. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isFile } from "../../../shared/files.ts";
import { unpackArchive } from "../archive.ts";
import { countLosses, type Losses } from "../losses.ts";
import { type Place, type ReadContext, SourceError, type SourceRecord, type SourceValue } from "../record.ts";
import { listSources, readTextLines, type SourceFile } from "../source.ts";
import { isPortableText, renderPortableText } from "./sanity-text.ts";

type Value = { readonly [name: string]: unknown };
type Document = Value & { readonly _id: string; readonly _type: string };

/** What documents refer to before or after they are read: found by a first pass. */
type Dataset = {
  readonly file: SourceFile;
  /** The types of all documents of the site, by their ids without `drafts.` */
  readonly types: ReadonlyMap<string, string>;
  readonly published: ReadonlySet<string>;
  /** What assets.json or documents of assets tell of a file, by an id such as `image-<digest>`. */
  readonly assets: ReadonlyMap<string, Asset>;
};
type Asset = { readonly originalFilename?: string; readonly url?: string };
type Reading = Dataset & { readonly losses: Losses; readonly place: Place };

const EXPECTED = "what `sanity dataset export` writes: an archive .tar.gz, its folder, or a file .ndjson";
/** Documents of Sanity itself and its plugins, and of files: these become values of fields. */
const INTERNAL = /^(?:system|sanity|assist|mux)\./;
const DRAFT = /^drafts\./;

export async function* readSanity(source: string, context: ReadContext): AsyncGenerator<SourceRecord> {
  const file = await findData(source, context);
  const dataset = await surveyDataset(file, context.locale);
  const losses = countLosses(context);
  const progress = file.path.startsWith(context.scratch) ? { advance: () => {} } : context;
  for await (const { document, place } of readDocuments(file, progress)) {
    const record = readDocument(document, { ...dataset, losses, place });
    if (record !== null) yield record;
  }
  losses.tell();
}

/** The file of documents, out of the archive if need be. */
async function findData(source: string, context: ReadContext): Promise<SourceFile> {
  const [file, another] = await listSources(source, ["**/*.ndjson", "*.tar", "*.tar.gz", "*.tgz"], EXPECTED);
  if (file === undefined || another !== undefined)
    throw new SourceError({ file: source, line: null }, `holds more than one export; specify ${EXPECTED}`);
  if (/\.ndjson$/i.test(file.name)) return file;
  await unpackArchive(file, context.scratch, context);
  const [data] = await listSources(context.scratch, ["**/*.ndjson"], EXPECTED);
  return data as SourceFile;
}

async function surveyDataset(file: SourceFile, locale: string | null): Promise<Dataset> {
  if (locale !== null)
    throw new SourceError({ file: file.name, line: null }, "has no languages that --locale could choose: leave it out");
  const types = new Map<string, string>();
  const published = new Set<string>();
  const assets = new Map<string, Asset>();
  const told = join(dirname(file.path), "assets.json");
  if (isFile(told)) {
    const known = parseJson(await readFile(told, "utf8"), { file: "assets.json", line: null });
    for (const [id, asset] of Object.entries(known as Record<string, Asset>)) assets.set(id, asset);
  }
  for await (const { document } of readDocuments(file, { advance: () => {} })) {
    const { _id, _type } = document;
    if (/^sanity\.(?:image|file)Asset$/.test(_type)) assets.set(readAssetId(_id), document as Asset);
    if (isInternal(document)) continue;
    types.set(_id.replace(DRAFT, ""), _type);
    if (!DRAFT.test(_id)) published.add(_id);
  }
  return { file, types, published, assets };
}

async function* readDocuments(
  file: SourceFile,
  progress: Pick<ReadContext, "advance">,
): AsyncGenerator<{ readonly document: Document; readonly place: Place }> {
  for await (const { text, place } of readTextLines(file, progress)) {
    const document = parseJson(text, place) as Document;
    if (typeof document?._id !== "string" || typeof document._type !== "string")
      throw new SourceError(place, `is no document of Sanity, which has _id and _type; specify ${EXPECTED}`);
    yield { document, place };
  }
}

function parseJson(text: string, place: Place): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SourceError(place, `is not valid JSON: ${(error as Error).message}`);
  }
}

function isInternal({ _id, _type }: Document): boolean {
  return _id.startsWith("_.") || INTERNAL.test(_type) || _id.startsWith("versions.");
}

function readDocument(document: Document, reading: Reading): SourceRecord | null {
  const { _id, _type, _createdAt, _updatedAt } = document;
  const { published, losses, place } = reading;
  const key = _id.replace(DRAFT, "");
  const isDraft = DRAFT.test(_id);
  if (_id.startsWith("versions."))
    losses.count(place, "versions of releases", "only published documents and drafts are read");
  if (isInternal(document)) return null;
  if (isDraft && published.has(key)) {
    losses.count(
      place,
      "drafts newer than what is published",
      "what is published is read: publish the draft to carry it",
    );
    return null;
  }
  const fields: Record<string, SourceValue> = {};
  for (const [name, value] of Object.entries(document))
    if (!name.startsWith("_")) addField(fields, name, value, reading);
  const created = readText(_createdAt);
  const status = isDraft ? "draft" : "published";
  return {
    kind: "record",
    collection: _type,
    key,
    place,
    status,
    published: readText(document.publishedAt) ?? (status === "published" ? created : null),
    created,
    updated: readText(_updatedAt),
    fields,
  };
}

function addField(fields: Record<string, SourceValue>, name: string, value: unknown, reading: Reading): void {
  fields[name] = readValue(name, value, reading);
  if (!isObject(value) || findFile(value) === null) return;
  // What editors write about an image stands beside it, such as `cover_alt`.
  for (const [part, told] of Object.entries(value)) {
    if (part.startsWith("_") || part === "asset") continue;
    if (part === "hotspot" || part === "crop")
      reading.losses.count(reading.place, `${part} of ${name}`, "files are whole here: crop the image");
    else fields[`${name}_${part}`] = readValue(`${name}.${part}`, told, reading);
  }
}

function readValue(name: string, value: unknown, reading: Reading): SourceValue {
  if (isPortableText(value)) {
    const findImage = (image: Value) => makeMedia(image, reading);
    const { html, lost } = renderPortableText(value, findImage, dirname(reading.file.path));
    for (const what of lost)
      reading.losses.count(reading.place, `${what} in ${name}`, "HTML has no such thing: it is left out");
    return { kind: "html", html, folder: dirname(reading.file.path) };
  }
  if (Array.isArray(value)) {
    const items = value.map((one) => readValue(name, one, reading)).filter((one) => one !== null);
    const parts = value.filter((one) => isObject(one) && findFile(one) !== null && Object.keys(one).some(isOwnPart));
    if (parts.length > 0)
      reading.losses.count(
        reading.place,
        `texts beside the files of ${name}`,
        "a list of files has none: give each a document",
        parts.length,
      );
    return items;
  }
  if (!isObject(value)) return value as SourceValue;
  if (value._type === "slug") return readText(value.current);
  if (typeof value._ref === "string") return readReference(name, value._ref, reading);
  const media = makeMedia(value, reading);
  if (media !== null) return media;
  const fields: Record<string, SourceValue> = {};
  for (const [part, one] of Object.entries(value))
    if (part === "_type") fields._type = String(one);
    else if (!part.startsWith("_")) addField(fields, part, one, reading);
  return { kind: "object", fields };
}

function readReference(name: string, ref: string, { types, losses, place }: Reading): SourceValue {
  const key = ref.replace(DRAFT, "");
  const collection = types.get(key);
  if (collection !== undefined) return { kind: "reference", collection, key };
  losses.count(place, `references of ${name}`, "lead to what the export lacks");
  return null;
}

/** Where an image or a file is: as an export writes it, or as documents refer to assets. */
function findFile({ _sanityAsset, asset }: Value): string | null {
  if (typeof _sanityAsset === "string") return _sanityAsset.replace(/^\w+@(?:file:\/\/\.?\/?)?/, "");
  if (!isObject(asset)) return null;
  if (typeof asset._sanityAsset === "string") return findFile(asset);
  const [, kind, name, ending] = /^(image|file)-(.+)-(\w+)$/.exec(readText(asset._ref) ?? "") ?? [];
  return kind === undefined ? null : `${kind}s/${name}.${ending}`;
}

function makeMedia(value: Value, { file, assets }: Reading): Extract<SourceValue, { kind: "media" }> | null {
  const found = findFile(value);
  if (found === null) return null;
  const base = found.split("/").at(-1) as string;
  const kind = found.startsWith("files/") ? "file" : "image";
  const asset = assets.get(readAssetId(`${kind}-${base.replace(/\.\w+$/, "")}`));
  const isAddress = /^https?:/.test(found);
  const path = join(dirname(file.path), found);
  return {
    kind: "media",
    path: !isAddress && isFile(path) ? path : null,
    name: asset?.originalFilename ?? base,
    address: isAddress ? found : (asset?.url ?? null),
  };
}

/** Without size and ending: `image-<digest>`. */
function readAssetId(id: string): string {
  return /^(?:image|file)-[^-.]+/.exec(id)?.[0] ?? id;
}

function isOwnPart(name: string): boolean {
  return !name.startsWith("_") && !["asset", "hotspot", "crop"].includes(name);
}

function readText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function isObject(value: unknown): value is Value {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
