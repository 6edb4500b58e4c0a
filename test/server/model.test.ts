/**
 * Compares the server with the model of the contract (test/support/model.ts): generated content and requests, with a
 * tree and without, on PostgreSQL and on the embedded database. Answers with and without a tree are the same bytes.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { arbitraryBundles } from "../support/content.ts";
import { ask, type Bundle, type ModelAnswer, relevanceFault } from "../support/model.ts";
import { arbitraryRequest, type GeneratedRequest } from "../support/requests.ts";
import {
  type ApiServer,
  buildSite,
  type Engine,
  loadBundles,
  MEDIA,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type Store,
} from "../support/site.ts";

/** Makes PostgreSQL plan as it does for large tables: with parallel workers. */
const PARALLEL = {
  force_parallel_mode: "on",
  parallel_setup_cost: "0",
  parallel_tuple_cost: "0",
  min_parallel_table_scan_size: "0",
  min_parallel_index_scan_size: "0",
};

type Setting = {
  readonly on: string;
  readonly engine: Engine;
  readonly settings: Readonly<Record<string, string>>;
  readonly contents: number;
  /** For each content. The embedded database is slower, and gets fewer. */
  readonly requests: number;
};
const SETTINGS: readonly Setting[] = [
  { on: "PostgreSQL", engine: "postgres", settings: {}, contents: 9, requests: 250 },
  { on: "PostgreSQL with parallel plans", engine: "postgres", settings: PARALLEL, contents: 3, requests: 250 },
  { on: "the embedded database", engine: "embedded", settings: {}, contents: 3, requests: 150 },
];

describe.each(SETTINGS)("on $on", ({ engine, settings, contents: numRuns, requests: asked }) => {
  let store: Store;

  beforeAll(async () => {
    store = await openStore(engine);
    for (const [name, value] of Object.entries(settings)) await setForDatabase(store, name, value);
    // Connections that are already open keep the old settings.
    store.database.renewConnections();
  });
  afterAll(() => store.close());

  const contents = fc.sample(arbitraryBundles(), { numRuns, seed: 20260120 });

  test.each(contents.map((bundles, index) => ({ bundles, index })))(
    "content $index: answers from the tree and from the database match the model of the contract",
    async ({ bundles, index }) => {
      await replaceContent(store, bundles);
      await buildSite(store);
      const built = await openApiServer(store);
      const live = await openApiServer(store, join(store.folder, "nowhere"));
      const requests = fc.sample(arbitraryRequest(bundles), { numRuns: asked, seed: index });
      for (const request of requests) await compare(bundles, request, built, live);
      expect([...built.errors, ...live.errors]).toEqual([]);
      await built.close();
      await live.close();
    },
  );
});

async function setForDatabase({ database, url }: Store, name: string, value: string): Promise<void> {
  const own = new URL(url ?? "").pathname.slice(1);
  await database.execute(`ALTER DATABASE "${own}" SET ${name} = '${value}'`);
}

async function replaceContent(store: Store, bundles: readonly Bundle[]): Promise<void> {
  await rm(join(store.folder, "out"), { recursive: true, force: true });
  await store.database.query(sql("DELETE FROM precast.apps"));
  await loadBundles(store, bundles);
}

async function compare(
  bundles: readonly Bundle[],
  request: GeneratedRequest,
  built: ApiServer,
  live: ApiServer,
): Promise<void> {
  const expected = ask(bundles, request, { mediaBaseUrl: MEDIA });
  const [fromTree, fromDatabase] = await Promise.all([
    built.get(request.target, request),
    live.get(request.target, request),
  ]);
  const told = JSON.stringify(request);
  check(told, expected, fromTree);
  check(told, expected, fromDatabase);
  const { "cache-status": treeStatus, ...treeHeaders } = timeless(fromTree);
  const { "cache-status": liveStatus, ...liveHeaders } = timeless(fromDatabase);
  expect({ status: fromTree.status, text: fromTree.text, headers: treeHeaders }, told).toEqual({
    status: fromDatabase.status,
    text: fromDatabase.text,
    headers: liveHeaders,
  });
  expect([treeStatus, liveStatus], told).toEqual(cacheStatuses(expected));
}

function cacheStatuses({ counted }: ModelAnswer): (string | undefined)[] {
  if (counted === null) return [undefined, undefined];
  return counted ? ["precast; fwd=bypass", "precast; fwd=bypass"] : ["precast; hit", "precast; fwd=miss"];
}

function timeless({ headers }: ReceivedAnswer): Record<string, string> {
  const { date: _, "x-request-id": __, ...rest } = headers;
  return rest;
}

function check(told: string, expected: ModelAnswer, got: ReceivedAnswer): void {
  expect(got.status, told).toBe(expected.status);
  if (expected.order === "groups" && expected.body !== undefined) {
    expect(relevanceFault(expected as never, got.json), told).toBeUndefined();
  } else if (got.status === 200 || got.json === undefined) {
    expect(got.json, told).toEqual(expected.body);
  } else {
    const { code, parameter } = got.json.error;
    expect({ error: { code, ...(parameter === undefined ? {} : { parameter }) } }, told).toEqual(expected.body);
  }
  for (const [name, value] of Object.entries(expected.headers)) {
    if (value === true) expect(got.headers[name], `${name} of ${told}`).toBeTruthy();
    else expect(got.headers[name], `${name} of ${told}`).toBe(value);
  }
  if (expected.counted === null) expect(got.headers["x-request-counted"], told).toBeUndefined();
  if (expected.headers["x-request-warning"] === undefined)
    expect(got.headers["x-request-warning"], told).toBeUndefined();
}
