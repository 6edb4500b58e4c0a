/** Infers the fields of a content type from what their values have in common, and says why in the words of a report. */
import { canFilter, canSort, type FieldType, MULTIPLE_TYPES, SEARCHABLE_TYPES } from "../../shared/api/catalog.ts";
import type { Facts, ValueKind } from "./facts.ts";
import { makeFieldName, makeLabel, makeUnique, readSingular } from "./names.ts";
import type { SourceField } from "./record.ts";

/** A field to be, with the rule that made it what it is. */
export type Inferred = {
  readonly source: string;
  readonly name: string;
  readonly label: string;
  readonly type: FieldType;
  readonly multiple: boolean;
  readonly required: boolean;
  /** The collection that a relation leads to. */
  readonly target: string | null;
  /** What separates the values of one cell of CSV; null when a cell holds one value. */
  readonly separator: string | null;
  readonly dayFirst: boolean;
  readonly filterable: boolean;
  readonly sortable: boolean;
  readonly searchable: boolean;
  readonly why: string;
};

/** A field that no type can hold, or that no record has a value for. */
export type LeftOut = { readonly source: string; readonly why: string };

/** Finds the collection whose records all these values name, by id, slug or name. */
export type FindNamed = (values: Iterable<string>, collections: readonly string[]) => string | null;

export type Surroundings = {
  readonly collection: string;
  readonly collections: readonly string[];
  /** Number of records of the collection. */
  readonly records: number;
  readonly declared: readonly SourceField[];
  readonly findNamed: FindNamed;
};

type Kind = Pick<Inferred, "type" | "multiple" | "target" | "separator" | "dayFirst" | "why">;

/** In the order in which the source declares or first uses them. */
export function inferFields(facts: ReadonlyMap<string, Facts>, around: Surroundings): (Inferred | LeftOut)[] {
  const names = [...new Set([...around.declared.map(({ name }) => name), ...facts.keys()])];
  const taken = new Set<string>();
  return names.map((source) => {
    const declared = around.declared.find(({ name }) => name === source);
    const kind = inferKind(facts.get(source), declared, around);
    if (kind === null) return { source, why: "has no value in any record" };
    if (kind.type === "relation" && kind.target === null) return { source, why: "leads to no record of this source" };
    const name = nameField(source, kind.type, taken);
    const field = { source, name, label: declared?.label ?? makeLabel(source), ...kind };
    // Drafts may lack what the source requires of what it publishes.
    const required = declared?.required === true && facts.get(source)?.records === around.records;
    return { ...field, required, ...inferUses(field, facts.get(source), around) };
  });
}

/** Answers have the address of a file beside its name, which no other field may take. */
function nameField(source: string, type: FieldType, taken: Set<string>): string {
  const clashes = (name: string) => taken.has(name) || (type === "media" && taken.has(`${name}_url`));
  const wanted = makeFieldName(source);
  const name = clashes(wanted) ? makeUnique(`${wanted}_${type}`, taken, "_") : wanted;
  taken.add(name);
  if (type === "media") taken.add(`${name}_url`);
  return name;
}

const PLAIN = { multiple: false, target: null, separator: null, dayFirst: false };

function inferKind(facts: Facts | undefined, declared: SourceField | undefined, around: Surroundings): Kind | null {
  if (declared?.type !== undefined) {
    const { type, multiple = false, target } = declared;
    const known = target ?? (type === "relation" && facts !== undefined ? findTarget(facts, around) : null);
    return { ...PLAIN, type, multiple, target: known, why: "declared by the source" };
  }
  if (facts === undefined || facts.values === 0) return null;
  const separator = findSeparator(facts);
  const isMultiple = facts.arrays > 0 || separator !== null;
  const found = inferOne(facts, separator, around);
  if (!isMultiple) return { ...PLAIN, ...found };
  if (MULTIPLE_TYPES.includes(found.type)) return { ...PLAIN, ...found, multiple: true, separator };
  return { ...PLAIN, type: "json", why: `arrays of ${found.type}` };
}

function inferOne(
  facts: Facts,
  separator: string | null,
  around: Surroundings,
): Partial<Kind> & Pick<Kind, "type" | "why"> {
  const kinds = [...facts.kinds.keys()];
  const only = (...allowed: ValueKind[]) => kinds.every((kind) => allowed.includes(kind));
  if (only("reference")) {
    const target = findTarget(facts, around);
    if (target !== null || facts.collections.size <= 1) return { type: "relation", target, why: "references" };
    return { type: "json", why: "references to several types" };
  }
  if (only("media")) return { type: "media", why: "files" };
  if (only("boolean")) return { type: "boolean", why: "true and false" };
  if (only("number")) return { type: "number", why: "numbers" };
  if (only("text", "cell")) return inferText(facts, separator, around);
  if (only("html", "text", "cell")) return { type: "rich_text", why: "HTML" };
  if (only("text", "cell", "number", "boolean")) return { type: "text", why: "values of several kinds" };
  return { type: "json", why: kinds.includes("json") && kinds.length === 1 ? "objects" : "values of several kinds" };
}

/** Names of columns whose digits count nothing. */
const CODE_NAME =
  /(^|_)(zip|zip_?code|postal_?code|postcode|plz|phone|tel|telephone|fax|mobile|isbn|ean|sku|code|fips)$/;

function inferText(
  facts: Facts,
  separator: string | null,
  around: Surroundings,
): Partial<Kind> & Pick<Kind, "type" | "why"> {
  const { values, numbers, codes, booleans } = facts;
  const isCell = facts.kinds.get("cell") === values;
  if (isCell && booleans === values) return { type: "boolean", why: "true and false" };
  const named = findNamedTarget(facts, separator, around);
  if (named !== null) return { type: "relation", target: named, why: `values are ids, slugs or names of ${named}` };
  if (isCell && numbers === values && codes === 0 && !CODE_NAME.test(makeFieldName(facts.name)))
    return { type: "number", why: "numbers" };
  if (facts.dates + facts.datetimes === values) return inferDate(facts);
  const parts = splitDistinct(facts, separator);
  const total = countAll(parts);
  if (
    !facts.overflows &&
    parts.size <= MAX_SELECT &&
    total >= 2 * parts.size &&
    total > 3 &&
    measureLongest(parts) <= 60
  )
    return { type: "select", why: `${parts.size} values that repeat` };
  const why = codes > 0 && numbers + codes >= values ? "digits that are codes" : "text";
  return { type: "text", why };
}

const MAX_SELECT = 50;

function inferDate({ datetimes, ambiguous, orders }: Facts): Partial<Kind> & Pick<Kind, "type" | "why"> {
  if (orders.size === 2) return { type: "text", why: "dates with day and month in both orders" };
  if (ambiguous > 0 && orders.size === 0)
    return { type: "text", why: "dates that do not tell days from months: write them as 2026-01-20" };
  const type = datetimes > 0 ? "datetime" : "date";
  return { type, dayFirst: orders.has("day first"), why: orders.has("day first") ? "dates, day first" : "dates" };
}

/** The collection that references lead to, when it is one. */
function findTarget({ collections, distinct }: Facts, { collections: all, findNamed }: Surroundings): string | null {
  const told = [...collections].filter((collection) => collection !== null);
  if (told.length > 1) return null;
  return told[0] ?? findNamed(distinct.keys(), all);
}

/** `author`, `author_id` and `authors` may name records of `authors`; `parent` those of its own collection. */
function findNamedTarget(facts: Facts, separator: string | null, around: Surroundings): string | null {
  const word = makeFieldName(facts.name).replace(/_(ids?|slugs?|names?|uuids?|refs?)$/, "");
  const isNamed = (collection: string) => readSingular(makeFieldName(collection)) === readSingular(word);
  const near = around.collections.filter((collection) => collection !== around.collection && isNamed(collection));
  const own = /^(parent|related)/.test(word) ? [around.collection] : [];
  const values = splitDistinct(facts, separator).keys();
  return near.length + own.length === 0 ? null : around.findNamed(values, [...near, ...own]);
}

/** What separates several values in one cell: only a sign by which they fall into parts that repeat. */
function findSeparator(facts: Facts): string | null {
  if (facts.kinds.get("cell") !== facts.values || facts.overflows) return null;
  const isOne = (separator: string) => {
    const cells = [...facts.distinct.keys()].filter((text) => text.includes(separator)).length;
    const parts = splitDistinct(facts, separator);
    return cells * 4 >= facts.distinct.size && parts.size * 2 <= countAll(parts) && measureLongest(parts) <= 60;
  };
  return ["|", ";"].find(isOne) ?? null;
}

/** The sign that most likely separates values, for a field that is known to have several. */
export function splitSign({ distinct }: Facts): string | null {
  const signs = ["|", ";", ","];
  return signs.find((sign) => [...distinct.keys()].some((text) => text.includes(sign))) ?? null;
}

function splitDistinct({ distinct }: Facts, separator: string | null): ReadonlyMap<string, number> {
  if (separator === null) return distinct;
  const parts = new Map<string, number>();
  for (const [text, count] of distinct)
    for (const part of splitCell(text, separator)) parts.set(part, (parts.get(part) ?? 0) + count);
  return parts;
}

export function splitCell(text: string, separator: string): string[] {
  const parts = text.split(separator).map((part) => part.trim());
  return parts.filter((part) => part !== "");
}

function countAll(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

function measureLongest(texts: ReadonlyMap<string, number>): number {
  return Math.max(0, ...[...texts.keys()].map((text) => text.length));
}

// What requests may do with a field.

/** A field with more different values is not filterable: each costs a file of the tree. */
const MAX_FILTERED = 500;
const SHORT = 120;

function inferUses(
  field: Pick<Inferred, "name" | "type" | "multiple" | "separator">,
  facts: Facts | undefined,
  { records }: Surroundings,
): Pick<Inferred, "filterable" | "sortable" | "searchable"> {
  const { longest = 0, worded = 0, values = 0, overflows = false } = facts ?? {};
  const distinct = facts === undefined ? new Map<string, number>() : splitDistinct(facts, field.separator);
  const isFew =
    !overflows &&
    distinct.size <= MAX_FILTERED &&
    (distinct.size * 2 <= countAll(distinct) || field.type === "boolean");
  const isTitle = /^(title|name|headline|label)$/.test(field.name);
  const isProse = field.type !== "text" || worded * 2 > values;
  return {
    filterable: canFilter(field) && records > 0 && isFew,
    sortable: canSort(field) && field.type !== "media" && field.type !== "boolean" && longest <= SHORT,
    searchable: SEARCHABLE_TYPES.includes(field.type) && (isTitle || isProse),
  };
}
