/**
 * Converts a value from a URL to its canonical spelling for a column. Filters compare this spelling, and the tree names
 * files by it. Source: contract.md section 4.
 */
import type { Column } from "./catalog.ts";
import { formatDay, formatInstant, readBoolean, readDay, readInstant, readNumber, readUuid } from "./value.ts";

/** Matches the times that an entry can have: years 0001 to 9999. */
const STORABLE_TIME = /^(?!0000)\d/;

/** The canonical spelling for equality; null when no entry can equal the value. */
export function equalOperand(column: Column, text: string): string | null {
  switch (column.type) {
    case "number":
      return spell(readNumber(text), String);
    case "boolean":
      return spell(readBoolean(text), String);
    case "relation":
      return readUuid(text);
    case "text":
    case "select":
    case "media":
      // PostgreSQL cannot store U+0000, so no stored text equals one that contains it.
      return text.includes("\0") ? null : text;
    default: {
      const time = timeOperand(column, text);
      // No stored time equals one out of range (`-`, `~`), but a text stored before the field became a date might.
      return time !== null && STORABLE_TIME.test(time) ? time : null;
    }
  }
}

/** The canonical spelling for `gt`, `gte`, `lt` and `lte`; null when the value cannot be compared with this column. */
export function orderOperand(column: Column, text: string): string | null {
  switch (column.type) {
    case "boolean":
    case "relation":
      return null;
    case "number":
    case "text":
    case "select":
    case "media":
      return spell(readNumber(text), String);
    default:
      return timeOperand(column, text);
  }
}

/** A sentence for clients that says which values `gt`, `gte`, `lt` and `lte` accept for this column. */
export function expectedOperand(column: Column): string {
  switch (column.type) {
    case "boolean":
    case "relation":
      return `'${column.name}' is a ${column.type} and has no order. Use eq, neq, in or nin.`;
    case "date":
      return `'${column.name}' must be compared with a date such as 2026-01-20.`;
    case "datetime":
    case "timestamp":
      return `'${column.name}' must be compared with an instant such as 2026-01-20T15:30:00Z.`;
    default:
      return `'${column.name}' must be compared with a number such as 2020 or -1.5.`;
  }
}

function timeOperand(column: Column, text: string): string | null {
  return column.type === "date" ? spell(readDay(text), formatDay) : spell(readInstant(text), formatInstant);
}

function spell<T>(value: T | null, format: (value: T) => string): string | null {
  return value === null ? null : format(value);
}
