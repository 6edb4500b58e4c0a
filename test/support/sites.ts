/**
 * Servers for the library of library.ts (with a tree, without one, on the embedded database, without slots), and the
 * helpers with which the tests of the contract send requests to them.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { LIBRARY_KEY, loadLibrary } from "./library.ts";
import {
  type ApiServer,
  buildSite,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type RequestOptions,
  type Store,
} from "./site.ts";

export const TREE = "PostgreSQL with a tree";
export const LIVE = "PostgreSQL without a tree";
const EMBEDDED = "the embedded database";
/** The fields of works and texts have no slots: all are taken by other fields. */
export const CROWDED = "PostgreSQL without slots";
export const ENGINES = [TREE, LIVE, EMBEDDED];
export const SITES = [TREE, LIVE];

export const stores: Store[] = [];
export const apis = new Map<string, ApiServer>();

/** Opens these sites for the tests of a file, and closes them afterwards. */
export function openSites(sites: readonly string[]): void {
  beforeAll(async () => {
    const [postgres, embedded, crowded] = await Promise.all([
      openStore("postgres"),
      sites.includes(EMBEDDED) ? openStore("embedded") : undefined,
      sites.includes(CROWDED) ? openStore("postgres") : undefined,
    ]);
    for (const store of [postgres, embedded, crowded]) if (store !== undefined) stores.push(store);
    await Promise.all(stores.map((store) => loadLibrary(store, store === crowded)));
    await buildSite(postgres);
    apis.set(TREE, await openApiServer(postgres));
    apis.set(LIVE, await openApiServer(postgres, join(postgres.folder, "nowhere")));
    if (embedded !== undefined) apis.set(EMBEDDED, await openApiServer(embedded));
    if (crowded !== undefined) apis.set(CROWDED, await openApiServer(crowded));
  });

  afterAll(async () => {
    const errors = [...apis.values()].flatMap((api) => api.errors);
    await Promise.all([...apis.values()].map((api) => api.close()));
    await Promise.all(stores.map((store) => store.close()));
    apis.clear();
    stores.length = 0;
    expect(errors).toEqual([]);
  });
}

/** Requests a target below `/api/v1` with the library's app key. */
export function ask(site: string, target: string, asked: RequestOptions = {}): Promise<ReceivedAnswer> {
  return askRaw(site, `/api/v1${target}`, { appKey: LIBRARY_KEY, ...asked });
}

export function askRaw(site: string, target: string, asked: RequestOptions = {}): Promise<ReceivedAnswer> {
  return (apis.get(site) as ApiServer).get(target, asked);
}

/** Percent-encodes spaces, quotes and the like; `%`, `+`, `&`, `=` and brackets stay as they are. */
export function encoded(target: string): string {
  return target.replace(/[^\x21-\x7e]|["<>\\^`{|}]/gu, encodeURIComponent);
}

/** The entries of a list by number: `5 6 4`. */
export function idsOf(got: ReceivedAnswer): string {
  expect(got.status, got.text).toBe(200);
  return got.json.data.map((item: { id: string }) => Number(item.id.slice(-12))).join(" ");
}

export async function expectIds(site: string, target: string, ids: string): Promise<void> {
  const got = await ask(site, encoded(target));
  expect(idsOf(got)).toBe(ids);
  expect(got.json.meta.total).toBe(ids === "" ? 0 : ids.split(" ").length);
}

export async function expectError(site: string, target: string, status: number, code: string, parameter?: string) {
  const got = await ask(site, encoded(target));
  expect([got.status, got.json.error?.code], got.text).toEqual([status, code]);
  expect(got.json.error.parameter).toBe(parameter);
  expect(got.json.error.message).toMatch(/^.{20,}\.$/);
}

export const ALL = "5 6 4 3 2 1";
export const NOTHING = "";

const TRANSPORT = ["connection", "date", "content-length", "keep-alive", "transfer-encoding", "x-request-id"];

/** All headers except those of the transport and the request id, which differ between equal answers. */
export function headersOf(got: ReceivedAnswer): object {
  return without(got.headers, TRANSPORT);
}

export function without(object: object, names: string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}
