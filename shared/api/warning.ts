/**
 * Finds what a request asked for in vain without being refused, which changes neither its price nor its answer: the
 * warnings of X-Request-Warning, and what an endpoint ignores. Source: shared/contract.md sections 3 and 7.
 */
import { findNearest } from "../text.ts";
import { type Column, type ContentType, findColumn, isFilterable, TIMESTAMPS } from "./catalog.ts";
import { isReadable, listedValues } from "./filter.ts";
import { type ApiRequest, type Filter, PARAMETERS_OF, splitTarget } from "./request.ts";
import { readNames } from "./value.ts";

/** Bytes. Some proxies refuse answers whose headers together have more than 4,096. */
const MAX_SIZE = 2_000;
/** Also the longest length of a field name. */
const MAX_QUOTED = 63;
const SEPARATOR = "; ";

/** What a value that cannot be read is not. The values of other columns can be any text. */
const KIND: { readonly [type in Column["type"]]?: string } = {
  number: "number",
  boolean: "boolean",
  date: "date",
  datetime: "timestamp",
  timestamp: "timestamp",
  relation: "UUID",
};

/**
 * The value of the header: a warning for each filter with `like`, and for each value that nothing can equal, in the order
 * of the URL. Null without any.
 */
export function findWarning({ likeFields, parameters }: ApiRequest, type: ContentType | undefined): string | null {
  const dropped = likeFields.map((field) => {
    const name = encode(field, /./gsu);
    return `filter[${name}][like] was ignored, use filter[${name}][contains]`;
  });
  const unreadable = type === undefined ? [] : parameters.filters.flatMap((one) => warnOfFilter(type, one));
  const warnings = [...dropped, ...unreadable];
  return warnings.length === 0 ? null : joinWarnings(warnings);
}

function warnOfFilter(type: ContentType, { field, operator, parameter, value }: Filter): string[] {
  const column = field !== null && isFilterable(type, field) ? findColumn(type, field) : undefined;
  const kind = column && KIND[column.type];
  if (column === undefined || kind === undefined) return [];
  const unreadable = listedValues(operator, value).filter((text) => !isReadable(column, text));
  return unreadable.map((text) => `${parameter}: "${encode(text, /[^ -~]|["%;]/gu)}" is no ${kind}`);
}

/** Counts the warnings for which the header has no space. */
function joinWarnings(warnings: readonly string[]): string {
  const shown: string[] = [];
  let left = MAX_SIZE;
  for (const warning of warnings) {
    left -= warning.length + SEPARATOR.length;
    if (left < 0) break;
    shown.push(warning);
  }
  const hidden = warnings.length - shown.length;
  return [...shown, ...(hidden === 0 ? [] : [`${hidden} more warnings`])].join(SEPARATOR);
}

/** Makes text from a URL safe for a header: percent-encodes what `unsafe` matches, and cuts it. */
function encode(text: string, unsafe: RegExp): string {
  const encoded = [...text]
    .slice(0, MAX_QUOTED + 1)
    .join("")
    .replace(unsafe, encodeURIComponent);
  return encoded.length <= MAX_QUOTED ? encoded : `${encoded.slice(0, MAX_QUOTED).replace(/%.?$/, "")}...`;
}

// What an endpoint ignores without a word, as the contract has it: clients send such things for years unnoticed.

/** Something of a request that has no effect, and why. */
export type Ignored = { readonly parameter: string; readonly why: string };

/** In the order of the URL; names in `fields` and `populate` come last. */
export function findIgnored(target: string, request: ApiRequest, type: ContentType | undefined): Ignored[] {
  const sent = new Map(new URLSearchParams(`?${splitTarget(target).query}`));
  const vain = [...sent].flatMap(([parameter, value]) => {
    const why = whyIgnored(parameter, value, request);
    return why === null ? [] : [{ parameter, why }];
  });
  if (type === undefined) return vain;
  const fields = type.fields.map(({ name }) => name);
  const relations = type.fields.flatMap((field) => (field.type === "relation" ? field.name : []));
  const { parameters } = request;
  return [
    ...vain,
    ...unknownNames("fields", parameters.fields, ["id", ...fields, ...TIMESTAMPS], "field"),
    ...unknownNames("populate", parameters.populate, relations, "relation"),
  ];
}

function whyIgnored(parameter: string, value: string, { route, likeFields }: ApiRequest): string | null {
  const name = parameter.startsWith("filter[") ? "filter" : parameter;
  const everywhere = [...new Set(Object.values(PARAMETERS_OF).flat())];
  if (!everywhere.includes(name)) return `no endpoint has it${suggest(findNearest(name, everywhere))}`;
  if (!PARAMETERS_OF[route.kind].includes(name)) return `${PLACES[route.kind]} does not have it`;
  if (value === "") return "it is empty, which counts as not sent";
  return likeFields.some((field) => parameter === `filter[${field}][like]`)
    ? "there is no operator like (did you mean contains?)"
    : null;
}

const PLACES: Record<ApiRequest["route"]["kind"], string> = {
  catalog: "the catalog",
  schema: "a schema",
  list: "a list",
  search: "a search",
  entry: "a single entry",
};

function unknownNames(parameter: string, value: string | undefined, known: readonly string[], what: string): Ignored[] {
  const unknown = [...new Set(readNames(value ?? ""))].filter((name) => name !== "" && !known.includes(name));
  return unknown.map((name) => ({
    parameter,
    why: `the type has no ${what} '${name}'${suggest(findNearest(name, known))}`,
  }));
}

function suggest(nearest: string | null): string {
  return nearest === null ? "" : ` (did you mean ${nearest}?)`;
}
