/** Describes the endpoints of an app: for each content type a list, a search and an entry, with their prices. */
import { schemaBody } from "../../shared/api/answer.ts";
import { type App, DEFAULT_PER_PAGE, defaultPerPage, findType } from "../../shared/api/catalog.ts";
import { type Price, priceRequest } from "../../shared/api/pricing.ts";
import { type Route, readRequest } from "../../shared/api/request.ts";
import { type NamedApp, type NamedType, NO_VALUES, type View } from "../types/names.ts";
import { describeProperties } from "../types/properties.ts";
import type { Entry, Examples } from "./examples.ts";
import { describeFilters, describeListing, describePopulate, describeQuery, type Parameter } from "./parameters.ts";
import { describeFound, describeResponses, type Json } from "./responses.ts";

type Operation = {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** A request with what it needs and nothing else, below the base path. */
  readonly target: string;
  readonly parameters?: readonly (Parameter | Json)[];
  /** The names of the schemas that its answer may have. */
  readonly answers: readonly string[];
  readonly example?: unknown;
};

/** Paths are relative to the base path. */
export function describePaths(named: NamedApp, examples: Examples): Json {
  const { app, types } = named;
  const [first] = app.types;
  const slug = { name: "contentType", in: "path", required: true, description: "The content type." };
  const slugs = { type: "string", ...(first === undefined ? {} : { enum: app.types.map((type) => type.slug) }) };
  return {
    "/_schemas": describeOperation(app, {
      ...{ id: "readCatalog", tag: "_schemas", summary: "List the content types" },
      ...{ target: "/_schemas", answers: ["Catalog"] },
    }),
    "/_schemas/{contentType}": describeOperation(app, {
      ...{ id: "readSchema", tag: "_schemas", summary: "Get the fields of a content type" },
      ...{ target: "/_schemas/x", answers: ["Schema"] },
      parameters: [{ ...slug, schema: slugs, ...(first === undefined ? {} : { example: first.slug }) }],
      ...(first === undefined ? {} : { example: JSON.parse(schemaBody(first)) }),
    }),
    ...Object.assign({}, ...types.map((one) => describeType(named, one, examples.get(one.type.slug) ?? []))),
  };
}

function describeType(named: NamedApp, one: NamedType, entries: readonly Entry[]): Json {
  const { app } = named;
  const { slug } = one.type;
  return {
    [`/${slug}`]: describeOperation(app, describeList(named, one, entries)),
    [`/${slug}/search`]: describeOperation(app, describeSearch(named, one, entries)),
    [`/${slug}/{id}`]: describeOperation(app, describeEntry(one, entries)),
  };
}

function describeList(named: NamedApp, one: NamedType, entries: readonly Entry[]): Operation {
  const { type, name } = one;
  const { slug } = type;
  return {
    ...{ id: `list${name}`, tag: slug, summary: `List ${slug}`, target: `/${slug}`, answers: [`${name}ItemAnswer`] },
    description: "One equality filter alone, or one sort alone, is free as well.",
    parameters: [...filterParameters(one, entries), ...describeListing(type, "list")],
    example: pageExample(named, one, "Item", entries, { per_page: defaultPerPage(type) }),
  };
}

function describeSearch(named: NamedApp, one: NamedType, entries: readonly Entry[]): Operation {
  const { type, name } = one;
  const { slug } = type;
  const query = describeQuery(type, entries);
  const answers = [`${name}SearchItemAnswer`];
  const echo = { per_page: DEFAULT_PER_PAGE, query: query.example };
  return {
    ...{ id: `search${name}`, tag: slug, summary: `Search ${slug}`, target: `/${slug}/search?q=aa`, answers },
    parameters: [query, ...filterParameters(one, entries), ...describeListing(type, "search")],
    example: pageExample(named, one, "SearchItem", entries, echo),
  };
}

function describeEntry({ type, name }: NamedType, [first]: readonly Entry[]): Operation {
  const { slug } = type;
  const populate = describePopulate(type);
  const id = { name: "id", in: "path", required: true, description: "The id of the entry, in any case." };
  const example = first === undefined ? {} : { example: first.id };
  const answers = [`${name}EntryAnswer`, ...(populate === null ? [] : [`${name}PopulatedAnswer`])];
  return {
    ...{ id: `get${name}`, tag: slug, summary: `Get one of ${slug}`, target: `/${slug}/x`, answers },
    parameters: [
      { ...id, schema: { type: "string", format: "uuid" }, ...example },
      ...(populate === null ? [] : [populate]),
    ],
    ...(first === undefined ? {} : { example: { data: first } }),
  };
}

/** Equality is priced where it is used, as it may be free. The others are counted anywhere, and described once. */
function filterParameters({ type }: NamedType, entries: readonly Entry[]): readonly (Parameter | Json)[] {
  return describeFilters(type, entries).map(({ operator, key, parameter }) =>
    operator === "eq" ? parameter : { $ref: `#/components/parameters/${key}` },
  );
}

/** What operations refer to. */
export function describeSharedParameters({ app }: NamedApp, examples: Examples): Json {
  const shared = app.types.flatMap((type) =>
    describeFilters(type, examples.get(type.slug) ?? [])
      .filter(({ operator }) => operator !== "eq")
      .map(({ key, parameter }) => [key, pricedParameter(app, `/${type.slug}`, parameter)] as const),
  );
  return Object.fromEntries(shared);
}

/** A page with one entry. Totals of the real one would be out of date with the next entry. */
function pageExample(
  named: NamedApp,
  one: NamedType,
  view: View,
  [first]: readonly Entry[],
  meta: Json,
): Json | undefined {
  if (first === undefined) return undefined;
  const shown = describeProperties(named, one, view, NO_VALUES).map(({ name }) => [name, first[name]]);
  const { per_page, ...rest } = meta;
  return { data: [Object.fromEntries(shown)], meta: { current_page: 1, per_page, total: 1, last_page: 1, ...rest } };
}

function describeOperation(app: App, operation: Operation): Json {
  const { id, tag, summary, description, target, parameters = [], answers, example } = operation;
  const { kind, price } = priceTarget(app, target);
  const schemas = answers.map((name) => ({ $ref: `#/components/schemas/${name}` }));
  const [schema = {}, ...more] = schemas;
  const found = describeFound("Found.", more.length === 0 ? schema : { anyOf: schemas }, example);
  return {
    get: {
      ...{ operationId: id, tags: [tag], summary, description: `${price.rule} ${description ?? ""}`.trim() },
      "x-precast-counted": price.counted,
      parameters: parameters.map((one) => ("schema" in one ? pricedParameter(app, target, one) : one)),
      responses: describeResponses(kind, found),
    },
  };
}

/** What a request with nothing else costs: an extension that says `true` for a counted one. */
function pricedParameter(app: App, target: string, parameter: Json): Json {
  if (parameter.in !== "query") return parameter;
  const { enum: [value] = ["1"] } = parameter.schema as { enum?: readonly string[] };
  const sent = `${encodeURIComponent(parameter.name as string)}=${value}`;
  const { price } = priceTarget(app, `${target}${target.includes("?") ? "&" : "?"}${sent}`);
  return { ...parameter, "x-precast-counted": price.counted };
}

/** By the code that the server counts with. */
function priceTarget(app: App, target: string): { readonly kind: Route["kind"]; readonly price: Price } {
  const request = readRequest({ method: "GET", target: `/api/v1${target}`, appKey: app.key });
  if (request.kind !== "request") throw new Error(`${target} is no request of the API`);
  const { route } = request;
  const type = route.kind === "catalog" ? undefined : findType(app, route.slug);
  return { kind: route.kind, price: priceRequest(request, type) };
}
