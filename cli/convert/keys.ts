/** Gives each record a key, and finds records by their keys, slugs and names. */
import { createHash } from "node:crypto";
import { readPlain } from "./facts.ts";
import type { SourceRecord } from "./record.ts";

/** The records of a collection, as others name them. */
export type Keys = {
  readonly has: (key: string) => boolean;
  /** The key of the record that has this key, slug or name; null when there is none. */
  readonly find: (value: string) => string | null;
};

/** The key of a record. To be called for all records of a collection, in their order. */
export type MakeKey = (record: SourceRecord) => string;

/** Fields that tell records apart, the best first. */
const KEY_FIELDS = ["id", "_id", "uuid", "key", "slug", "code", "sku"];

/**
 * The field that makes the keys of a collection whose source tells none: one whose values all differ, by its name or
 * because it comes first. Null when there is none.
 */
export async function findKeyField(records: AsyncIterable<SourceRecord>): Promise<string | null> {
  let unique: Map<string, Set<string>> | null = null;
  for await (const { key, fields } of records) {
    if (key !== null) return null;
    unique ??= new Map(candidatesIn(Object.keys(fields)).map((name) => [name, new Set()]));
    for (const [name, values] of unique) {
      const value = readPlain(fields[name] ?? null);
      const isNew = value !== null && value !== "" && fields[name] !== undefined && !values.has(value);
      if (isNew) values.add(value);
      else unique.delete(name);
    }
    if (unique.size === 0) return null;
  }
  return [...(unique?.keys() ?? [])][0] ?? null;
}

function candidatesIn(names: readonly string[]): string[] {
  const known = KEY_FIELDS.flatMap((key) => names.filter((name) => name.toLowerCase() === key));
  return [...new Set([...known, ...names.slice(0, 1)])];
}

/** Without a key of the source and a field that makes one, a record is known by all that it says. */
export function openKeyMaker(field: string | null): MakeKey {
  const repeated = new Map<string, number>();
  return ({ key, fields }) => {
    if (key !== null) return key;
    if (field !== null) return readPlain(fields[field] ?? null) ?? "";
    const digest = createHash("sha256").update(JSON.stringify(fields)).digest("hex");
    const count = (repeated.get(digest) ?? 0) + 1;
    repeated.set(digest, count);
    return count === 1 ? digest : `${digest} ${count}`;
  };
}

/** With more records, slugs and names are not looked up, so that memory stays bounded. */
const MAX_NAMED = 200_000;

export async function indexKeys(records: AsyncIterable<SourceRecord>, makeKey: MakeKey): Promise<Keys> {
  const keys = new Set<string>();
  const slugs = new Map<string, string>();
  const names = new Map<string, string>();
  for await (const record of records) {
    const key = makeKey(record);
    keys.add(key);
    if (keys.size > MAX_NAMED) continue;
    for (const [name, value] of Object.entries(record.fields)) {
      const index = /^slug$/i.test(name) ? slugs : /^(name|title|label|code)$/i.test(name) ? names : null;
      const text = index === null ? null : readPlain(value);
      if (index !== null && text !== null && !index.has(text)) index.set(text, key);
    }
  }
  if (keys.size > MAX_NAMED) for (const index of [slugs, names]) index.clear();
  return {
    has: (key) => keys.has(key),
    find: (value) => (keys.has(value) ? value : (slugs.get(value) ?? names.get(value) ?? null)),
  };
}
