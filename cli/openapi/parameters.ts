/** Describes the parameters of a content type: those that its fields allow, each with a value that entries have. */
import {
  type Column,
  type ContentType,
  DEFAULT_PER_PAGE,
  defaultPerPage,
  findColumn,
  listSortable,
  MAX_PER_PAGE,
  searchableFields,
  TIMESTAMPS,
} from "../../shared/api/catalog.ts";
import { defaultSort } from "../../shared/api/columns.ts";
import { findFacets } from "../../shared/api/entry.ts";
import { MAX_NAMES_LENGTH, MAX_QUERY_LENGTH, MIN_QUERY_LENGTH } from "../../shared/api/errors.ts";
import { listOperators, type Operator, orderOperand } from "../../shared/api/filter.ts";
import { readWords } from "../../shared/api/folding.ts";
import { escapeMarkdown } from "../../shared/text.ts";
import type { Entry } from "./examples.ts";
import type { Json } from "./responses.ts";

export type Parameter = { readonly name: string; readonly in: "query"; readonly schema: Json } & Json;

function parameter(name: string, description: string, schema: Json, more: Json = {}): Parameter {
  const { example, ...rest } = more;
  return { name, in: "query", description, ...rest, schema, ...(example === undefined ? {} : { example }) };
}

/** Several values in one parameter, separated by commas. */
const COMMAS = { style: "form", explode: false };

export type FilterParameter = { readonly operator: Operator; readonly key: string; readonly parameter: Parameter };

/** A parameter for each operator that each filterable field may have. `key` is unique in an app. */
export function describeFilters(type: ContentType, entries: readonly Entry[]): readonly FilterParameter[] {
  return type.filterable_fields.flatMap((name) => {
    const column = findColumn(type, name);
    if (column === undefined) return [];
    const values = findValues(column, entries);
    return listOperators(column).map((operator) => ({
      operator,
      key: `${type.slug}.filter.${name}.${operator}`,
      parameter: describeFilter(column, operator, values),
    }));
  });
}

const MEANING: Record<Operator, string> = {
  eq: "equals",
  neq: "does not equal, or has no value",
  gt: "is greater than",
  gte: "is at least",
  lt: "is less than",
  lte: "is at most",
  contains: "contains, in any case",
  starts_with: "begins with, in any case",
  in: "is one of",
  nin: "is none of, or has no value",
};

function describeFilter(column: Column, operator: Operator, values: readonly string[]): Parameter {
  const name = operator === "eq" ? `filter[${column.name}]` : `filter[${column.name}][${operator}]`;
  const label = column.type === "timestamp" || column.label === "" ? column.name : column.label;
  const description = `${escapeMarkdown(label)} ${MEANING[operator]} …`;
  const example = values[0];
  switch (operator) {
    case "eq":
    case "neq":
      return parameter(name, description, valueSchema(column), { example: readValue(column, example) });
    case "in":
    case "nin": {
      const some = values.filter((value) => !value.includes(",")).slice(0, 2);
      const list = some.length === 0 ? undefined : some.map((value) => readValue(column, value));
      const schema = { type: "array", items: valueSchema(column), minItems: 1 };
      return parameter(name, description, schema, { ...COMMAS, example: list });
    }
    case "contains":
    case "starts_with": {
      const start = example === undefined ? undefined : [...example].slice(0, 3).join("");
      return parameter(name, description, { type: "string" }, { example: start });
    }
    default:
      return describeOrder(column, name, description, values);
  }
}

/** Text is compared as the number that it is written as. */
function describeOrder(column: Column, name: string, description: string, values: readonly string[]): Parameter {
  const isTime = column.type === "date" || column.type === "datetime" || column.type === "timestamp";
  const operand = values.map((value) => orderOperand(column, value)).find((value) => value !== null);
  if (isTime) return parameter(name, description, valueSchema(column), { example: operand });
  const number = operand === undefined ? Number.NaN : Number(operand);
  const example = Number.isFinite(number) ? number : undefined;
  const what = column.type === "number" ? description : `${description} (as numbers)`;
  return parameter(name, what, { type: "number" }, { example });
}

function valueSchema({ type }: Column): Json {
  switch (type) {
    case "number":
    case "boolean":
      return { type };
    case "date":
      return { type: "string", format: "date" };
    case "datetime":
    case "timestamp":
      return { type: "string", format: "date-time" };
    case "relation":
      return { type: "string", format: "uuid" };
    default:
      return { type: "string" };
  }
}

/** Longer values are no good examples. */
const MAX_EXAMPLE = 60;

/** The values by which filters find entries, in canonical spelling. */
function findValues(column: Column, entries: readonly Entry[]): readonly string[] {
  const found = entries.flatMap((entry) => findFacets(column, JSON.stringify(entry[column.name])));
  return [...new Set(found)].filter((value) => value.length <= MAX_EXAMPLE);
}

function readValue({ type }: Column, value: string | undefined): unknown {
  if (value === undefined || (type !== "number" && type !== "boolean")) return value;
  return JSON.parse(value);
}

/** What lists and searches have in common but filters. */
export function describeListing(type: ContentType, kind: "list" | "search"): readonly Parameter[] {
  const sortable = listSortable(type);
  const choices = sortable.flatMap((name) => [name, `-${name}`]);
  const { column, descending } = defaultSort(type);
  const order = `${descending ? "-" : ""}${column.name}`;
  const isChoice = kind === "list" && choices.includes(order);
  const fields = type.fields.map(({ name }) => name);
  const size = kind === "list" ? defaultPerPage(type) : DEFAULT_PER_PAGE;
  return [
    parameter(
      "sort",
      `One field, with \`-\` in descending order. ${kind === "list" ? "Timestamps" : "By relevance without it. Timestamps"} sort newest first either way.`,
      { type: "string", enum: choices, ...(isChoice ? { default: order } : {}) },
      { example: sortable[0] },
    ),
    parameter("page", "Counted from 1.", { type: "integer", minimum: 1, default: 1 }, { example: 1 }),
    parameter(
      "per_page",
      "How many entries a page has.",
      { type: "integer", minimum: 1, maximum: MAX_PER_PAGE, default: size },
      { example: 10 },
    ),
    describeNames("fields", "What entries have besides their `id`", [...fields, ...TIMESTAMPS]),
  ];
}

/** Null when the type has no relations. */
export function describePopulate(type: ContentType): Parameter | null {
  const relations = type.fields.flatMap((field) => (field.type === "relation" ? field.name : []));
  return relations.length === 0 ? null : describeNames("populate", "Relations to show as entries", relations);
}

function describeNames(name: string, what: string, names: readonly string[]): Parameter {
  const description = `${what}: at most ${MAX_NAMES_LENGTH} characters in all.`;
  const schema = { type: "array", items: { type: "string", enum: names } };
  return parameter(name, description, schema, { ...COMMAS, example: names.slice(0, 2) });
}

/** A word that entries have is the example. */
export function describeQuery(type: ContentType, entries: readonly Entry[]): Parameter {
  const fields = searchableFields(type).filter((field) => field.type !== "rich_text");
  const texts = entries.flatMap((entry) => fields.map(({ name }) => String(entry[name] ?? "")));
  const example = texts.flatMap(readWords).find((word) => word.length >= MIN_QUERY_LENGTH);
  const schema = { type: "string", minLength: MIN_QUERY_LENGTH, maxLength: MAX_QUERY_LENGTH };
  return parameter("q", "The words that entries must have.", schema, { required: true, example: example ?? "an" });
}
