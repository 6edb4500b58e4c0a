/** Turns the values of a source into the values of a bundle's fields. */
import type { FieldType } from "../../shared/api/catalog.ts";
import { readBoolean, readUuid } from "../../shared/api/value.ts";
import { quote } from "../import/report.ts";
import { readDate } from "./dates.ts";
import { isArray, isEmpty, readPlain } from "./facts.ts";
import { splitCell } from "./inference.ts";
import type { SourceValue } from "./record.ts";

/** The field that a value is for. */
export type Wanted = {
  readonly type: FieldType;
  readonly multiple: boolean;
  /** The slug of the content type that a relation leads to. */
  readonly target: string | null;
  readonly separator: string | null;
  readonly dayFirst: boolean;
};

/** What values need of the rest of the source. */
export type ValueContext = {
  readonly cleanHtml: (html: string, folder: string | null) => string;
  readonly placeMedia: (media: Media) => string;
  /** The id of the entry that a key, slug or name means; null when there is none. */
  readonly findEntry: (target: string | null, collection: string | null, key: string) => Found | null;
};

type Media = { readonly path: string | null; readonly name: string; readonly address: string | null };
type Found = { readonly type: string; readonly id: string };

/** The value, or null with what is wrong with it: the words continue the name of the field. */
export type Converted = { readonly value: unknown; readonly faults: readonly string[] };

export function convertValue(value: SourceValue, wanted: Wanted, context: ValueContext): Converted {
  if (wanted.type === "json") return { value: plainValue(value, context), faults: [] };
  const elements = readElements(value, wanted.separator);
  const made = elements.map((element) => convertElement(element, wanted, context));
  const faults = made.flatMap((one) => ("fault" in one ? [one.fault] : []));
  const values = made.flatMap((one) => ("fault" in one ? [] : [one.value]));
  if (wanted.multiple) return { value: isEmpty(value) && !isArray(value) ? null : values, faults };
  if (values.length > 1)
    return {
      value: values[0],
      faults: [...faults, `has ${values.length} values, and the field takes one: the first stays`],
    };
  return { value: values[0] ?? null, faults };
}

function readElements(value: SourceValue, separator: string | null): readonly SourceValue[] {
  if (isArray(value)) return value.filter((one) => !isEmpty(one));
  if (isEmpty(value)) return [];
  const isCell = typeof value === "object" && value !== null && "kind" in value && value.kind === "cell";
  if (separator === null || !isCell) return [value];
  return splitCell(readPlain(value) ?? "", separator);
}

type Element = { readonly value: unknown } | { readonly fault: string };

function convertElement(value: SourceValue, wanted: Wanted, context: ValueContext): Element {
  const text = readPlain(value);
  switch (wanted.type) {
    case "rich_text":
      return { value: readHtml(value, context) };
    case "media":
      return readMedia(value, context);
    case "relation":
      return readReference(value, wanted.target, context);
    case "number": {
      const number = typeof value === "number" ? value : Number(text?.trim() || Number.NaN);
      return Number.isFinite(number) ? { value: number } : misfit("a number", value);
    }
    case "boolean": {
      const flag =
        typeof value === "boolean"
          ? value
          : readBoolean((text ?? "").replace(/^yes$/i, "true").replace(/^no$/i, "false"));
      return flag === null ? misfit("true or false", value) : { value: flag };
    }
    case "date":
    case "datetime": {
      const date = readDate(text ?? "", wanted.dayFirst ? "day first" : "month first");
      if (date === null) return misfit("a date", value);
      if (wanted.type === "date") return { value: date.text.slice(0, 10) };
      return { value: date.type === "date" ? `${date.text}T00:00:00.000Z` : date.text };
    }
    default:
      return { value: readText(value, context) };
  }
}

function misfit(expected: string, value: SourceValue): Element {
  return { fault: `must be ${expected}, not ${quote(readPlain(value) ?? value)}` };
}

function readText(value: SourceValue, context: ValueContext): string {
  const plain = readPlain(value);
  if (plain !== null) return plain;
  const held = plainValue(value, context);
  return typeof held === "string" ? held : JSON.stringify(held);
}

/** An entry as a line of a bundle. U+0000 is left out and half a surrogate pair replaced, which cannot be stored. */
export function writeJsonLine(entry: object): string {
  return `${JSON.stringify(entry, (_, value) => cleanValue(value))}\n`;
}

function cleanValue(value: unknown): unknown {
  if (typeof value === "string") return cleanText(value);
  if (typeof value !== "object" || value === null || Object.keys(value).every((key) => cleanText(key) === key))
    return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [cleanText(key), one]));
}

function cleanText(text: string): string {
  return text.replaceAll("\u0000", "").replace(/\p{Cs}/gu, "\ufffd");
}

function readHtml(value: SourceValue, { cleanHtml }: ValueContext): string {
  const isHtml = typeof value === "object" && value !== null && "kind" in value && value.kind === "html";
  return isHtml ? cleanHtml(value.html, value.folder) : cleanHtml(readPlain(value) ?? JSON.stringify(value), null);
}

function readMedia(value: SourceValue, { placeMedia }: ValueContext): Element {
  const isMedia = typeof value === "object" && value !== null && "kind" in value && value.kind === "media";
  if (isMedia) return { value: placeMedia(value) };
  const text = readPlain(value);
  return text === null ? misfit("a file name", value) : { value: text };
}

function readReference(value: SourceValue, target: string | null, { findEntry }: ValueContext): Element {
  const key = readPlain(value);
  if (key === null) return misfit("an id, slug or name of an entry", value);
  const isReference = typeof value === "object" && value !== null && "kind" in value && value.kind === "reference";
  const found = findEntry(target, isReference ? value.collection : null, key);
  if (found !== null && (target === null || found.type === target)) return { value: found.id };
  const id = readUuid(key);
  // A relation may lead to nothing yet.
  return id === null
    ? { fault: `leads to no entry${target === null ? "" : ` of ${target}`}: ${quote(key)}` }
    : { value: id };
}

/** A value as JSON: what is more than text becomes what its own field would have. */
function plainValue(value: SourceValue, context: ValueContext): unknown {
  if (isArray(value)) return value.map((one) => plainValue(one, context));
  if (value === null || typeof value !== "object" || !("kind" in value)) return value;
  if (value.kind === "json") return value.value;
  if (value.kind === "object")
    return Object.fromEntries(Object.entries(value.fields).map(([name, one]) => [name, plainValue(one, context)]));
  if (value.kind === "html") return context.cleanHtml(value.html, value.folder);
  if (value.kind === "media") return context.placeMedia(value);
  if (value.kind === "reference") return context.findEntry(null, value.collection, value.key) ?? { id: value.key };
  return value.text;
}
