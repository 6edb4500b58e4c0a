/** Decides the shape of a request, and whether it is counted, by URL and type alone. Source: contract.md section 5. */
import { type ContentType, isFilterable, isTimestamp } from "./catalog.ts";
import type { ApiRequest, Filter, RequestParameters } from "./request.ts";
import { readSort } from "./sort.ts";

export type FreeShape = "catalog" | "schema" | "entry" | "page" | "filter" | "sort";
const COUNTED_SHAPES = ["list", "populate", "search"] as const;
export type CountedShape = (typeof COUNTED_SHAPES)[number];
export type Shape = FreeShape | CountedShape;

export type Metering = {
  readonly shape: Shape;
  readonly counted: boolean;
  /** The rule that applies, as a sentence for `precast explain`. */
  readonly rule: string;
};

/** Decides by shape alone. A request that the ledger cannot record is refused and uncounted, whatever its shape. */
export function isCountedShape(shape: Shape): shape is CountedShape {
  return (COUNTED_SHAPES as readonly Shape[]).includes(shape);
}

/** `type` is undefined when the app has no such published type, which then has no filterable and no sortable field. */
export function meter(request: ApiRequest, type: ContentType | undefined): Metering {
  const { shape, rule } = classify(request, type);
  return { shape, counted: isCountedShape(shape), rule };
}

function classify({ route, parameters }: ApiRequest, type: ContentType | undefined): { shape: Shape; rule: string } {
  switch (route.kind) {
    case "catalog":
    case "schema":
      return { shape: route.kind, rule: "The catalog and the schemas are free." };
    case "entry":
      return parameters.populate === undefined
        ? { shape: "entry", rule: "An entry without populate is free." }
        : { shape: "populate", rule: "An entry with populate is counted." };
    case "search":
      return { shape: "search", rule: "Search is always counted." };
    case "list":
      return classifyList(parameters, type);
  }
}

function classifyList(parameters: RequestParameters, type: ContentType | undefined): { shape: Shape; rule: string } {
  const { filters, sort, page } = parameters;
  const counted = (rule: string) => ({ shape: "list" as const, rule });
  if (parameters.per_page !== undefined) return counted("A list with per_page is counted.");
  if (parameters.fields !== undefined) return counted("A list with fields is counted.");
  if (filters.length + (sort === undefined ? 0 : 1) > 1)
    return counted("A list with more than one filter or sort is counted.");
  const filter = filters[0];
  if (filter === undefined && sort === undefined)
    return { shape: "page", rule: "A list without parameters, or with page alone, is free." };
  if (page !== undefined) return counted("A list with page and a filter or a sort is counted.");
  if (filter !== undefined) {
    return isFreeFilter(filter, type)
      ? { shape: "filter", rule: "One equality filter on a filterable field, alone, is free." }
      : counted("A filter other than equality on a filterable field is counted.");
  }
  return isFreeSort(sort as string, type)
    ? { shape: "sort", rule: "One sort on a sortable field or a timestamp, alone, is free." }
    : counted("A sort on a field that is not sortable is counted.");
}

function isFreeSort(sort: string, type: ContentType | undefined): boolean {
  return type === undefined ? isTimestamp(sort.replace(/^-/, "")) : readSort(type, sort) !== null;
}

function isFreeFilter({ field, operator }: Filter, type: ContentType | undefined): boolean {
  return field !== null && operator === "eq" && type !== undefined && isFilterable(type, field);
}
