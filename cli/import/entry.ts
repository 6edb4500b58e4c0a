/** Reads and checks one line of an entries file. */
import type { Field } from "../../shared/catalog.ts";
import { canonicalInstant } from "./instant.ts";
import { quote } from "./problem.ts";
import { unstorableIn } from "./text.ts";
import { A_UUID, AN_INSTANT, isUuid, valueFault } from "./value.ts";

/**
 * An entry to import. `text` is the unchanged line and holds the data: the database reads a number such as
 * 9007199254740993 exactly, JSON.parse does not. The timestamps are canonical (instant.ts), the id is in lower case.
 * `published_at` is null for a draft without that timestamp.
 */
export type Entry = {
  readonly text: string;
  readonly id: string;
  readonly published_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
};

/** A valid entry, or all faults of its line. */
export type EntryOrFaults = { readonly entry: Entry } | { readonly faults: readonly string[] };

/** Fields by name, prepared once for all lines of a file. */
export type FieldMap = ReadonlyMap<string, Field>;

const KEYS = ["id", "status", "published_at", "created_at", "updated_at", "data"];
const STATUSES = ["draft", "published"];

export function readEntry(text: string, fields: FieldMap): EntryOrFaults {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { faults: [`is not valid JSON: ${(error as Error).message}`] };
  }
  if (!isObject(value)) return { faults: [`must be a JSON object, not ${quote(value)}`] };
  // A Map, because an object inherits keys such as `__proto__` and `constructor` even when the line lacks them.
  const line = new Map(Object.entries(value));
  const instants = {
    published_at: instant(line.get("published_at")),
    created_at: instant(line.get("created_at")),
    updated_at: instant(line.get("updated_at")),
  };
  const faults = [...lineFaults(line, instants), ...dataFaults(line.get("data"), fields), ...storageFaults(text)];
  return faults.length > 0 ? { faults } : { entry: entryOf(text, line, instants) };
}

/** The timestamps of a line in canonical form, null where the line has none that can be read. */
type Instants = {
  readonly published_at: string | null;
  readonly created_at: string | null;
  readonly updated_at: string | null;
};

function entryOf(text: string, line: ReadonlyMap<string, unknown>, instants: Instants): Entry {
  const { published_at, created_at, updated_at } = instants;
  const id = String(line.get("id")).toLowerCase();
  return { text, id, published_at, created_at: created_at ?? "", updated_at: updated_at ?? "" };
}

function instant(value: unknown): string | null {
  return typeof value === "string" ? canonicalInstant(value) : null;
}

function lineFaults(line: ReadonlyMap<string, unknown>, instants: Instants): string[] {
  const faults = [...line.keys()]
    .filter((key) => !KEYS.includes(key))
    .map((key) => `has an unknown key ${quote(key)}; the keys are ${KEYS.join(", ")}`);
  const expect = (key: string, right: boolean, expected: string) => {
    if (!right) faults.push(`${quote(key)} must be ${expected}, not ${quote(line.get(key))}`);
  };
  expect("id", isUuid(line.get("id")), A_UUID);
  expect("status", STATUSES.includes(line.get("status") as string), '"draft" or "published"');
  const unpublished = line.get("status") !== "published" && (line.get("published_at") ?? null) === null;
  expect("published_at", unpublished || instants.published_at !== null, AN_INSTANT);
  expect("created_at", instants.created_at !== null, AN_INSTANT);
  expect("updated_at", instants.updated_at !== null, AN_INSTANT);
  expect("data", isObject(line.get("data")), "an object");
  return faults;
}

function dataFaults(data: unknown, fields: FieldMap): string[] {
  if (!isObject(data)) return [];
  const values = data as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(values).filter((name) => !fields.has(name));
  const faults = unknown.map((name) => `has an unknown field ${quote(name)}; ${knownNames(fields)}`);
  for (const field of fields.values()) {
    const fault = valueFault(field, Object.hasOwn(values, field.name) ? values[field.name] : undefined);
    if (fault !== null) faults.push(`field ${quote(field.name)} ${fault}`);
  }
  return faults;
}

function knownNames(fields: FieldMap): string {
  return fields.size === 0 ? "the type has none" : `the fields are ${[...fields.keys()].join(", ")}`;
}

function storageFaults(text: string): string[] {
  return unstorableIn(text).map(({ field, fault }) => (field === null ? fault : `field ${quote(field)} ${fault}`));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
