/** `app.json` and the files of content types: their shape, and the rules of contract.md section 2. */
import { z } from "zod";
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

// Each schema is told, as its error, what would be right: "must be …".
const text = z.string({ error: "a string" });
const flag = z.boolean({ error: "true or false" });
const names = z.array(z.string({ error: "the name of a field" }), { error: "an array of field names" });
const slug = matching(TYPE_SLUG, "1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit");
const A_PAGE_SIZE = `a whole number from 1 to ${MAX_PER_PAGE}`;

const OWN = "the fields of this type";
const FILTERABLE = `${OWN} but rich_text and json, and ${TIMESTAMPS.join(", ")}`;
const SORTABLE = `${OWN} but rich_text, json, relation and multiple ones, and ${TIMESTAMPS.join(", ")}`;

const appShape = strict({
  key: matching(APP_KEY, "1 to 128 of A-Z, a-z, 0-9, - and _, beginning with a letter or digit"),
  name: text,
  media_base_url: z
    .string({ error: "an absolute http or https address" })
    .refine(isWebAddress, { error: "an absolute http or https address" })
    .nullable()
    .default(null),
});

const fieldShape = strict({
  name: matching(FIELD_NAME, "1 to 63 of a-z, 0-9 and _, beginning with a letter"),
  type: z.enum(FIELD_TYPES, { error: `one of ${FIELD_TYPES.join(", ")}` }),
  label: text,
  required: flag,
  searchable: flag,
  multiple: flag.default(false),
  target: slug.nullable().default(null),
});

const typeShape = strict({
  slug,
  name: text,
  description: text,
  icon: text,
  position: z.int32({ error: "a whole number" }).nullable().default(null),
  published: flag.default(true),
  default_sort: z.string({ error: "the name of a field, with or without a - before it" }).nullable().default(null),
  per_page: z
    .int({ error: A_PAGE_SIZE })
    .min(1, { error: A_PAGE_SIZE })
    .max(MAX_PER_PAGE, { error: A_PAGE_SIZE })
    .nullable()
    .default(null),
  summary_fields: names.nullable().default(null),
  fields: z.array(fieldShape, { error: "an array of fields" }),
  filterable_fields: names,
  sortable_fields: names,
});

export function readApp(json: string): Definition<BundleApp> {
  return define(json, appShape);
}

/** `name` is what the file is called: `posts` for `content_types/posts.json`. */
export function readType(json: string, name: string): Definition<BundleType> {
  const type = define(json, typeShape);
  if ("faults" in type) return type;
  const faults = typeFaults(type.value, name);
  return faults.length > 0 ? { faults } : type;
}

function define<T>(json: string, shape: z.ZodType<T>): Definition<T> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return { faults: [`is not valid JSON: ${(error as Error).message}`] };
  }
  const unstorable = unstorableIn(json).map(({ fault }) => fault);
  const parsed = shape.safeParse(value, { reportInput: true });
  if (!parsed.success) return { faults: [...unstorable, ...parsed.error.issues.flatMap(shapeFaults)] };
  return unstorable.length > 0 ? { faults: unstorable } : { value: parsed.data };
}

function strict<T extends z.ZodRawShape>(shape: T) {
  const keys = Object.keys(shape).join(", ");
  return z.strictObject(shape, { error: ({ code }) => (code === "unrecognized_keys" ? keys : "an object") });
}

function matching(pattern: RegExp, expected: string) {
  return z.string({ error: expected }).regex(pattern, { error: expected });
}

function shapeFaults(issue: z.core.$ZodIssue): string[] {
  const place = z.core.toDotPath(issue.path);
  if (issue.code === "unrecognized_keys") {
    const where = place === "" ? "" : `${quote(place)} `;
    return issue.keys.map((key) => `${where}has an unknown key ${quote(key)}; the keys are ${issue.message}`);
  }
  const subject = place === "" ? "" : `${quote(place)} `;
  if (issue.input === undefined) return [`${subject}is missing: it must be ${issue.message}`];
  return [`${subject}must be ${issue.message}, not ${quote(issue.input)}`];
}

function isWebAddress(address: string): boolean {
  return /^https?:\/\/[^/\s][^\s]*$/.test(address) && URL.canParse(address);
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
