/**
 * What a value in a URL is for a column: its canonical spelling, in which filters compare and the tree names files.
 * Source: contract.md section 4.
 */
import type { Column } from "./catalog.ts";
import { formatDay, formatInstant, readBoolean, readDay, readInstant, readNumber, readUuid } from "./value.ts";

/** What an entry's time begins with: the years 0001 to 9999. */
const A_TIME = /^(?!0000)\d/;

/** The canonical spelling for equality; null for a value that equals nothing. */
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
      // PostgreSQL holds no U+0000, so nothing equals a text that has one.
      return text.includes("\0") ? null : text;
    default: {
      const time = timeOperand(column, text);
      // Before and behind all others stands no value, but what a text may have said before its field became a day.
      return time !== null && A_TIME.test(time) ? time : null;
    }
  }
}

/** The canonical spelling for `gt`, `gte`, `lt`, `lte`; null for a value that cannot be compared with this column. */
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

/** What a comparison wants, in words. */
export function expectedOperand(column: Column): string {
  switch (column.type) {
    case "boolean":
    case "relation":
      return `'${column.name}' is a ${column.type}: it has no order. Use eq, neq, in or nin.`;
    case "date":
      return `'${column.name}' is compared with a date such as 2026-01-20.`;
    case "datetime":
    case "timestamp":
      return `'${column.name}' is compared with an instant such as 2026-01-20T15:30:00Z.`;
    default:
      return `'${column.name}' is compared with a number such as 2020 or -1.5.`;
  }
}

function timeOperand(column: Column, text: string): string | null {
  return column.type === "date" ? spell(readDay(text), formatDay) : spell(readInstant(text), formatInstant);
}

function spell<T>(value: T | null, format: (value: T) => string): string | null {
  return value === null ? null : format(value);
}
