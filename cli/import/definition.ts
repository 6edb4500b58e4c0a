/** `app.json` and the files of content types: their shape, and the rules of contract.md section 2. */
import * as v from "valibot";
import {
  APP_KEY,
  type ContentType,
  canFilter,
  canSort,
  FIELD_NAME,
  FIELD_TYPES,
  type Field,
  isTimestamp,
  MAX_PER_PAGE,
  MULTIPLE_TYPES,
  RESERVED_NAMES,
  SEARCHABLE_TYPES,
  TIMESTAMPS,
  TYPE_SLUG,
} from "../../shared/catalog.ts";
import { quote } from "./problem.ts";
import { unstorableIn } from "./text.ts";

/** An app as its bundle describes it. `media_base_url` is null where the server's setting is used. */
export type BundleApp = { readonly key: string; readonly name: string; readonly media_base_url: string | null };
export type BundleType = ContentType & { readonly published: boolean };

/** What a file defines, or all that is wrong with it. */
export type Definition<T> = { readonly value: T } | { readonly faults: readonly string[] };

// Each schema is told, as its message, what would be right: "must be …".
const text = v.string("a string");
const flag = v.boolean("true or false");
const names = v.array(v.string("the name of a field"), "an array of field names");
const slug = matching(TYPE_SLUG, "1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit");

const OWN = "the fields of this type";
const FILTERABLE = `${OWN} but rich_text and json, and ${TIMESTAMPS.join(", ")}`;
const SORTABLE = `${OWN} but rich_text, json, relation and multiple ones, and ${TIMESTAMPS.join(", ")}`;

const APP = {
  key: matching(APP_KEY, "1 to 128 of A-Z, a-z, 0-9, - and _, beginning with a letter or digit"),
  name: text,
  media_base_url: orNull(meeting(v.string, isWebAddress, "an absolute http or https address without ? and #")),
};

const FIELD = {
  name: matching(FIELD_NAME, "1 to 63 of a-z, 0-9 and _, beginning with a letter"),
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
  position: orNull(meeting(v.number, isWithin(-(2 ** 31), 2 ** 31 - 1), "a whole number of 32 bits")),
  published: v.optional(flag, true),
  default_sort: orNull(v.string("the name of a field, with or without a - before it")),
  per_page: orNull(meeting(v.number, isWithin(1, MAX_PER_PAGE), `a whole number from 1 to ${MAX_PER_PAGE}`)),
  summary_fields: orNull(names),
  fields: v.array(shaped(FIELD), "an array of fields"),
  filterable_fields: names,
  sortable_fields: names,
};

const appShape = shaped(APP);
const typeShape = shaped(TYPE);

export function readApp(json: string): Definition<BundleApp> {
  return define(json, appShape, (value) => othersIn(value, APP));
}

/** `name` is what the file is called: `posts` for `content_types/posts.json`. */
export function readType(json: string, name: string): Definition<BundleType> {
  const type = define(json, typeShape, (value) => [...othersIn(value, TYPE), ...othersInFields(value)]);
  if ("faults" in type) return type;
  const faults = typeFaults(type.value, name);
  return faults.length > 0 ? { faults } : type;
}

type Entries = Readonly<Record<string, v.GenericSchema>>;

/** `others` tells of keys that nobody knows. */
function define<T>(
  json: string,
  shape: v.GenericSchema<unknown, T>,
  others: (value: unknown) => string[],
): Definition<T> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return { faults: [`is not valid JSON: ${(error as Error).message}`] };
  }
  const parsed = v.safeParse(shape, value);
  const faults = [...unstorableIn(json).map(({ fault }) => fault), ...others(value)];
  if (!parsed.success) return { faults: [...faults, ...parsed.issues.map(shapeFault)] };
  return faults.length > 0 ? { faults } : { value: parsed.output };
}

function shaped<const T extends Entries>(
  entries: T,
): v.GenericSchema<unknown, v.InferOutput<v.ObjectSchema<T, undefined>>> {
  const expected = ({ path }: v.BaseIssue<unknown>) => messageOf(entries[String(path?.at(-1)?.key)]);
  return v.pipe(v.unknown(), v.check(isObject, "an object"), v.object(entries, expected));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function othersIn(value: unknown, entries: Entries, place = ""): string[] {
  const others = Object.keys(isObject(value) ? value : {}).filter((key) => !Object.hasOwn(entries, key));
  const keys = Object.keys(entries).join(", ");
  return others.map((key) => `${subjectOf(place)}has an unknown key ${quote(key)}; the keys are ${keys}`);
}

function othersInFields(type: unknown): string[] {
  const fields = isObject(type) && Array.isArray(type.fields) ? type.fields : [];
  return fields.flatMap((field, index) => othersIn(field, FIELD, `fields[${index}]`));
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

function meeting<T>(schema: (expected: string) => v.GenericSchema<T>, test: (value: T) => boolean, expected: string) {
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

/** `fields[0].name` */
function placeOf(path: readonly { readonly key: unknown }[]): string {
  return path
    .map(({ key }) => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "");
}

function isWebAddress(address: string): boolean {
  return /^https?:\/\/[^/\s?#][^\s?#]*$/.test(address) && URL.canParse(address);
}

function typeFaults(type: BundleType, name: string): string[] {
  const expected =
    type.slug === name ? [] : [`"slug" must be ${quote(name)} as the file is named, not ${quote(type.slug)}`];
  return [...expected, ...type.fields.flatMap((field, index) => fieldFaults(field, index, type)), ...listFaults(type)];
}

function fieldFaults(field: Field, index: number, type: BundleType): string[] {
  const { name, searchable, multiple, target } = field;
  const faults: string[] = [];
  const refuse = (wrong: boolean, fault: string) => {
    if (wrong) faults.push(`field ${quote(name)} ${fault}`);
  };
  refuse(RESERVED_NAMES.includes(name), `must have another name: ${RESERVED_NAMES.join(", ")} are reserved`);
  refuse(type.fields.findIndex((other) => other.name === name) < index, "is there twice");
  const media = type.fields.find((other) => other.type === "media" && name === `${other.name}_url`);
  refuse(media !== undefined, `must have another name: it is the address of the media field ${quote(media?.name)}`);
  refuse(
    searchable && !SEARCHABLE_TYPES.includes(field.type),
    `must not be searchable: only ${SEARCHABLE_TYPES.join(", ")} can be`,
  );
  refuse(
    multiple && !MULTIPLE_TYPES.includes(field.type),
    `must not be multiple: only ${MULTIPLE_TYPES.join(", ")} can be`,
  );
  refuse(
    field.type === "relation" && target === null,
    'must have a "target": the slug of the content type that it relates to',
  );
  refuse(field.type !== "relation" && target !== null, 'must have no "target": only a relation has one');
  return faults;
}

function listFaults(type: BundleType): string[] {
  const fieldOf = (name: string) => type.fields.find((field) => field.name === name);
  const meets = (rule: (field: Field) => boolean) => (name: string) => {
    const field = fieldOf(name);
    return isTimestamp(name) || (field !== undefined && rule(field));
  };
  const sort = type.default_sort;
  return [
    ...namesFaults("filterable_fields", type.filterable_fields, meets(canFilter), FILTERABLE),
    ...namesFaults("sortable_fields", type.sortable_fields, meets(canSort), SORTABLE),
    ...namesFaults("summary_fields", type.summary_fields ?? [], (name) => fieldOf(name) !== undefined, OWN),
    ...(sort === null || meets(canSort)(sort.replace(/^-/, ""))
      ? []
      : [`"default_sort" must be one of ${SORTABLE}, with or without a - before it, not ${quote(sort)}`]),
  ];
}

function namesFaults(
  key: string,
  names: readonly string[],
  allows: (name: string) => boolean,
  expected: string,
): string[] {
  return names.flatMap((name, index) => [
    ...(names.indexOf(name) < index ? [`"${key}" holds ${quote(name)} twice`] : []),
    ...(allows(name) ? [] : [`"${key}" must not hold ${quote(name)}: it can hold ${expected}`]),
  ]);
}
