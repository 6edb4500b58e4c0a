/**
 * What the client says of prices: for generated content and generated requests, it is what the server says, and a free
 * request that is sent in place of a counted one has the same answer, byte for byte.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type AnyRequest, ApiError, createClient, type Model, type Options } from "../../dist/client/client.js";
import type { App } from "../../shared/api/catalog.ts";
import { readRequest } from "../../shared/api/request.ts";
import { readApps } from "../../shared/apps.ts";
import { sql } from "../../shared/sql/query.ts";
import { arbitraryBundles } from "../support/content.ts";
import { arbitraryRequest } from "../support/requests.ts";
import {
  type ApiServer,
  buildSite,
  loadBundles,
  MEDIA,
  openApiServer,
  openStore,
  type Store,
} from "../support/site.ts";

const CONTENTS = 6;
const REQUESTS = 130;

let store: Store;

beforeAll(async () => {
  store = await openStore("postgres");
});
afterAll(() => store.close());

async function openSite(bundles: Parameters<typeof loadBundles>[1]): Promise<{ api: ApiServer; apps: readonly App[] }> {
  await store.database.query(sql("DELETE FROM precast.apps"));
  await loadBundles(store, bundles);
  await buildSite(store);
  const api = await openApiServer(store);
  onTestFinished(() => api.close());
  return { api, apps: await readApps(store.database, { mediaBaseUrl: MEDIA }) };
}

function modelOf({ types }: App): Model {
  return Object.fromEntries(types.map((type) => [type.slug, type]));
}

/** The parts of a target, filters as an app would write them. Null for a target that the client would never send. */
function partsOf(
  target: string,
  appKey: string | undefined,
): (AnyRequest & { readonly [name: string]: unknown }) | null {
  const request = readRequest({ method: "GET", target, appKey });
  if (request.kind !== "request") return null;
  const { route } = request;
  // `fetch` would take these for parts of the path.
  if ("slug" in route && /^\.{1,2}$/.test(route.slug)) return null;
  const filter: Record<string, Record<string, string>> = {};
  const more: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(target.slice(target.indexOf("?")))) {
    const [, field, operator = "eq"] = /^filter\[(\w+)\](?:\[(\w+)\])?$/.exec(name) ?? [];
    if (field === undefined) more[name === "per_page" ? "perPage" : name] = value;
    else if (value !== "") filter[field] = { ...filter[field], [operator]: value };
  }
  const { q, ...rest } = more;
  switch (route.kind) {
    case "catalog":
      return rest;
    case "schema":
      return { ...rest, id: route.slug };
    case "list":
      return { ...rest, type: route.slug, filter };
    case "search":
      return { ...rest, type: route.slug, filter, q: q ?? "" };
    case "entry":
      return { ...rest, type: route.slug, filter, id: route.id };
  }
}

/** What the client does with a request: what it got or the error, and whether any of what it sent was counted. */
async function send(options: Options, { type, id, q, ...query }: AnyRequest) {
  const prices: boolean[] = [];
  const api = createClient({ ...options, onRequest: (sent) => void prices.push(sent.counted) });
  const asked = query as object;
  const ask = () => {
    if (type === undefined) return id === undefined ? api.catalog(asked) : api.schema(id, asked);
    if (q !== undefined) return api.type(type).search(q, asked);
    return id === undefined ? api.type(type).list(asked) : api.type(type).get(id, asked);
  };
  const got = await ask().catch((error: unknown) => {
    if (!(error instanceof ApiError)) throw error;
    return error;
  });
  return { got, counted: prices.includes(true) };
}

const seen = { free: 0, counted: 0, replaced: new Map<string, number>(), errors: 0 };

const contents = fc.sample(arbitraryBundles(), { numRuns: CONTENTS, seed: 20261128 });

test.each(contents.map((bundles, index) => ({ bundles, index })))(
  "content $index: each price is the server's, and each answer is the one to what was asked",
  async ({ bundles, index }) => {
    const { api: server, apps } = await openSite(bundles);
    const requests = fc.sample(arbitraryRequest(bundles), { numRuns: REQUESTS, seed: index });
    for (const { target, appKey } of requests) {
      const app = apps.find(({ key }) => key === appKey);
      const parts = partsOf(target, appKey);
      if (app === undefined || parts === null) continue;
      for (const asked of [parts, saidTwice(app, parts)])
        for (const hasModel of [true, false]) await check(server, app, asked, hasModel);
    }
    expect(server.errors).toEqual([]);
  },
);

async function check(server: ApiServer, app: App, asked: AnyRequest, hasModel: boolean): Promise<void> {
  const options = { url: server.url, appKey: app.key, ...(hasModel && { model: modelOf(app) }) };
  const { got, counted } = await send(options, asked);
  const price = await createClient(options)
    .price(asked)
    .catch((error: unknown) => error as ApiError);
  if (price instanceof ApiError) {
    // Of a type that is not there, no price is known, and no counted request is sent.
    expect([price.code, got, counted]).toEqual(["CONTENT_TYPE_NOT_FOUND", price, false]);
    return;
  }
  const original = await server.get(price.target, { appKey: app.key });
  expect([price.target, String(price.counted)]).toEqual([price.target, original.headers["x-request-counted"]]);
  expect([price.target, counted]).toEqual([price.target, price.counted && price.free === null]);
  if (price.free !== null) {
    const free = await server.get(price.free, { appKey: app.key });
    expect([price.target, free.headers["x-request-counted"], free.text]).toEqual([
      price.target,
      "false",
      original.text,
    ]);
    for (const name of Object.keys(asked)) seen.replaced.set(name, (seen.replaced.get(name) ?? 0) + 1);
  }
  const { error, data } = original.json;
  if (error !== undefined) {
    expect(got).toMatchObject({
      status: original.status,
      code: error.code,
      message: error.message,
      parameter: error.parameter ?? null,
    });
    seen.errors++;
  } else {
    const isWhole = asked.type !== undefined && asked.id === undefined;
    expect([price.target, JSON.stringify(got)]).toEqual([price.target, JSON.stringify(isWhole ? original.json : data)]);
  }
  seen[counted ? "counted" : "free"]++;
}

/** The request with what SDKs send always and in vain. */
function saidTwice(app: App, asked: AnyRequest): AnyRequest {
  const type = app.types.find(({ slug }) => slug === asked.type);
  if (type === undefined || asked.q !== undefined) return asked;
  if (asked.id !== undefined) return { ...asked, populate: ["nope"] };
  const { filter = {} } = asked;
  const [field, condition] = Object.entries(filter)[0] ?? [];
  const { eq } = typeof condition === "object" ? condition : {};
  const defaults = { page: 1, perPage: type.per_page ?? 20, sort: type.default_sort ?? "-published_at" };
  if (field === undefined || eq === undefined) return { type: type.slug, ...defaults };
  return { type: type.slug, page: 1, perPage: defaults.perPage, filter: { [field]: { in: String(eq) } } };
}

test("thousands of requests were compared, of all sorts", () => {
  expect(seen.free + seen.counted).toBeGreaterThan(2_500);
  expect(Math.min(seen.free, seen.counted, seen.errors)).toBeGreaterThan(200);
  for (const name of ["perPage", "page", "sort", "filter", "populate"])
    expect([name, seen.replaced.get(name) ?? 0]).toEqual([name, expect.toSatisfy((count: number) => count > 10)]);
});
