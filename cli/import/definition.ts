/** Reads `app.json` and the files of content types, and checks their shape: their keys and the types of values. */
import * as v from "valibot";
import {
  APP_KEY,
  type ContentType,
  FIELD_NAME,
  FIELD_TYPES,
  isMediaBaseUrl,
  MAX_PER_PAGE,
  TYPE_SLUG,
} from "../../shared/api/catalog.ts";
import { ruleFaults } from "./rules.ts";
import { faultyLine, quote, unstorableIn } from "./text.ts";

/** An app as its bundle describes it. `media_base_url` is null where the server's setting is used. */
export type BundleApp = { readonly key: string; readonly name: string; readonly media_base_url: string | null };
export type BundleType = ContentType & { readonly published: boolean };

/**
 * The value that a file defines, or all faults of the file. `line` is the line on which the file stops being JSON, and
 * null for other faults.
 */
export type Definition<T> =
  | { readonly value: T }
  | { readonly faults: readonly string[]; readonly line: number | null };

export const A_SLUG = "1 to 64 characters from a-z, 0-9, - and _, beginning with a letter or digit";

// The message of each schema says what would be right: it continues the words "must be".
const text = v.string("a string");
const flag = v.boolean("true or false");
const names = v.array(v.string("the name of a field"), "an array of field names");
const slug = matching(TYPE_SLUG, A_SLUG);

const APP = {
  key: matching(APP_KEY, "1 to 128 characters from A-Z, a-z, 0-9, - and _, beginning with a letter or digit"),
  name: text,
  media_base_url: orNull(satisfying(v.string, isMediaBaseUrl, "an absolute http or https address without ? and #")),
};

const FIELD = {
  name: matching(FIELD_NAME, "1 to 63 characters from a-z, 0-9 and _, beginning with a letter"),
  type: v.picklist(FIELD_TYPES, `one of ${FIELD_TYPES.join(", ")}`),
  label: text,
  required: flag,
  searchable: flag,
  multiple: v.optional(flag, false),
  target: orNull(slug),
};

const TYPE = {
  slug,
  name: text,
  description: text,
  icon: text,
  position: orNull(satisfying(v.number, isWithin(-(2 ** 31), 2 ** 31 - 1), "a 32-bit integer")),
  published: v.optional(flag, true),
  default_sort: orNull(v.string("the name of a field, with or without a - before it")),
  per_page: orNull(satisfying(v.number, isWithin(1, MAX_PER_PAGE), `a whole number from 1 to ${MAX_PER_PAGE}`)),
  summary_fields: orNull(names),
  fields: v.array(objectOf(FIELD), "an array of fields"),
  filterable_fields: names,
  sortable_fields: names,
};

const appShape = objectOf(APP);
const typeShape = objectOf(TYPE);

export function readApp(json: string): Definition<BundleApp> {
  return parseDefinition(json, appShape, (value) => unknownKeyFaults(value, APP));
}

/** `name` is the file's name without its ending: `posts` for `content_types/posts.json`. */
export function readType(json: string, name: string): Definition<BundleType> {
  return parseDefinition(json, typeShape, (value) => [
    ...unknownKeyFaults(value, TYPE),
    ...unknownFieldKeyFaults(value),
    ...ruleFaults(value, name),
  ]);
}

type KeySchemas = Readonly<Record<string, v.GenericSchema>>;

/** `otherFaults` returns the faults that the shape does not cover. */
function parseDefinition<T>(
  json: string,
  shape: v.GenericSchema<unknown, T>,
  otherFaults: (value: unknown) => string[],
): Definition<T> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    // The message can quote several lines of the file, and a fault must be one line.
    const why = (error as Error).message.replace(/\s+/g, " ");
    return { faults: [`is not valid JSON: ${why}`], line: faultyLine(json) };
  }
  const parsed = v.safeParse(shape, value);
  const faults = [
    ...unstorableIn(json).map(({ fault }) => fault),
    ...(parsed.issues ?? []).map(shapeFault),
    ...otherFaults(value),
  ];
  return parsed.success && faults.length === 0 ? { value: parsed.output } : { faults, line: null };
}

function objectOf<const T extends KeySchemas>(
  schemas: T,
): v.GenericSchema<unknown, v.InferOutput<v.ObjectSchema<T, undefined>>> {
  const expected = ({ path }: v.BaseIssue<unknown>) => messageOf(schemas[String(path?.at(-1)?.key)]);
  return v.pipe(v.unknown(), v.check(isObject, "an object"), v.object(schemas, expected));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unknownKeyFaults(value: unknown, schemas: KeySchemas, place = ""): string[] {
  const unknownKeys = Object.keys(isObject(value) ? value : {}).filter((key) => !Object.hasOwn(schemas, key));
  const keys = Object.keys(schemas).join(", ");
  return unknownKeys.map((key) => `${subjectOf(place)}has an unknown key ${quote(key)}; the keys are ${keys}`);
}

function unknownFieldKeyFaults(type: unknown): string[] {
  const fields = isObject(type) && Array.isArray(type.fields) ? type.fields : [];
  return fields.flatMap((field, index) => unknownKeyFaults(field, FIELD, `fields[${index}]`));
}

function messageOf(schema: v.GenericSchema | undefined): string {
  return schema !== undefined && "message" in schema ? String(schema.message) : "";
}

function orNull<I, T>(schema: v.GenericSchema<I, T>) {
  return v.optional(v.nullable(schema), null);
}

function matching(pattern: RegExp, expected: string) {
  return v.pipe(v.string(expected), v.regex(pattern, expected));
}

function satisfying<T>(
  schema: (expected: string) => v.GenericSchema<T>,
  test: (value: T) => boolean,
  expected: string,
) {
  return v.pipe(schema(expected), v.check(test, expected));
}

function isWithin(least: number, most: number): (value: number) => boolean {
  return (value) => Number.isInteger(value) && value >= least && value <= most;
}

function shapeFault({ path, input, message }: v.BaseIssue<unknown>): string {
  const subject = subjectOf(placeOf(path ?? []));
  if (input === undefined) return `${subject}is missing: it must be ${message}`;
  return `${subject}must be ${message}, not ${quote(input)}`;
}

function subjectOf(place: string): string {
  return place === "" ? "" : `${quote(place)} `;
}

/** Formats a path as `fields[0].name`. */
function placeOf(path: readonly { readonly key: unknown }[]): string {
  return path
    .map(({ key }) => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "");
}
