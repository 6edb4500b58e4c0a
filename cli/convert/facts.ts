/** Collects what all values of a field have in common, in memory that does not grow with their number. */
import { type DayOrder, findOrder, isAmbiguous, readDate } from "./dates.ts";
import type { SourceValue } from "./record.ts";

export type ValueKind = "text" | "cell" | "number" | "boolean" | "html" | "reference" | "media" | "json";

/** What is known of a field of a collection. All counts are of single values: an array counts with each element. */
export type Facts = {
  readonly name: string;
  /** Records with a value, and those of them whose value is an array. */
  records: number;
  arrays: number;
  values: number;
  readonly kinds: Map<ValueKind, number>;
  /** Texts and cells: how many are numbers, and numbers that are rather codes, such as `00501` and `+49 30`. */
  numbers: number;
  codes: number;
  booleans: number;
  dates: number;
  datetimes: number;
  /** Dates in numbers alone that do not tell which number is the month, and the orders that others tell. */
  ambiguous: number;
  readonly orders: Set<DayOrder>;
  longest: number;
  /** Texts of words, which people search for: not codes, addresses, or names of files. */
  worded: number;
  /** The first different values and how often each occurs. `overflows` when there are more. */
  readonly distinct: Map<string, number>;
  overflows: boolean;
  /** The collections that references name; null for one that the source does not tell. */
  readonly collections: Set<string | null>;
};

const MAX_DISTINCT = 1_000;
/** A longer value repeats too rarely to be kept. */
const MAX_KEPT = 200;

export function newFacts(name: string): Facts {
  const counts = { records: 0, arrays: 0, values: 0, numbers: 0, codes: 0, booleans: 0, dates: 0, datetimes: 0 };
  return {
    name,
    ...counts,
    ambiguous: 0,
    longest: 0,
    worded: 0,
    overflows: false,
    kinds: new Map(),
    orders: new Set(),
    distinct: new Map(),
    collections: new Set(),
  };
}

/** Takes a record's value into account. Null and an empty text or array are no values. */
export function addValue(facts: Facts, value: SourceValue): void {
  const elements = (isArray(value) ? value : [value]).filter((one) => !isEmpty(one));
  if (elements.length === 0) {
    if (isArray(value)) facts.arrays += 1;
    return;
  }
  facts.records += 1;
  if (isArray(value)) facts.arrays += 1;
  for (const element of elements) addElement(facts, element);
}

export function isArray(value: SourceValue): value is readonly SourceValue[] {
  return Array.isArray(value);
}

export function isEmpty(value: SourceValue): boolean {
  if (value === null || value === "") return true;
  return typeof value === "object" && "kind" in value && value.kind === "cell" && value.text.trim() === "";
}

function addElement(facts: Facts, value: SourceValue): void {
  const kind = readKind(value);
  facts.values += 1;
  facts.kinds.set(kind, (facts.kinds.get(kind) ?? 0) + 1);
  const text = readPlain(value);
  if (text === null) return;
  addDistinct(facts, text);
  if (kind === "reference") facts.collections.add((value as { collection: string | null }).collection);
  if (kind === "text" || kind === "cell") addText(facts, text);
}

function readKind(value: SourceValue): ValueKind {
  if (typeof value === "string") return "text";
  if (typeof value === "number" || typeof value === "boolean") return typeof value as "number" | "boolean";
  if (value === null || !("kind" in value) || value.kind === "object") return "json";
  return value.kind;
}

/** The text by which a value is compared with others; null for one that is not compared. */
export function readPlain(value: SourceValue): string | null {
  if (value === null || typeof value !== "object") return String(value);
  if (!("kind" in value)) return null;
  if (value.kind === "cell") return value.text.trim();
  if (value.kind === "reference") return value.key;
  return value.kind === "media" ? value.name : null;
}

function addDistinct(facts: Facts, text: string): void {
  const count = facts.distinct.get(text);
  if (count !== undefined) facts.distinct.set(text, count + 1);
  else if (facts.distinct.size < MAX_DISTINCT && text.length <= MAX_KEPT) facts.distinct.set(text, 1);
  else facts.overflows = true;
}

const NUMBER = /^-?(\d+(\.\d+)?|\.\d+)(e[+-]?\d+)?$/i;
/** More digits than a double has, a leading zero, or the signs of telephone numbers. */
const CODE = /^-?0\d|^\+|^\d{16,}$|^[\d ()/-]+[ ()/-][\d ()/-]*$/;

function addText(facts: Facts, text: string): void {
  facts.longest = Math.max(facts.longest, text.length);
  if (/\p{L}{3}/u.test(text) && !/^\S*[@/:\d_]\S*$/.test(text)) facts.worded += 1;
  if (NUMBER.test(text)) facts.numbers += 1;
  if (CODE.test(text)) facts.codes += 1;
  if (/^(true|false|yes|no)$/i.test(text)) facts.booleans += 1;
  const date = readDate(text);
  const other = date ?? readDate(text, "day first");
  if (other === null) return;
  facts[other.type === "date" ? "dates" : "datetimes"] += 1;
  const order = findOrder(text);
  if (order !== null) facts.orders.add(order);
  else if (isAmbiguous(text)) facts.ambiguous += 1;
}
