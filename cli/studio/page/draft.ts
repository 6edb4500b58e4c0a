/** A request that is being put together: what its URL says, in parts that can be clicked, each of which changes the URL. */
import { PARAMETERS_OF, type Route, readRequest, splitTarget, writePairs } from "../../../shared/api/request.ts";

/** `pairs` are the parameters as sent, also those that are empty, repeated or unknown: a form may not lose them. */
export type Draft = { readonly route: Route; readonly pairs: readonly (readonly [name: string, value: string])[] };

/** A filter with its place among the parameters. */
export type DraftFilter = {
  readonly index: number;
  readonly field: string;
  readonly operator: string;
  readonly value: string;
};

/** Null when the path is none of the API. */
export function readDraft(target: string, appKey: string): Draft | null {
  const request = readRequest({ method: "GET", target, appKey });
  if (request.kind !== "request") return null;
  return { route: request.route, pairs: [...new URLSearchParams(`?${splitTarget(target).query}`)] };
}

/** Leaves what a query may contain as people write it. */
export function writeDraft({ route, pairs }: Draft): string {
  return writePath(route) + writePairs(pairs).replace(/%2C|%3A|%2F/g, decodeURIComponent);
}

function writePath(route: Route): string {
  if (route.kind === "catalog") return "/api/v1/_schemas";
  const slug = encodeURIComponent(route.slug);
  switch (route.kind) {
    case "schema":
      return `/api/v1/_schemas/${slug}`;
    case "list":
      return `/api/v1/${slug}`;
    case "search":
      return `/api/v1/${slug}/search`;
    case "entry":
      return `/api/v1/${slug}/${encodeURIComponent(route.id)}`;
  }
}

/** Drops what the other endpoint does not have, and with another type what named fields of the first. */
export function changeRoute({ route: before, pairs }: Draft, route: Route): Draft {
  const slugs = [before, route].map((one) => (one.kind === "catalog" ? "" : one.slug));
  const defined = slugs[0] === slugs[1] ? PARAMETERS_OF[route.kind] : ["q"];
  return { route, pairs: pairs.filter(([name]) => defined.includes(name.replace(/^filter\[.*/s, "filter"))) };
}

/** Empty when it is not sent. Of a repeated one, the last value counts. */
export function readParameter({ pairs }: Draft, name: string): string {
  return pairs.findLast(([one, value]) => one === name && value !== "")?.[1] ?? "";
}

export function setParameter({ route, pairs }: Draft, name: string, value: string): Draft {
  const others = pairs.filter(([one]) => one !== name);
  return { route, pairs: value === "" ? others : [...others, [name, value]] };
}

/** Those that are written like filters, whether or not the type has their fields. */
export function listFilters({ pairs }: Draft): DraftFilter[] {
  return pairs.flatMap(([name, value], index) => {
    const [, field, operator = "eq"] = /^filter\[([^\]]+)\](?:\[([^\]]*)\])?$/.exec(name) ?? [];
    return field === undefined ? [] : [{ index, field, operator, value }];
  });
}

/** One whose index is behind the last parameter is added. */
export function setFilter({ route, pairs }: Draft, { index, field, operator, value }: DraftFilter): Draft {
  const name = operator === "eq" ? `filter[${field}]` : `filter[${field}][${operator}]`;
  return { route, pairs: [...pairs.slice(0, index), [name, value], ...pairs.slice(index + 1)] };
}

export function removeFilter({ route, pairs }: Draft, { index }: DraftFilter): Draft {
  return { route, pairs: pairs.filter((_, at) => at !== index) };
}
