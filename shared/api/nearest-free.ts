/** Finds, for a counted request, the nearest one that is free: for whoever may do with less than they asked for. */
import type { ContentType } from "./catalog.ts";
import { isRefusal } from "./errors.ts";
import { planRequest } from "./plan.ts";
import { findFreeEquivalent, priceRequest } from "./pricing.ts";
import { type ApiRequest, type Filter, type RequestParameters, readRequest, writeQuery } from "./request.ts";

export type NearestFree = {
  /** Path and query, from `/api/v1` on. */
  readonly target: string;
  /** Whether the answer is the same. If not, only one filter, the sort or the page of the request is kept. */
  readonly same: boolean;
};

/** Null when there is none, as for every search. */
export function findNearestFree(request: ApiRequest, type: ContentType): NearestFree | null {
  const { route, parameters } = request;
  if (route.kind !== "entry" && route.kind !== "list") return null;
  const path = `/api/v1/${route.slug}${route.kind === "entry" ? `/${encodeURIComponent(route.id)}` : ""}`;
  const same = findFreeEquivalent(request, type)?.request.parameters;
  for (const candidate of [...(same === undefined ? [] : [same]), ...reductions(parameters)]) {
    const target = path + writeQuery(candidate);
    if (isFree(request, target, type)) return { target, same: candidate === same };
  }
  return null;
}

/** Requests that keep one part each: one of the filters, the sort, or the page (no part when no page is given). */
function reductions({ filters, sort, page }: RequestParameters): RequestParameters[] {
  const alone = filters.map((filter): RequestParameters => ({ filters: [asEquality(filter)] }));
  const sorted: RequestParameters[] = sort === undefined ? [] : [{ filters: [], sort }];
  return [...alone, ...sorted, { filters: [], ...(page === undefined ? {} : { page }) }];
}

/** `in` with one value is an equality. */
function asEquality(filter: Filter): Filter {
  const values = filter.value.split(",").filter((value) => value !== "");
  if (filter.operator !== "in" || values.length !== 1) return filter;
  return { parameter: `filter[${filter.field}]`, field: filter.field, operator: "eq", value: values[0] as string };
}

function isFree({ appKey }: ApiRequest, target: string, type: ContentType): boolean {
  const request = readRequest({ method: "GET", target, appKey });
  return request.kind === "request" && !priceRequest(request, type).counted && !isRefusal(planRequest(request, type));
}
