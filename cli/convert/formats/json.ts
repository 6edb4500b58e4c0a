/**
 * Reads JSON: an array of objects, an object of such arrays by the names of their collections, NDJSON, or a folder of
 * such files. A folder of files with one object each is one collection.
 */
import { basename, dirname, extname } from "node:path";
import { takeColumns } from "../columns.ts";
import { readJsonValues } from "../json-values.ts";
import { type Place, type ReadContext, SourceError, type SourceRecord, type SourceValue } from "../record.ts";
import { listSources, readPieces, readTextLines, readWhole, type SourceFile } from "../source.ts";

const EXPECTED = "a .json, .ndjson or .jsonl file, or a folder of them";

export async function* readJson(source: string, context: ReadContext): AsyncGenerator<SourceRecord> {
  const files = await listSources(source, ["**/*.json", "**/*.ndjson", "**/*.jsonl"], EXPECTED);
  for (const file of files) {
    const items = /\.json$/i.test(file.name) ? readDocument(file, context) : readLines(file, context);
    for await (const { collection, value, place, key } of items) {
      if (!isObject(value))
        throw new SourceError(place, `must hold objects, not ${JSON.stringify(value).slice(0, 60)}`);
      const fields = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, readValue(one)]));
      yield { kind: "record", collection, key, place, ...takeColumns(fields) };
    }
  }
}

type Item = {
  readonly collection: string;
  readonly value: unknown;
  readonly place: Place;
  /** The name of a file that holds one object; else the fields tell. */
  readonly key: string | null;
};

async function* readLines(file: SourceFile, context: ReadContext): AsyncGenerator<Item> {
  const collection = nameFile(file);
  for await (const { text, place } of readTextLines(file, context)) {
    yield { collection, value: parseWhole(text, place), place, key: null };
  }
}

/** Reads an array in pieces, and anything else whole. */
async function* readDocument(file: SourceFile, context: ReadContext): AsyncGenerator<Item> {
  const place = { file: file.name, line: null };
  if (!(await isList(file))) yield* readMembers(parseWhole(await readWhole(file, context), place), file);
  else
    for await (const found of readJsonValues(file, ["$.*"], context))
      yield { collection: nameFile(file), value: found.value, place: found.place, key: null };
}

async function isList(file: SourceFile): Promise<boolean> {
  for await (const piece of readPieces(file, { advance: () => {} }))
    return /^\ufeff?\s*\[/.test(piece.toString("utf8"));
  return false;
}

function parseWhole(text: string, place: Place): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SourceError(place, `is not valid JSON: ${(error as Error).message}`);
  }
}

/** An object is one record, unless all that it has are arrays of objects: then these are collections. */
function* readMembers(value: unknown, file: SourceFile): Generator<Item> {
  const place = { file: file.name, line: null };
  const members = isObject(value) ? Object.entries(value) : [];
  const areLists = members.length > 0 && members.every(([, list]) => Array.isArray(list) && list.every(isObject));
  if (!areLists) yield { collection: basename(dirname(file.path)), value, place, key: nameFile(file) };
  else
    for (const [collection, list] of members)
      for (const record of list as unknown[]) yield { collection, value: record, place, key: null };
}

function nameFile({ name }: SourceFile): string {
  return basename(name, extname(name));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readValue(value: unknown): SourceValue {
  if (Array.isArray(value)) return value.map(readValue);
  return isObject(value) ? { kind: "json", value } : (value as SourceValue);
}
