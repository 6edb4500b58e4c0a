/** Names the entries columns that hold the values of fields, and writes values as these columns hold them. */
import type { Column } from "../catalog.ts";
import type { EqualsCondition } from "../condition.ts";
import { sqlType } from "./column.ts";
import type { Slots } from "./slots.ts";
import { type Bind, MAX_PLACEHOLDERS } from "./where.ts";

/** SQL of the entries column that holds a field's values; null when there is none. NULL in it means no value. */
export function storedIn(column: Column, slots: Slots): string | null {
  return column.type === "timestamp" ? `e.${column.name}` : slotOf(column, slots);
}

function slotOf(column: Column, slots: Slots): string | null {
  const slot = slots.slotOf(column);
  return slot === null ? null : `e.${slot}`;
}

/** The SQL type of the column that stores a field. A slot stores a boolean as the number 0 or 1. */
export function storedType(column: Column): string {
  return column.type === "boolean" ? "float8" : sqlType(column);
}

/** The text of a canonical value as the column that stores the field holds it. */
export function storedOperand(column: Column, value: string): string {
  if (column.type === "timestamp") return timestampOperand(value);
  if (column.type === "boolean") return value === "true" ? "1" : "0";
  return value;
}

/**
 * Converts a canonical instant into text that PostgreSQL can read. PostgreSQL has no year 0000, and `-` and `~`, which
 * stand for instants before and after the years of four digits, are not its syntax: all of them become infinities.
 */
function timestampOperand(text: string): string {
  if (text === "~") return "infinity";
  return text === "-" || text.startsWith("0000") ? "-infinity" : text;
}

/**
 * SQL that tests whether `sql` equals one of the values, cast to the SQL type `type`. Up to MAX_PLACEHOLDERS values get
 * a placeholder each: for an array of unknown length the planner expects far more rows than for known values, so
 * PostgreSQL would plan every execution anew. No values are sent as an empty array.
 */
export function equalsAny(sql: string, values: readonly string[], type: string, bind: Bind): string {
  if (values.length === 0 || values.length > MAX_PLACEHOLDERS) return `${sql} = ANY (${bind(values)}::${type}[])`;
  const placeholders = placeholdersOf(values, type, bind);
  return placeholders.length === 1 ? `${sql} = ${placeholders[0]}` : `${sql} = ANY (ARRAY[${placeholders.join(", ")}])`;
}

function placeholdersOf(values: readonly string[], type: string, bind: Bind): string[] {
  return values.map((value) => `${bind(value)}::${type}`);
}

/** SQL of an array of the condition's values, each of them once, as the column that stores the field holds them. */
export function operandsSql({ column, values }: EqualsCondition, bind: Bind): string {
  const operands = new Set(values.map((value) => storedOperand(column, value)));
  return `ARRAY[${placeholdersOf([...operands], storedType(column), bind).join(", ")}]`;
}
