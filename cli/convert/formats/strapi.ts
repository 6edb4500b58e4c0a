/** Reads Strapi 4 and 5: the archive of `strapi export --no-encrypt`, or the folder that it was unpacked into. */
import { basename, join } from "node:path";
import { isFolder } from "../../../shared/files.ts";
import { unpackArchive } from "../archive.ts";
import { countLosses, type Losses } from "../losses.ts";
import { type Place, type ReadContext, type SourceCollection, SourceError, type SourceRecord } from "../record.ts";
import { listSources, readTextLines } from "../source.ts";
import {
  type Archive,
  declareCollection,
  type Entity,
  makeMedia,
  nameCollection,
  type Row,
  readEntity,
  readText,
  type Schema,
} from "./strapi-record.ts";

type Survey = Archive & {
  /** When the published version of a document was last changed, by type, key and language. */
  readonly published: ReadonlyMap<string, string>;
  readonly locales: readonly string[];
};
type Side = { readonly type: string; readonly ref: number; readonly field?: string; readonly pos?: number };

const EXPECTED = "the archive of `strapi export --no-encrypt`, .tar or .tar.gz";
const FILE = "plugin::upload.file";
const LOCALE = "plugin::i18n.locale";

export async function* readStrapi(
  source: string,
  context: ReadContext,
): AsyncGenerator<SourceRecord | SourceCollection> {
  const root = await unpack(source, context);
  const survey = await surveyArchive(root);
  const locale = await chooseLocale(survey, context.locale, basename(source));
  const losses = countLosses(context);
  const reading = { ...survey, losses };
  const types = [...survey.schemas.values()].filter(({ uid }) => uid.startsWith("api::"));
  for (const schema of types) yield declareCollection(schema, survey.schemas);
  const files = types.some((schema) => nameCollection(schema) === "files") ? "uploads" : "files";
  for await (const { row, place } of readRows(root, "entities")) {
    const entity = row as Entity;
    const schema = survey.schemas.get(entity.type);
    if (entity.type === FILE) yield readFile(entity, files, place, survey);
    else if (schema !== undefined && entity.type.startsWith("api::") && isWanted(entity, locale, place, survey, losses))
      yield readEntity(entity, schema, place, reading);
  }
  losses.tell();
}

async function unpack(source: string, context: ReadContext): Promise<string> {
  if (isFolder(join(source, "entities"))) return source;
  const [file] = await listSources(source, ["*.tar", "*.tar.gz", "*.tgz", "*.enc"], EXPECTED);
  const place = { file: file?.name ?? source, line: null };
  if (file === undefined || /\.enc$/i.test(file.name))
    throw new SourceError(place, "is encrypted: export it again with `strapi export --no-encrypt`");
  await unpackArchive(file, context.scratch, context);
  if (!isFolder(join(context.scratch, "entities")))
    throw new SourceError(place, `holds no entities; specify ${EXPECTED}`);
  return context.scratch;
}

/** The lines of all files of one kind. */
async function* readRows(root: string, part: string): AsyncGenerator<{ readonly row: unknown; readonly place: Place }> {
  if (!isFolder(join(root, part))) return;
  for (const file of await listSources(root, [`${part}/*.jsonl`], EXPECTED))
    for await (const { text, place } of readTextLines(file, { advance: () => {} })) {
      try {
        yield { row: JSON.parse(text), place };
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        throw new SourceError(place, `is not valid JSON: ${error.message}`);
      }
    }
}

async function surveyArchive(root: string): Promise<Survey> {
  const schemas = new Map<string, Schema>();
  const keys = new Map<string, string>();
  const files = new Map<number, Row>();
  const published = new Map<string, string>();
  const locales: string[] = [];
  for await (const { row } of readRows(root, "schemas")) schemas.set((row as Schema).uid, row as Schema);
  for await (const { row, place } of readRows(root, "entities")) {
    const entity = row as Entity;
    const { type, id, data } = entity;
    if (typeof type !== "string" || typeof data !== "object" || data === null)
      throw new SourceError(place, `is no entity of Strapi, which has type, id and data; specify ${EXPECTED}`);
    keys.set(`${type} ${id}`, readText(data.documentId) ?? String(id));
    if (type === FILE) files.set(id, data);
    if (type === LOCALE) locales.push(String(data.code));
    if (data.documentId != null && data.publishedAt) published.set(nameVersion(entity), String(data.updatedAt));
  }
  return { root, schemas, keys, files, published, locales, links: await readLinks(root) };
}

/** A document of Strapi 5 has a version for editors and one for readers, in each of its languages. */
function nameVersion({ type, data }: Entity): string {
  return `${type} ${String(data.documentId)} ${String(data.locale ?? "")}`;
}

/** Each link belongs to the fields of both of its sides, in their orders. */
async function readLinks(root: string): Promise<Archive["links"]> {
  const links = new Map<string, Map<string, { type: string; ref: number; position: number }[]>>();
  const add = (own: Side, other: Side) => {
    if (own.field == null) return;
    const name = `${own.type} ${own.ref}`;
    const fields = links.get(name) ?? new Map<string, { type: string; ref: number; position: number }[]>();
    fields.set(own.field, [
      ...(fields.get(own.field) ?? []),
      { type: other.type, ref: other.ref, position: own.pos ?? 0 },
    ]);
    links.set(name, fields);
  };
  for await (const { row } of readRows(root, "links")) {
    const { left, right } = row as { readonly left: Side; readonly right: Side };
    add(left, right);
    add(right, left);
  }
  for (const fields of links.values()) for (const list of fields.values()) list.sort((a, b) => a.position - b.position);
  return links;
}

/** The language that is wanted, or else the default one. Throws SourceError when there is none of that name. */
async function chooseLocale({ root, locales }: Survey, wanted: string | null, file: string): Promise<string> {
  if (wanted !== null && !locales.includes(wanted)) {
    const there = locales.length === 0 ? "it has no languages" : `it has ${locales.toSorted().join(", ")}`;
    throw new SourceError({ file, line: null }, `has no locale ${JSON.stringify(wanted)}; ${there}`);
  }
  if (wanted !== null) return wanted;
  for await (const { row } of readRows(root, "configuration")) {
    const { key, value } = (row as { value?: { key?: string; value?: unknown } }).value ?? {};
    if (key === "plugin_i18n_default_locale" && typeof value === "string") return value;
  }
  return locales[0] ?? "en";
}

function isWanted(entity: Entity, locale: string, place: Place, { published }: Survey, losses: Losses): boolean {
  const { data } = entity;
  const own = readText(data.locale);
  if (own !== null && own !== locale) {
    losses.count(place, `entries in ${own}`, `convert again with --locale ${own} for these`);
    return false;
  }
  const shown = data.documentId == null || data.publishedAt ? undefined : published.get(nameVersion(entity));
  if (shown !== undefined && String(data.updatedAt) > shown)
    losses.count(
      place,
      "drafts newer than what is published",
      "what is published is read: publish the draft to carry it",
    );
  return shown === undefined;
}

function readFile({ id, data }: Entity, collection: string, place: Place, survey: Survey): SourceRecord {
  const fields = {
    name: readText(data.name),
    alternativeText: readText(data.alternativeText),
    caption: readText(data.caption),
    file: makeMedia(data, survey),
  };
  const created = readText(data.createdAt);
  const dates = { published: created, created, updated: readText(data.updatedAt) };
  return {
    kind: "record",
    collection,
    key: readText(data.documentId) ?? String(id),
    place,
    status: "published",
    ...dates,
    fields,
  };
}
