/** Reads Directus: a template, or the snapshot of a data model with the data of its collections as JSON. */
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { parse as parseYaml } from "yaml";
import { readJsonValues } from "../json-values.ts";
import { countLosses } from "../losses.ts";
import { type Place, type ReadContext, type SourceCollection, SourceError, type SourceRecord } from "../record.ts";
import { listSources, type SourceFile } from "../source.ts";
import { type File, nameJunction, type Reading, type Row, readRecord } from "./directus-record.ts";
import { declareCollection, type Junction, listParts, type Part, type Schema } from "./directus-schema.ts";

const EXPECTED =
  "the folder of a template, or one with the snapshot of the data model and a JSON file for each collection, named after it";

export async function* readDirectus(
  source: string,
  context: ReadContext,
): AsyncGenerator<SourceRecord | SourceCollection> {
  const listed = await listSources(source, ["**/*.json", "**/*.{yaml,yml}"], EXPECTED);
  const { schema, used } = await readSchema(listed, context);
  const names = new Set(schema.collections.map(({ collection }) => collection));
  const content = listed.filter((file) => !used.has(file.path) && names.has(nameOf(file)));
  if (content.length === 0)
    throw new SourceError({ file: source, line: null }, `has a data model and no data; specify ${EXPECTED}`);
  const folder = dirname((listed.find((file) => used.has(file.path)) as SourceFile).path);
  const parts = new Map(content.map((file) => [nameOf(file), listParts(nameOf(file), schema)]));
  const junctions = [...parts.values()].flat().flatMap((part) => ("junction" in part ? [part.junction] : []));
  const isBetween = (file: SourceFile) => junctions.some(({ collection }) => collection === nameOf(file));
  const rows = await readJunctions(content, junctions, context);
  const files = await readFiles(listed, context);
  const losses = countLosses(context);
  checkLocale(context.locale, [...parts.values()].flat(), rows, source);
  const reading = { folder, schema, files, rows, locale: context.locale, losses };
  for (const file of content.filter((one) => !isBetween(one) && !isLanguages(nameOf(one), junctions, schema))) {
    const own = parts.get(nameOf(file)) as readonly Part[];
    yield declareCollection(nameOf(file), own, schema);
    for await (const { row, place } of readRows(file, context))
      yield readRecord(nameOf(file), own, row, place, reading);
  }
  losses.tell();
}

/** From the files of a template, or from a snapshot. `used` has the paths that were read. */
async function readSchema(
  listed: readonly SourceFile[],
  context: ReadContext,
): Promise<{ readonly schema: Schema; readonly used: ReadonlySet<string> }> {
  const [fields] = listed.filter((file) => basename(file.path) === "fields.json");
  if (fields !== undefined) {
    const beside = ["collections", "fields", "relations"].map((name) => ({
      path: join(dirname(fields.path), `${name}.json`),
      name: join(dirname(fields.name), `${name}.json`),
    }));
    const [collections, own, relations] = await Promise.all(beside.map((file) => readData(file, context)));
    return { schema: { collections, fields: own, relations } as Schema, used: new Set(beside.map(({ path }) => path)) };
  }
  for (const file of listed.filter((one) => /snapshot|schema/i.test(basename(one.path)) || /ya?ml$/i.test(one.path))) {
    const found = (await readData(file, context)) as Partial<Schema> | null;
    if (found?.collections !== undefined && found.fields !== undefined && found.relations !== undefined)
      return { schema: found as Schema, used: new Set([file.path]) };
  }
  const place = { file: listed[0]?.name ?? "", line: null };
  throw new SourceError(place, `there is no data model of Directus beside it; specify ${EXPECTED}`);
}

async function readData(file: SourceFile, { advance }: ReadContext): Promise<unknown> {
  try {
    const text = await readFile(file.path, "utf8");
    advance(Buffer.byteLength(text));
    return /ya?ml$/i.test(file.path) ? parseYaml(text) : JSON.parse(text);
  } catch (error) {
    throw new SourceError({ file: file.name, line: null }, `cannot be read: ${(error as Error).message}`);
  }
}

/** The rows of a collection's file: an array of objects, or the one object of a singleton. */
async function* readRows(
  file: SourceFile,
  progress: Pick<ReadContext, "advance">,
): AsyncGenerator<{ readonly row: Row; readonly place: Place }> {
  let single = null as Record<string, unknown> | null;
  let place: Place = { file: file.name, line: 1 };
  for await (const { value, path, place: found } of readJsonValues(file, ["$.*"], progress)) {
    if (typeof path[0] === "string") single = { ...(single ?? {}), [path[0]]: value };
    else if (typeof value === "object" && value !== null) yield { row: value as Row, place: found };
    else throw new SourceError(found, `must hold objects, not ${JSON.stringify(value)}; specify ${EXPECTED}`);
    place = single === null ? found : place;
  }
  if (single !== null) yield { row: single, place };
}

async function readJunctions(
  content: readonly SourceFile[],
  junctions: readonly Junction[],
  context: ReadContext,
): Promise<Reading["rows"]> {
  const rows = new Map<string, Map<string, Row[]>>();
  for (const junction of junctions) {
    const found = new Map<string, Row[]>();
    const file = content.find((one) => nameOf(one) === junction.collection);
    if (file !== undefined)
      for await (const { row } of readRows(file, context)) {
        const parent = String(row[junction.parent]);
        found.set(parent, [...(found.get(parent) ?? []), row]);
      }
    const { sort } = junction;
    if (sort !== null) for (const own of found.values()) own.sort((a, b) => Number(a[sort]) - Number(b[sort]));
    rows.set(nameJunction(junction), found);
  }
  return rows;
}

async function readFiles(listed: readonly SourceFile[], context: ReadContext): Promise<Reading["files"]> {
  const list = listed.find((file) => /^(?:directus_)?files\.json$/.test(basename(file.path)));
  const files = new Map<string, File>();
  if (list !== undefined) for await (const { row } of readRows(list, context)) files.set(String(row.id), row as File);
  return files;
}

/** Throws SourceError for a language that no translation has. */
function checkLocale(locale: string | null, parts: readonly Part[], rows: Reading["rows"], source: string): void {
  if (locale === null) return;
  const known = new Set<string>();
  for (const part of parts)
    if (part.kind === "translations")
      for (const own of rows.get(nameJunction(part.junction))?.values() ?? [])
        for (const row of own) known.add(String(row[part.junction.other]));
  if (known.has(locale)) return;
  const there = known.size === 0 ? "there are no translations" : `it has ${[...known].sort().join(", ")}`;
  throw new SourceError({ file: source, line: null }, `has no language ${JSON.stringify(locale)}; ${there}`);
}

/** The list of languages itself, when nothing but translations refers to it. */
function isLanguages(collection: string, junctions: readonly Junction[], { relations }: Schema): boolean {
  const between = junctions.filter(({ target }) => target === collection).map((junction) => junction.collection);
  const referring = relations.filter((one) => one.related_collection === collection);
  return (
    between.length > 0 && /lang|locale/i.test(collection) && referring.every((one) => between.includes(one.collection))
  );
}

function nameOf({ path }: SourceFile): string {
  return basename(path, ".json");
}
