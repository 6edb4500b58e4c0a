/**
 * Plans a request: decides what it means for a content type, or why it is refused, without database or tree. The checks
 * run in the order of shared/contract.md section 3.
 */
import { type ContentType, DEFAULT_PER_PAGE, defaultPerPage, type Field, MAX_PER_PAGE } from "./catalog.ts";
import {
  defaultSort,
  readSort,
  type Shown,
  type Sort,
  shownOfEntry,
  shownOfList,
  shownOfNames,
  shownOfSearch,
} from "./columns.ts";
import {
  badFields,
  badPage,
  badPerPage,
  badPopulate,
  badQuery,
  badSort,
  entryNotFound,
  isRefusal,
  MAX_NAMES_LENGTH,
  MAX_QUERY_LENGTH,
  MIN_QUERY_LENGTH,
  type Refusal,
  typeNotFound,
} from "./errors.ts";
import { type Condition, planConditions } from "./filter.ts";
import { readWords } from "./folding.ts";
import type { ApiRequest, RequestParameters } from "./request.ts";
import { countCharacters, readNames, readUuid, readWhole } from "./value.ts";

type Pages = { readonly page: bigint; readonly perPage: number };

export type ListPlan = Pages & {
  readonly kind: "list";
  readonly type: ContentType;
  readonly conditions: readonly Condition[];
  readonly sort: Sort;
  readonly shown: Shown;
};

export type SearchPlan = Pages & {
  readonly kind: "search";
  readonly type: ContentType;
  readonly conditions: readonly Condition[];
  /** Null means order of relevance. */
  readonly sort: Sort | null;
  readonly shown: Shown;
  readonly query: string;
  /** Different, and folded. */
  readonly words: readonly string[];
};

export type EntryPlan = {
  readonly kind: "entry";
  readonly type: ContentType;
  readonly id: string;
  readonly shown: Shown;
  readonly populate: readonly Field[];
  /** Why the parameters are refused, or null. Applies only when the entry exists: a missing entry takes precedence. */
  readonly refusal: Refusal | null;
};

export type Plan =
  | { readonly kind: "catalog" }
  | { readonly kind: "schema"; readonly type: ContentType }
  | ListPlan
  | SearchPlan
  | EntryPlan;

/** `type` is undefined when the app has no such published type. */
export function planRequest({ route, parameters }: ApiRequest, type: ContentType | undefined): Plan | Refusal {
  if (route.kind === "catalog") return { kind: "catalog" };
  if (type === undefined) return typeNotFound();
  switch (route.kind) {
    case "schema":
      return { kind: "schema", type };
    case "entry":
      return planEntry(type, route.id, parameters);
    case "list":
      return planList(type, parameters);
    case "search":
      return planSearch(type, parameters);
  }
}

function planEntry(type: ContentType, text: string, { populate }: RequestParameters): EntryPlan | Refusal {
  const id = readUuid(text);
  if (id === null) return entryNotFound();
  const entry = { kind: "entry", type, id, shown: shownOfEntry(type) } as const;
  if (populate !== undefined && countCharacters(populate) > MAX_NAMES_LENGTH)
    return { ...entry, populate: [], refusal: badPopulate() };
  const names = readNames(populate ?? "");
  const relations = type.fields.filter((field) => field.type === "relation" && names.includes(field.name));
  return { ...entry, populate: relations, refusal: null };
}

function planList(type: ContentType, parameters: RequestParameters): ListPlan | Refusal {
  const conditions = planConditions(type, parameters.filters);
  if (isRefusal(conditions)) return conditions;
  const sort = parameters.sort === undefined ? defaultSort(type) : readSort(type, parameters.sort);
  if (sort === null) return badSort(type, parameters.sort ?? "");
  const pages = planPages(parameters, defaultPerPage(type));
  if (isRefusal(pages)) return pages;
  const shown = planShown(type, parameters.fields, shownOfList);
  return isRefusal(shown) ? shown : { ...pages, kind: "list", type, conditions, sort, shown };
}

function planSearch(type: ContentType, parameters: RequestParameters): SearchPlan | Refusal {
  const conditions = planConditions(type, parameters.filters);
  if (isRefusal(conditions)) return conditions;
  const sort = parameters.sort === undefined ? null : readSort(type, parameters.sort);
  if (parameters.sort !== undefined && sort === null) return badSort(type, parameters.sort);
  const pages = planPages(parameters, DEFAULT_PER_PAGE);
  if (isRefusal(pages)) return pages;
  const shown = planShown(type, parameters.fields, shownOfSearch);
  if (isRefusal(shown)) return shown;
  const query = (parameters.q ?? "").trim();
  const length = countCharacters(query);
  if (length < MIN_QUERY_LENGTH || length > MAX_QUERY_LENGTH) return badQuery();
  return { ...pages, kind: "search", type, conditions, sort, shown, query, words: readWords(query) };
}

function planPages(parameters: RequestParameters, defaultSize: number): Pages | Refusal {
  const page = readWhole(parameters.page ?? "1");
  if (page === null || page < 1n) return badPage();
  const perPage = parameters.per_page === undefined ? BigInt(defaultSize) : readWhole(parameters.per_page);
  if (perPage === null || perPage < 1n || perPage > MAX_PER_PAGE) return badPerPage();
  return { page, perPage: Number(perPage) };
}

function planShown(
  type: ContentType,
  fields: string | undefined,
  defaultShown: (type: ContentType) => Shown,
): Shown | Refusal {
  if (fields === undefined) return defaultShown(type);
  return countCharacters(fields) > MAX_NAMES_LENGTH ? badFields() : shownOfNames(type, readNames(fields));
}
