/** Reads and checks one line of an entries file. */
import type { Field, FieldType } from "../../shared/api/catalog.ts";
import { isDate, readUuid } from "../../shared/api/value.ts";
import { quote, shorten } from "./report.ts";
import { findRepeatedKeys, inexactNumbersIn, unstorableIn } from "./text.ts";

/**
 * An entry to import. `text` is the unchanged line and holds the data: the database reads a number such as
 * 9007199254740993 exactly, JSON.parse does not. The timestamps are canonical (parseTimestamp), the id is in lower case.
 * `published_at` is null for a draft without that timestamp.
 */
export type Entry = {
  readonly text: string;
  readonly id: string;
  readonly published_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** The files that its media fields name. */
  readonly media: readonly { readonly field: string; readonly name: string }[];
};

/** A valid entry, or all faults of its line. */
type EntryOrFaults = { readonly entry: Entry } | { readonly faults: readonly string[] };

/** What is known of a type's fields, prepared once for all lines of a file. */
export type KnownFields = {
  /** The fields whose values are checked: all, unless the bundle defines some wrongly. */
  readonly checked: ReadonlyMap<string, Field>;
  /** The names of all fields; null when the bundle does not tell them all, so that any name may be right. */
  readonly names: ReadonlySet<string> | null;
  readonly hasNumbers: boolean;
  /** Names of the media fields. */
  readonly media: readonly string[];
};

/** `names` are those of the fields, unless there are more fields than these, or unknown ones. */
export function knowFields(
  fields: readonly Field[],
  names: KnownFields["names"] = new Set(fields.map(({ name }) => name)),
): KnownFields {
  const checked = new Map(fields.map((field) => [field.name, field]));
  const media = fields.filter(({ type }) => type === "media").map(({ name }) => name);
  return { checked, names, hasNumbers: fields.some(({ type }) => type === "number"), media };
}

export const NOTHING_KNOWN = knowFields([], null);

const KEYS = ["id", "status", "published_at", "created_at", "updated_at", "data"];
const STATUSES = ["draft", "published"];

export function readEntry(text: string, fields: KnownFields): EntryOrFaults {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { faults: [`is not valid JSON: ${(error as Error).message}`] };
  }
  if (!isObject(value)) return { faults: [`must be a JSON object, not ${quote(value)}`] };
  // A Map, because an object inherits keys such as `__proto__` and `constructor` even when the line lacks them.
  const line = new Map(Object.entries(value));
  const timestamps = {
    published_at: canonicalTimestamp(line.get("published_at")),
    created_at: canonicalTimestamp(line.get("created_at")),
    updated_at: canonicalTimestamp(line.get("updated_at")),
  };
  const repeated = findRepeatedKeys(text, value).map(({ key }) => `has the key ${quote(key)} twice`);
  const faults = [
    ...lineFaults(line, timestamps),
    ...dataFaults(line.get("data"), fields),
    ...storageFaults(text),
    ...repeated,
  ];
  return faults.length > 0 ? { faults } : { entry: makeEntry(text, line, timestamps, fields) };
}

/** The timestamps of a line in canonical form, null where the line has none that can be read. */
type Timestamps = {
  readonly published_at: string | null;
  readonly created_at: string | null;
  readonly updated_at: string | null;
};

function makeEntry(
  text: string,
  line: ReadonlyMap<string, unknown>,
  timestamps: Timestamps,
  { media: names }: KnownFields,
): Entry {
  const { published_at, created_at, updated_at } = timestamps;
  const id = String(line.get("id")).toLowerCase();
  const media = findNamedMedia(line.get("data") as Readonly<Record<string, unknown>>, names);
  return { text, id, published_at, created_at: created_at ?? "", updated_at: updated_at ?? "", media };
}

/** Exports write an empty name for "no file". */
function findNamedMedia(data: Readonly<Record<string, unknown>>, fields: readonly string[]): Entry["media"] {
  return fields.flatMap((field) =>
    [data[field] ?? []]
      .flat()
      .filter((name): name is string => typeof name === "string" && name !== "")
      .map((name) => ({ field, name })),
  );
}

function canonicalTimestamp(value: unknown): string | null {
  return typeof value === "string" ? parseTimestamp(value) : null;
}

function lineFaults(line: ReadonlyMap<string, unknown>, timestamps: Timestamps): string[] {
  const faults = [...line.keys()]
    .filter((key) => !KEYS.includes(key))
    .map((key) => `has an unknown key ${quote(key)}; the keys are ${KEYS.join(", ")}`);
  const expect = (key: string, right: boolean, expected: string) => {
    if (!right) faults.push(`${quote(key)} must be ${expected}, not ${quote(line.get(key))}`);
  };
  expect("id", isUuid(line.get("id")), A_UUID);
  expect("status", STATUSES.includes(line.get("status") as string), '"draft" or "published"');
  const unpublished = line.get("status") !== "published" && (line.get("published_at") ?? null) === null;
  expect("published_at", unpublished || timestamps.published_at !== null, A_TIMESTAMP);
  expect("created_at", timestamps.created_at !== null, A_TIMESTAMP);
  expect("updated_at", timestamps.updated_at !== null, A_TIMESTAMP);
  expect("data", isObject(line.get("data")), "an object");
  return faults;
}

function dataFaults(data: unknown, fields: KnownFields): string[] {
  if (!isObject(data)) return [];
  const values = data as Readonly<Record<string, unknown>>;
  const { names } = fields;
  const unknown = names === null ? [] : Object.keys(values).filter((name) => !names.has(name));
  const faults = unknown.map((name) => `has an unknown field ${quote(name)}; ${listNames([...(names ?? [])])}`);
  for (const field of fields.checked.values()) {
    const fault = valueFault(field, Object.hasOwn(values, field.name) ? values[field.name] : undefined);
    if (fault !== null) faults.push(`field ${quote(field.name)} ${fault}`);
  }
  return faults;
}

function listNames(names: readonly string[]): string {
  return names.length === 0 ? "the type has none" : `the fields are ${names.join(", ")}`;
}

function storageFaults(text: string): string[] {
  return unstorableIn(text).map(({ field, fault }) => (field === null ? fault : `field ${quote(field)} ${fault}`));
}

/** The number fields of an entry whose number no double has, with what that means (shared/contract.md section 4). */
export function findInexact({ text }: Entry, { checked, hasNumbers }: KnownFields): { field: string; text: string }[] {
  const numbers = hasNumbers ? inexactNumbersIn(text) : [];
  return numbers
    .filter(({ field }) => checked.get(field)?.type === "number")
    .map(({ field, number }) => ({
      field,
      text: `field ${quote(field)} is ${shorten(number)}, but filters and sorts compare numbers as doubles, and take it for ${Number(number)}`,
    }));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Checks whether a value fits its field. Whether the database can store its text is checked by `text.ts`.

const A_TIMESTAMP =
  "a timestamp with an offset of less than 16 hours such as 2026-01-20T15:30:00Z, in the years 0001 to 9999 of UTC";
const A_UUID = "a UUID such as 3f2c1a9e-7b4d-4c1e-9a55-0d6b8f7e2c10";

/** Whether a value fits a type of field, and in words what does. */
type Rule = { readonly fits: (value: unknown) => boolean; readonly expected: string };

const RULES: Readonly<Record<FieldType, Rule>> = {
  text: { fits: isString, expected: "a string" },
  rich_text: { fits: isString, expected: "a string of HTML" },
  select: { fits: isString, expected: "a string" },
  media: { fits: isString, expected: "a file name" },
  relation: { fits: isUuid, expected: A_UUID },
  number: { fits: Number.isFinite, expected: "a number within ±1.797e308" },
  boolean: { fits: (value) => typeof value === "boolean", expected: "true or false" },
  date: { fits: (value) => isString(value) && isDate(value), expected: "a date such as 2026-01-20" },
  datetime: { fits: (value) => canonicalTimestamp(value) !== null, expected: A_TIMESTAMP },
  json: { fits: () => true, expected: "a JSON value" },
};

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isUuid(value: unknown): boolean {
  return isString(value) && readUuid(value) !== null;
}

/** Says what is wrong with a field's value; null when it fits. `undefined` means that the entry lacks the field. */
function valueFault({ type, required, multiple }: Field, value: unknown): string | null {
  const { fits, expected: one } = RULES[type];
  const expected = multiple ? `an array in which each element is ${one}` : one;
  if (value === undefined || value === null) {
    return required ? `is required: it must be ${expected}, not ${quote(value)}` : null;
  }
  const values = multiple ? value : [value];
  if (!Array.isArray(values)) return `must be ${expected}, not ${quote(value)}`;
  const misfit = values.findIndex((element) => !fits(element));
  if (misfit < 0) return null;
  return `must be ${expected}, ${multiple ? `but element ${misfit + 1} is` : "not"} ${quote(values[misfit])}`;
}

// Reads the timestamps of a bundle. `precast.instant` in 0002_values.sql must accept the same texts.

const TIMESTAMP =
  /^(\d{4}-\d{2}-\d{2})T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?(?:Z|([+-](?:0\d|1[0-5]):[0-5]\d))$/;

/**
 * The time in UTC, cut off at the millisecond: `2026-01-20T15:30:00.000Z`. Null when the text is not a timestamp with
 * an offset or `Z`, or lies outside of the years 1 to 9999 of UTC.
 */
function parseTimestamp(text: string): string | null {
  const [, day = "", time, second = "00", fraction = "", offset = "+00:00"] = TIMESTAMP.exec(text) ?? [];
  if (!isDate(day)) return null;
  const local = `${day}T${time}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}`;
  // Most timestamps are in UTC already, and a Date takes ten times as long as the rest of this function.
  if (offset.endsWith("00:00")) return `${local}Z`;
  const inUtc = new Date(`${local}${offset}`);
  // On the first and the last day of that range, an offset can lead to a year outside of it.
  const year = inUtc.getUTCFullYear();
  return year < 1 || year > 9999 ? null : inUtc.toISOString();
}
