/**
 * What could have been free: for generated content and generated requests, a counted request without what it is advised
 * to leave out is free, and its answer is the same, byte for byte.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type App, type ContentType, defaultPerPage, findType } from "../../shared/api/catalog.ts";
import { shownOfList } from "../../shared/api/columns.ts";
import { findFreeEquivalent } from "../../shared/api/pricing.ts";
import {
  type ApiRequest,
  type Filter,
  type RequestParameters,
  type Route,
  readRequest,
} from "../../shared/api/request.ts";
import { readApps } from "../../shared/apps.ts";
import { sql } from "../../shared/sql/query.ts";
import { arbitraryBundles } from "../support/content.ts";
import { arbitraryRequest } from "../support/requests.ts";
import {
  type ApiServer,
  buildSite,
  ENGINES,
  loadBundles,
  MEDIA,
  openApiServer,
  openStore,
  type Store,
} from "../support/site.ts";

const EFFORT = { postgres: { contents: 9, requests: 150 }, embedded: { contents: 2, requests: 60 } };
/** What can be superfluous; of filters also how many the request has. */
const PARTS = [
  "fields",
  "filter[][gte..lte] of 2",
  "filter[][in] of 1",
  "filter[][in] of 2",
  "page",
  "per_page",
  "populate",
  "sort",
];

describe.each(ENGINES)("on the %s database", (engine) => {
  let store: Store;
  const seen = new Set<string>();

  beforeAll(async () => {
    store = await openStore(engine);
  });
  afterAll(() => store.close());

  const contents = fc.sample(arbitraryBundles(), { numRuns: EFFORT[engine].contents, seed: 20260121 });

  test.each(contents.map((bundles, index) => ({ bundles, index })))(
    "content $index: each suggested request is free and has the same answer as the counted one",
    async ({ bundles, index }) => {
      await store.database.query(sql("DELETE FROM precast.apps"));
      await loadBundles(store, bundles);
      await buildSite(store);
      const apps = await readApps(store.database, { mediaBaseUrl: MEDIA });
      const api = await openApiServer(store);
      const requests = fc.sample(fc.tuple(arbitraryRequest(bundles), fc.infiniteStream(fc.nat())), {
        numRuns: EFFORT[engine].requests,
        seed: index,
      });
      for (const [{ target, appKey }, dice] of requests) {
        const app = apps.find(({ key }) => key === appKey);
        const request = readRequest({ method: "GET", target, appKey });
        if (app === undefined || request.kind !== "request") continue;
        await check(api, app, target, request, seen);
        const wordy = saidTwice(request, app, (sides) => (dice.next().value ?? 0) % sides);
        const wordyTarget = targetOf(wordy);
        if (wordyTarget !== null) await check(api, app, wordyTarget, wordy, seen);
      }
      expect(api.errors).toEqual([]);
      await api.close();
    },
  );

  test("everything that can be superfluous is so in one of the generated requests", () => {
    expect([...seen].sort()).toEqual(PARTS);
  });
});

async function check(api: ApiServer, app: App, target: string, request: ApiRequest, seen: Set<string>): Promise<void> {
  const type = request.route.kind === "catalog" ? undefined : findType(app, request.route.slug);
  const saving = findFreeEquivalent(request, type);
  if (saving === null) return;
  const { filters } = request.parameters;
  for (const part of saving.text.split("&"))
    seen.add(part.startsWith("filter") ? `${part} of ${filters.length}` : part.replace(/=.*/, ""));
  const lessTarget = targetOf(saving.request) ?? "";
  const [asked, less] = [await api.get(target, { appKey: app.key }), await api.get(lessTarget, { appKey: app.key })];
  const told = `${target}\n${lessTarget}`;
  expect([asked.headers["x-request-counted"], less.headers["x-request-counted"]], told).toEqual(["true", "false"]);
  expect({ status: asked.status, text: asked.text }, told).toEqual({ status: less.status, text: less.text });
}

/** The request with redundant parameters that change nothing, or nearly nothing. */
function saidTwice(request: ApiRequest, app: App, roll: (sides: number) => number): ApiRequest {
  const type = request.route.kind === "catalog" ? undefined : findType(app, request.route.slug);
  if (type === undefined) return request;
  const { filters, sort, page, per_page, fields, populate } = request.parameters;
  const size = String(defaultPerPage(type));
  const parameters = {
    filters: filters.slice(0, 1 + roll(8)).flatMap((filter) => spelledAnew(filter, roll)),
    sort: [sort, undefined, undefined, type.default_sort ?? "published_at", type.default_sort ?? "-published_at"][
      roll(5)
    ],
    page: [page, undefined, "1", "01"][roll(4)],
    per_page: [per_page, undefined, size, `0${size}`][roll(4)],
    fields: [fields, undefined, undefined, allFields(type)][roll(4)],
    populate: [populate, "nope", "title, nope"][roll(3)],
  };
  const sent = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return { ...request, parameters: { filters: [], ...Object.fromEntries(sent) } };
}

function spelledAnew(filter: Filter, roll: (sides: number) => number): Filter[] {
  if (filter.operator !== "eq" || filter.field === null) return [filter];
  const { field, value } = filter;
  const by = (operator: string, text = value): Filter => ({
    parameter: `filter[${field}][${operator}]`,
    field,
    operator,
    value: text,
  });
  const spellings = [
    [filter],
    [by("in")],
    [by("in", `,${value},${value}`)],
    [by("in", `${value},never`)],
    [by("gte"), by("lte")],
    [by("lte"), by("gt")],
    [filter, by("in")],
    [filter, by("gte")],
  ];
  return spellings[roll(spellings.length)] ?? [];
}

function allFields(type: ContentType): string {
  const { fields, timestamps } = shownOfList(type);
  return [...timestamps, ...fields.map(({ name }) => name)].join(", ");
}

/** Null for a request that is for neither a list nor an entry. */
function targetOf({ route, parameters }: ApiRequest): string | null {
  if (route.kind !== "list" && route.kind !== "entry") return null;
  const pairs = pairsOf(route, parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  const path = route.kind === "list" ? route.slug : `${route.slug}/${encodeURIComponent(route.id)}`;
  return `/api/v1/${path}?${pairs.join("&")}`;
}

function pairsOf(route: Route, { filters, populate, ...scalars }: RequestParameters): [string, string][] {
  if (route.kind === "entry") return populate === undefined ? [] : [["populate", populate]];
  const some = Object.entries(scalars) as [string, string][];
  return [...filters.map(({ parameter, value }): [string, string] => [encodeURIComponent(parameter), value]), ...some];
}
