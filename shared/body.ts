/** Puts together the bodies of answers: catalog, schema, list, search, entry and error. Source: spec.md section 2. */
import { type App, type ContentType, searchableFields } from "./catalog.ts";
import type { Refusal } from "./refusal.ts";

/** Position of a page in its list. `page` is any whole number from 1; `total` is the list's number of entries. */
export type PageMeta = { readonly page: bigint; readonly perPage: number; readonly total: number };

/** `entryCounts` holds the number of published entries by type slug; a type that is absent has 0. */
export function catalogBody(app: App, entryCounts: ReadonlyMap<string, number>): string {
  const items = app.types.map((type) => ({
    ...head(type),
    entry_count: entryCounts.get(type.slug) ?? 0,
    fields: type.fields.map((field) => field.name),
    ...lists(type),
  }));
  return JSON.stringify({ data: items });
}

export function schemaBody(type: ContentType): string {
  const fields = type.fields.map(({ name, type: kind, required, label, searchable }) => ({
    name,
    type: kind,
    required,
    label,
    searchable,
  }));
  return JSON.stringify({ data: { ...head(type), fields, ...lists(type) } });
}

function head({ slug, name, description, icon }: ContentType) {
  return { slug, name, description, icon };
}

function lists(type: ContentType) {
  return {
    filterable_fields: type.filterable_fields,
    sortable_fields: type.sortable_fields,
    searchable_fields: searchableFields(type).map((field) => field.name),
  };
}

/** `items` are JSON texts. `query` is the search term, which `meta` echoes; undefined when it is not a search. */
export function listBody(items: readonly string[], meta: PageMeta, query?: string): string {
  return `{"data":[${items.join(",")}],"meta":${metaText(meta, query)}}`;
}

function metaText({ page, perPage, total }: PageMeta, query: string | undefined): string {
  const echo = query === undefined ? "" : `,"query":${JSON.stringify(query)}`;
  return `{"current_page":${page},"per_page":${perPage},"total":${total},"last_page":${lastPage(total, perPage)}${echo}}`;
}

export function lastPage(total: number, perPage: number): number {
  return Math.max(1, Math.ceil(total / perPage));
}

export function entryBody(entry: string): string {
  return `{"data":${entry}}`;
}

export function errorBody({ code, message, parameter }: Refusal): string {
  return JSON.stringify({ error: { code, message, ...(parameter === null ? {} : { parameter }) } });
}

const [OPENING, CLOSING] = Buffer.from("{}");

/** Whether a body begins and ends like every body: a power failure can leave files empty, cut or full of zeros. */
export function isWholeBody(bytes: Buffer): boolean {
  return bytes.at(0) === OPENING && bytes.at(-1) === CLOSING;
}
