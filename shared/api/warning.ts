/**
 * Writes X-Request-Warning: what a request asked for in vain without being refused. Changes neither its price nor its
 * answer. Source: shared/contract.md section 7.
 */
import { type Column, type ContentType, findColumn, isFilterable } from "./catalog.ts";
import { isReadable, listedValues } from "./filter.ts";
import type { ApiRequest, Filter } from "./request.ts";

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
