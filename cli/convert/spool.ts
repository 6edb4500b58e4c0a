/** Keeps the records of a source on disk, by collection, while what they have in common is collected. */
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { addValue, type Facts, newFacts } from "./facts.ts";
import { type SourceCollection, SourceError, type SourceReader, type SourceRecord } from "./record.ts";
import { readTextLines } from "./source.ts";

/** A collection of the source, with its records in a file. */
export type Collection = {
  readonly name: string;
  readonly declared: Omit<SourceCollection, "kind" | "collection">;
  readonly facts: ReadonlyMap<string, Facts>;
  readonly records: number;
  /** Reads the records, in the order of the source. */
  readonly read: () => AsyncGenerator<SourceRecord>;
};

type Growing = {
  readonly name: string;
  readonly file: string;
  declared: Collection["declared"];
  readonly facts: Map<string, Facts>;
  records: number;
  lines: string[];
  length: number;
};

/** So much of a collection waits in memory before it is written. */
const BUFFERED = 1 << 18;

/** Reads the source once. The collections come in the order in which the source first names them. */
export async function spoolSource(items: ReturnType<SourceReader>, folder: string): Promise<Collection[]> {
  const collections = new Map<string, Growing>();
  const open = (name: string) => {
    const file = join(folder, `${collections.size}.ndjson`);
    const found = collections.get(name) ?? {
      name,
      file,
      declared: {},
      facts: new Map(),
      records: 0,
      lines: [],
      length: 0,
    };
    collections.set(name, found);
    return found;
  };
  for await (const item of items) {
    const collection = open(item.collection);
    if (item.kind === "record") await addRecord(collection, item);
    else collection.declared = { ...collection.declared, ...item };
  }
  for (const collection of collections.values()) await flush(collection);
  return [...collections.values()].map((collection) => ({ ...collection, read: () => readSpool(collection) }));
}

async function addRecord(collection: Growing, record: SourceRecord): Promise<void> {
  for (const [name, value] of Object.entries(record.fields)) {
    const facts = collection.facts.get(name) ?? newFacts(name);
    collection.facts.set(name, facts);
    addValue(facts, value);
  }
  if (collection.facts.size > MAX_NAMES) throw new SourceError(record.place, TOO_MANY_NAMES);
  const line = JSON.stringify(record);
  collection.records += 1;
  collection.lines.push(line);
  collection.length += line.length;
  if (collection.length > BUFFERED) await flush(collection);
}

/** Names that are data, such as one for each day, would become fields without an end. */
const MAX_NAMES = 5_000;
const TOO_MANY_NAMES = `has more than ${MAX_NAMES} differently named fields in one collection: names seem to be values here`;

async function flush(collection: Growing): Promise<void> {
  await appendFile(collection.file, collection.lines.map((line) => `${line}\n`).join(""));
  collection.lines = [];
  collection.length = 0;
}

async function* readSpool({ file, name }: Growing): AsyncGenerator<SourceRecord> {
  for await (const { text } of readTextLines({ path: file, name }, { advance: () => {} })) yield JSON.parse(text);
}
