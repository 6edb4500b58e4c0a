/**
 * Reads `app.json` and the files of content types: checks the shape of their JSON, and the rules of contract.md section 2
 * for content types.
 */
import type { core, output, ZodType } from "zod";
import * as z from "zod";
import {
  canFilter,
  canSort,
  FIELD_NAME,
  FIELD_TYPES,
  type Field,
  isTimestamp,
  MAX_FIELDS,
  MULTIPLE_TYPES,
  RESERVED_NAMES,
  SEARCHABLE_TYPES,
  TIMESTAMPS,
  TYPE_SLUG,
} from "../../shared/api/catalog.ts";
import { parseJson } from "../../shared/settings/zod.ts";
import { type KnownFields, knowFields, NOTHING_KNOWN } from "./entry.ts";
import { quote } from "./report.ts";
import { APP, type BundleApp, type BundleType, FIELD, TYPE } from "./shape.ts";
import { findFaultyLine, findRepeatedKeys, unstorableIn } from "./text.ts";

/**
 * The value that a file defines, or all faults of the file. `line` is the line on which the file stops being JSON, and
 * null for other faults.
 */
export type Definition<T> =
  | { readonly value: T }
  | { readonly faults: readonly string[]; readonly line: number | null };

export function readApp(json: string): Definition<BundleApp> {
  return readDefinition(json, APP, () => []);
}

/** `name` is the file's name without its ending: `posts` for `content_types/posts.json`. */
export function readType(json: string, name: string): Definition<BundleType> {
  return readDefinition(json, TYPE, (value) => ruleFaults(value, name));
}

function readDefinition<T>(
  json: string,
  schema: ZodType<T> & Pick<typeof TYPE | typeof APP, "shape">,
  otherFaults: (value: unknown) => string[],
): Definition<T> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    // The message can quote several lines of the file, and a fault must be one line.
    const why = (error as Error).message.replace(/\s+/g, " ");
    return { faults: [`is not valid JSON: ${why}`], line: findFaultyLine(json) };
  }
  const { data, error } = schema.safeParse(value, { reportInput: true });
  const unstorable = unstorableIn(json).map(({ fault }) => fault);
  const repeated = findRepeatedKeys(json, value).map(
    ({ key, line }) => `has the key ${quote(key)} again on line ${line}`,
  );
  const faults = [
    ...unstorable,
    ...repeated,
    ...shapeFaults(error?.issues ?? [], keysOf(schema.shape)),
    ...otherFaults(value),
  ];
  return data !== undefined && faults.length === 0 ? { value: data } : { faults, line: null };
}

/** `$schema` is for editors. */
function keysOf(shape: object): string[] {
  return Object.keys(shape).filter((key) => key !== "$schema");
}

/** Unknown keys come last, those of the file itself before those of its fields. */
function shapeFaults(issues: readonly core.$ZodIssue[], keys: readonly string[]): string[] {
  const misfits = issues.filter(({ code }) => code !== "unrecognized_keys");
  const unknown = issues.filter((issue) => issue.code === "unrecognized_keys");
  return [
    ...new Set(misfits.map(misfitFault)),
    ...unknown
      .sort((a, b) => a.path.length - b.path.length)
      .flatMap((issue) => unknownKeyFaults(issue, issue.path.length === 0 ? keys : keysOf(FIELD.shape))),
  ];
}

function misfitFault({ path, input, message }: core.$ZodIssue): string {
  const missing = input === undefined ? "is missing: it " : "";
  return `${describeSubject(path)}${missing}must be ${message}${missing === "" ? `, not ${quote(input)}` : ""}`;
}

function unknownKeyFaults({ path, keys }: core.$ZodIssueUnrecognizedKeys, known: readonly string[]): string[] {
  return keys.map(
    (key) => `${describeSubject(path)}has an unknown key ${quote(key)}; the keys are ${known.join(", ")}`,
  );
}

/** The place in the file, such as `"fields[0].name" `; empty for the file itself. */
function describeSubject(path: readonly PropertyKey[]): string {
  const place = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  return place === "" ? "" : `${quote(place.replace(/^\./, ""))} `;
}

// The rules of a content type. They are checked whatever its shape: a value of the wrong shape is null or empty here,
// and a rule that needs it is skipped, so that one mistake is not reported twice.

const orNull = <T extends ZodType>(schema: T) => schema.nullable().catch(null);
const strings = z
  .array(z.unknown())
  .catch([])
  .transform((all) => all.filter((one) => typeof one === "string"));

/** A name that breaks the rule for names is kept. */
const PARTIAL_FIELD = z.object({
  name: orNull(z.string()),
  type: orNull(z.enum(FIELD_TYPES)),
  searchable: z.boolean().catch(false),
  multiple: z.boolean().catch(false),
  target: z.unknown().optional(),
});
const PARTIAL_TYPE = z.object({
  slug: orNull(z.string()),
  // The rules compare each field with all others.
  fields: orNull(z.array(PARTIAL_FIELD.catch(PARTIAL_FIELD.parse({}))).max(MAX_FIELDS)),
  filterable_fields: strings,
  sortable_fields: strings,
  summary_fields: strings,
  default_sort: orNull(z.string()),
});
type PartialField = output<typeof PARTIAL_FIELD>;
type PartialType = output<typeof PARTIAL_TYPE>;

/** The fields that have no fault of their own. */
const SOUND_FIELDS = z.object({ fields: z.array(orNull(FIELD)) });

/** What the file of an invalid type tells of its fields: only what stays true when its faults are corrected. */
export function readKnownFields(json: string): KnownFields {
  const fields = parseJson(json, PARTIAL_TYPE)?.fields ?? null;
  if (fields === null || findRepeatedKeys(json, JSON.parse(json)).length > 0) return NOTHING_KNOWN;
  const isNamed = ({ name }: PartialField, index: number) =>
    name !== null && FIELD_NAME.test(name) && nameFaults({ name }, index, fields).length === 0;
  const isOnly = ({ name }: Field) => fields.filter((other) => other.name === name).length === 1;
  const sound = (parseJson(json, SOUND_FIELDS)?.fields ?? [])
    .filter((field) => field !== null)
    .filter((field) => typeFaults(field).length === 0 && isOnly(field));
  return knowFields(sound, fields.every(isNamed) ? new Set(fields.map(({ name }) => name ?? "")) : null);
}

const ANY_FIELD = "the fields of this type";
const FILTERABLE = `${ANY_FIELD} that are not rich_text or json, and ${TIMESTAMPS.join(", ")}`;
const SORTABLE = `${ANY_FIELD} that are not rich_text, json, relation or multiple, and ${TIMESTAMPS.join(", ")}`;

function ruleFaults(value: unknown, name: string): string[] {
  const { data: type } = PARTIAL_TYPE.safeParse(value);
  if (type === undefined) return [];
  const fields = type.fields ?? [];
  return [
    ...slugFaults(type.slug, name),
    ...fields.flatMap((field, index) => fieldFaults(field, index, fields)),
    ...listFaults(type, fields),
  ];
}

function slugFaults(slug: string | null, name: string): string[] {
  if (slug === null || !TYPE_SLUG.test(slug) || !TYPE_SLUG.test(name) || slug === name) return [];
  return [`"slug" must be ${quote(name)} like the file name, not ${quote(slug)}`];
}

function fieldFaults(field: PartialField, index: number, fields: readonly PartialField[]): string[] {
  const subject = field.name === null ? quote(`fields[${index}]`) : `field ${quote(field.name)}`;
  return [...nameFaults(field, index, fields), ...typeFaults(field)].map((fault) => `${subject} ${fault}`);
}

function nameFaults({ name }: Pick<PartialField, "name">, index: number, fields: readonly PartialField[]): string[] {
  if (name === null) return [];
  const media = fields.find((other) => other.type === "media" && other.name !== null && name === `${other.name}_url`);
  return brokenRules([
    [RESERVED_NAMES.includes(name), `must have another name: ${RESERVED_NAMES.join(", ")} are reserved`],
    [fields.findIndex((other) => other.name === name) < index, "is defined twice"],
    [
      media !== undefined,
      `must have another name: it is reserved for the address of the media field ${quote(media?.name)}`,
    ],
  ]);
}

function typeFaults({ type, searchable, multiple, target }: PartialField): string[] {
  if (type === null) return [];
  const hasTarget = (target ?? null) !== null;
  const isRelation = type === "relation";
  return brokenRules([
    [
      searchable && !SEARCHABLE_TYPES.includes(type),
      `must not be searchable: only ${SEARCHABLE_TYPES.join(", ")} can be`,
    ],
    [multiple && !MULTIPLE_TYPES.includes(type), `must not be multiple: only ${MULTIPLE_TYPES.join(", ")} can be`],
    [isRelation && !hasTarget, 'must have a "target": the slug of the content type that it relates to'],
    [!isRelation && hasTarget, 'must have no "target": only a relation has one'],
  ]);
}

function brokenRules(rules: readonly (readonly [isBroken: boolean, fault: string])[]): string[] {
  return rules.filter(([isBroken]) => isBroken).map(([, fault]) => fault);
}

function listFaults(type: PartialType, fields: readonly PartialField[]): string[] {
  // A field whose name cannot be read may be any unknown one in a list, so those are not reported.
  const areNamesKnown = type.fields !== null && fields.every(({ name }) => name !== null);
  const isAllowedField = (name: string, rule: (field: Pick<Field, "type" | "multiple">) => boolean) => {
    const field = fields.find((one) => one.name === name);
    if (field === undefined) return !areNamesKnown;
    return field.type === null || rule({ type: field.type, multiple: field.multiple });
  };
  const filters = (name: string) => isTimestamp(name) || isAllowedField(name, canFilter);
  const sorts = (name: string) => isTimestamp(name) || isAllowedField(name, canSort);
  const sort = type.default_sort;
  return [
    ...namesFaults("filterable_fields", type.filterable_fields, filters, FILTERABLE),
    ...namesFaults("sortable_fields", type.sortable_fields, sorts, SORTABLE),
    ...namesFaults("summary_fields", type.summary_fields, (name) => isAllowedField(name, () => true), ANY_FIELD),
    ...(sort === null || sorts(sort.replace(/^-/, ""))
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
    ...(names.indexOf(name) < index ? [`"${key}" contains ${quote(name)} twice`] : []),
    ...(allows(name) ? [] : [`"${key}" must not contain ${quote(name)}: it can contain ${expected}`]),
  ]);
}
