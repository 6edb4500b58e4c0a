/**
 * Checks the file of a content type against the rules of contract.md section 2. `definition.ts` reports values of the
 * wrong shape; a rule that needs such a value is skipped, so that one mistake is not reported twice.
 */
import {
  canFilter,
  canSort,
  FIELD_TYPES,
  type Field,
  type FieldType,
  isTimestamp,
  MULTIPLE_TYPES,
  RESERVED_NAMES,
  SEARCHABLE_TYPES,
  TIMESTAMPS,
  TYPE_SLUG,
} from "../../shared/api/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { quote } from "./text.ts";

/**
 * A field as far as it can be read. `name` is null when it is no string, `type` when it is no field type. A name that
 * breaks the rule for names is kept.
 */
type PartialField = Pick<Field, "searchable" | "multiple"> & {
  readonly name: string | null;
  readonly type: FieldType | null;
  readonly hasTarget: boolean;
};

type Json = Readonly<Record<string, unknown>>;

const ANY_FIELD = "the fields of this type";
const FILTERABLE = `${ANY_FIELD} that are not rich_text or json, and ${TIMESTAMPS.join(", ")}`;
const SORTABLE = `${ANY_FIELD} that are not rich_text, json, relation or multiple, and ${TIMESTAMPS.join(", ")}`;

/** `name` is the file's name without its ending: `posts` for `content_types/posts.json`. */
export function ruleFaults(value: unknown, name: string): string[] {
  const type = asObject(value);
  const fields = asArray(type.fields).map(partialFieldOf);
  return [
    ...slugFaults(type.slug, name),
    ...fields.flatMap((field, index) => fieldFaults(field, index, fields)),
    ...listFaults(type, fields),
  ];
}

function partialFieldOf(value: unknown): PartialField {
  const { name, type, searchable, multiple, target } = asObject(value);
  return {
    name: typeof name === "string" ? name : null,
    type: FIELD_TYPES.find((one) => one === type) ?? null,
    searchable: searchable === true,
    multiple: multiple === true,
    hasTarget: (target ?? null) !== null,
  };
}

function slugFaults(slug: unknown, name: string): string[] {
  if (typeof slug !== "string" || !TYPE_SLUG.test(slug) || !TYPE_SLUG.test(name) || slug === name) return [];
  return [`"slug" must be ${quote(name)} like the file name, not ${quote(slug)}`];
}

function fieldFaults(field: PartialField, index: number, fields: readonly PartialField[]): string[] {
  const subject = field.name === null ? quote(`fields[${index}]`) : `field ${quote(field.name)}`;
  return [...nameFaults(field, index, fields), ...typeFaults(field)].map((fault) => `${subject} ${fault}`);
}

function nameFaults({ name }: PartialField, index: number, fields: readonly PartialField[]): string[] {
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

function typeFaults({ type, searchable, multiple, hasTarget }: PartialField): string[] {
  if (type === null) return [];
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

function listFaults(type: Json, fields: readonly PartialField[]): string[] {
  // A field whose name cannot be read may be any unknown one in a list, so those are not reported.
  const areNamesKnown = Array.isArray(type.fields) && fields.every(({ name }) => name !== null);
  const isAllowedField = (name: string, rule: (field: Pick<Field, "type" | "multiple">) => boolean) => {
    const field = fields.find((one) => one.name === name);
    if (field === undefined) return !areNamesKnown;
    return field.type === null || rule({ type: field.type, multiple: field.multiple });
  };
  const filters = (name: string) => isTimestamp(name) || isAllowedField(name, canFilter);
  const sorts = (name: string) => isTimestamp(name) || isAllowedField(name, canSort);
  const sort = type.default_sort;
  return [
    ...namesFaults("filterable_fields", type, filters, FILTERABLE),
    ...namesFaults("sortable_fields", type, sorts, SORTABLE),
    ...namesFaults("summary_fields", type, (name) => isAllowedField(name, () => true), ANY_FIELD),
    ...(typeof sort !== "string" || sorts(sort.replace(/^-/, ""))
      ? []
      : [`"default_sort" must be one of ${SORTABLE}, with or without a - before it, not ${quote(sort)}`]),
  ];
}

function namesFaults(key: string, type: Json, allows: (name: string) => boolean, expected: string): string[] {
  const names = asArray(type[key]).filter((name) => typeof name === "string");
  return names.flatMap((name, index) => [
    ...(names.indexOf(name) < index ? [`"${key}" contains ${quote(name)} twice`] : []),
    ...(allows(name) ? [] : [`"${key}" must not contain ${quote(name)}: it can contain ${expected}`]),
  ]);
}

/** Reads a value as an object. A value that is no object has no keys. */
function asObject(value: unknown): Json {
  return Object(value) as Json;
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

// Finds relations whose target is no content type of their app: `populate` shows nothing of them.

/** Slugs of the type and of its target, and the name of the relation. */
export type MissingTarget = { readonly type: string; readonly field: string; readonly target: string };

/** `app` is the app's id. They are allowed, because a CMS may add the target later, but most are misspelt. */
export async function findMissingTargets(session: Session, app: string): Promise<MissingTarget[]> {
  const rows = await session.query(
    sql(
      `SELECT kind.slug, field.name, field.target
       FROM precast.content_types AS kind
       JOIN precast.fields AS field ON field.content_type_id = kind.id AND field.type = 'relation'
       WHERE kind.app_id = $1::integer
         AND NOT EXISTS (
           SELECT FROM precast.content_types AS target WHERE target.app_id = kind.app_id AND target.slug = field.target)
       ORDER BY kind.slug, field.position`,
      [app],
    ),
  );
  return rows.map(([type, field, target]) => ({ type, field, target }) as MissingTarget);
}
