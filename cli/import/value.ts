/** Checks whether a value fits its field. Whether the database can store its text is checked by `text.ts`. */
import type { Field, FieldType } from "../../shared/catalog.ts";
import { isDate, readUuid } from "../../shared/value.ts";
import { canonicalInstant } from "./instant.ts";
import { quote } from "./problem.ts";

export const AN_INSTANT =
  "a timestamp with an offset of less than 16 hours such as 2026-01-20T15:30:00Z, in the years 0001 to 9999 of UTC";
export const A_UUID = "a UUID such as 3f2c1a9e-7b4d-4c1e-9a55-0d6b8f7e2c10";

const EXPECTED: Record<FieldType, string> = {
  text: "a string",
  rich_text: "a string of HTML",
  select: "a string",
  media: "a file name",
  relation: A_UUID,
  number: "a number within ±1.797e308",
  boolean: "true or false",
  date: "a date such as 2026-01-20",
  datetime: AN_INSTANT,
  json: "a JSON value",
};

export function isUuid(value: unknown): value is string {
  return typeof value === "string" && readUuid(value) !== null;
}

/** Says what is wrong with a field's value; null when it fits. `undefined` means that the entry lacks the field. */
export function valueFault(field: Field, value: unknown): string | null {
  if (value === undefined || value === null) {
    return field.required ? `is required: it must be ${expectation(field)}, not ${quote(value)}` : null;
  }
  if (!field.multiple) return fits(field.type, value) ? null : `must be ${EXPECTED[field.type]}, not ${quote(value)}`;
  if (!Array.isArray(value)) return `must be ${expectation(field)}, not ${quote(value)}`;
  const misfit = value.findIndex((element) => !fits(field.type, element));
  if (misfit < 0) return null;
  return `must be ${expectation(field)}, but element ${misfit + 1} is ${quote(value[misfit])}`;
}

function expectation({ type, multiple }: Field): string {
  return multiple ? `an array in which each element is ${EXPECTED[type]}` : EXPECTED[type];
}

function fits(type: FieldType, value: unknown): boolean {
  switch (type) {
    case "text":
    case "rich_text":
    case "select":
    case "media":
      return typeof value === "string";
    case "relation":
      return isUuid(value);
    case "number":
      return typeof value === "number" && Number.isFinite(value);
    case "boolean":
      return typeof value === "boolean";
    case "date":
      return typeof value === "string" && isDate(value);
    case "datetime":
      return typeof value === "string" && canonicalInstant(value) !== null;
    case "json":
      return true;
  }
}
