/** Finds, for a counted request, the nearest one that is free. */
import { type ContentType, defaultPerPage } from "../shared/catalog.ts";
import { meter } from "../shared/metering.ts";
import { planRequest } from "../shared/plan.ts";
import { isRefusal } from "../shared/refusal.ts";
import { type ApiRequest, type Asked, type Filter, type Route, readRequest } from "../shared/request.ts";
import { defaultSort, readSort } from "../shared/sort.ts";

export type Nearest = {
  /** Path and query, from `/api/v1` on. */
  readonly target: string;
  /** Does it give the same answer? Otherwise it is what the request becomes without what is counted. */
  readonly same: boolean;
};

/** Null when no free request comes near: for search there is none. */
export function nearestFree(request: ApiRequest, type: ContentType): Nearest | null {
  const { route, asked } = request;
  if (route.kind === "entry") return { target: pathOf(route), same: false };
  if (route.kind !== "list") return null;
  const same = equivalents(asked, type);
  for (const candidate of [...same, ...reductions(asked)]) {
    const target = pathOf(route) + queryOf(candidate);
    if (isFree(request, target, type)) return { target, same: same.includes(candidate) };
  }
  return null;
}

/** The same request without what it need not say. */
function equivalents(asked: Asked, type: ContentType): Asked[] {
  const { page, per_page, sort, filters, ...rest } = asked;
  const equalities = filters.map(asEquality);
  // Two conditions on a field must not become one parameter, of which the last would win.
  const distinct = new Set(equalities.map(({ parameter }) => parameter)).size === equalities.length;
  const needed: Asked = {
    ...rest,
    filters: distinct ? equalities : filters,
    ...(page !== undefined && Number(page) !== 1 ? { page } : {}),
    ...(per_page !== undefined && Number(per_page) !== defaultPerPage(type) ? { per_page } : {}),
    ...(sort !== undefined && !isDefault(sort, type) ? { sort } : {}),
  };
  return [needed];
}

/** One of the things asked for, alone. */
function reductions({ filters, sort, page }: Asked): Asked[] {
  const alone = filters.map((filter): Asked => ({ filters: [asEquality(filter)] }));
  const sorted: Asked[] = sort === undefined ? [] : [{ filters: [], sort }];
  return [...alone, ...sorted, { filters: [], ...(page === undefined ? {} : { page }) }];
}

/** `in` with one value is an equality. */
function asEquality(filter: Filter): Filter {
  const values = filter.value.split(",").filter((value) => value !== "");
  if (filter.operator !== "in" || values.length !== 1) return filter;
  return { parameter: `filter[${filter.field}]`, field: filter.field, operator: "eq", value: values[0] as string };
}

function isDefault(text: string, type: ContentType): boolean {
  const sort = readSort(type, text);
  const usual = defaultSort(type);
  return sort !== null && sort.column.name === usual.column.name && sort.descending === usual.descending;
}

function isFree({ appKey }: ApiRequest, target: string, type: ContentType): boolean {
  const request = readRequest({ method: "GET", target, appKey });
  return request.kind === "request" && !meter(request, type).counted && !isRefusal(planRequest(request, type));
}

function pathOf(route: Route & { slug: string }): string {
  return `/api/v1/${route.slug}${route.kind === "entry" ? `/${encodeURIComponent(route.id)}` : ""}`;
}

function queryOf({ filters, ...scalars }: Asked): string {
  const pairs = [
    ...filters.map(({ parameter, value }) => `${parameter}=${encodeURIComponent(value)}`),
    ...Object.entries(scalars).map(([name, value]) => `${name}=${encodeURIComponent(value as string)}`),
  ];
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}
