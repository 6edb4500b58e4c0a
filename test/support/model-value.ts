/**
 * How the model reads a text as a number, a timestamp, a day, a boolean or a UUID, and compares what it read.
 * Source: shared/contract.md section 4.
 */

import type { ModelColumn } from "./model-bundle.ts";

/** In an exponent and in a zone, a space is a `+` that form decoding replaced. */
const NUMBER = /^-?[0-9]+(\.[0-9]+)?([eE][-+ ]?[0-9]+)?$/;
const DAY = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/;
const TIME = /^([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?$/;
const ZONE = /(?:[Zz]|([+ -])([0-9]{2})(?::?([0-9]{2}))?)$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const MINUTE = 60_000;
const ONE_DAY = 24 * 60 * MINUTE;

/** A number too large for a double becomes infinite: larger than all others. */
function numberOf(text: string): number | undefined {
  return NUMBER.test(text) ? Number(text.split(" ").join("+")) : undefined;
}

export function uuidOf(text: string): string | undefined {
  return UUID.test(text) ? text.toLowerCase() : undefined;
}

/** Milliseconds since 1970; a day alone is its midnight UTC. */
export function instantOf(text: string): number | undefined {
  const midnight = midnightOf(text.slice(0, 10));
  if (midnight === undefined) return undefined;
  if (text.length === 10) return midnight;
  if (!"Tt ".includes(text[10] as string)) return undefined;
  const clock = text.slice(11);
  const zone = clock.length > 5 ? ZONE.exec(clock) : null;
  const time = timeOf(clock.slice(0, zone?.index));
  const offset = zone ? offsetOf(zone) : 0;
  return time === undefined || offset === undefined ? undefined : midnight + time - offset;
}

/** The midnight UTC of a day, or of the UTC day of a timestamp. */
function dayOf(text: string): number | undefined {
  const instant = instantOf(text);
  return instant === undefined ? undefined : Math.floor(instant / ONE_DAY) * ONE_DAY;
}

export function timestampText(instant: number): string {
  return new Date(instant).toISOString().replace("Z", "+00:00");
}

function midnightOf(text: string): number | undefined {
  const [, year, month, day] = DAY.exec(text) ?? [];
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A day that does not exist rolls over into another month, and so prints as another day.
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== text) return undefined;
  return date.getTime();
}

function timeOf(text: string): number | undefined {
  const [, hour, minute, second = "0", fraction = ""] = TIME.exec(text) ?? [];
  if (!(Number(hour) <= 23 && Number(minute) <= 59 && Number(second) <= 59)) return undefined;
  // Finer than a millisecond is cut off, not rounded.
  const milliseconds = Number(fraction.padEnd(3, "0").slice(0, 3));
  return (Number(hour) * 60 + Number(minute)) * MINUTE + Number(second) * 1000 + milliseconds;
}

function offsetOf(zone: RegExpExecArray): number | undefined {
  if (zone[1] === undefined) return 0;
  const [, sign, hour, minute = "00"] = zone;
  if (Number(hour) > 23 || Number(minute) > 59) return undefined;
  return (sign === "-" ? -1 : 1) * (Number(hour) * 60 + Number(minute)) * MINUTE;
}

/** What equality compares. `undefined` for a text that cannot be read as the column's type: it equals nothing. */
export function equalityKey(column: ModelColumn, text: string): string | number | boolean | undefined {
  switch (column.type) {
    case "number":
      return numberOf(text);
    case "boolean":
      return { true: true, "1": true, false: false, "0": false }[text.toLowerCase()];
    case "date":
      return dayOf(text);
    case "datetime":
    case "timestamp":
      return instantOf(text);
    case "relation":
      return uuidOf(text);
    default:
      return text;
  }
}

/** What `gt`, `gte`, `lt` and `lte` compare; `undefined` for a text that cannot be read so, or a type without order. */
export function orderKey(column: ModelColumn, text: string): number | undefined {
  switch (column.type) {
    case "boolean":
    case "relation":
      return undefined;
    case "date":
      return dayOf(text);
    case "datetime":
    case "timestamp":
      return instantOf(text);
    default:
      return numberOf(text);
  }
}

/** The text form of a stored value, which `contains` and `starts_with` look at and the keys above can read. */
export function textForm(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * English sorts by the Unicode root collation. Not `und`: where Node has no locale of that name, it uses the machine's
 * own, and Swedish, for one, sorts differently.
 */
const ROOT = new Intl.Collator("en");

/** Ascending order of two stored values of a sortable column. */
export function compareValues(column: ModelColumn, a: unknown, b: unknown): number {
  switch (column.type) {
    case "number":
    case "boolean":
      return Number(a) - Number(b);
    case "date":
    case "datetime":
    case "timestamp":
      return (instantOf(String(a)) ?? 0) - (instantOf(String(b)) ?? 0);
    default:
      return ROOT.compare(String(a), String(b)) || Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
  }
}
