/** A deploy after interrupted ones: it uploads what is not there yet, and the store then equals its tree exactly. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Deployed } from "../../cli/deploy/deploy.ts";
import { openPlace, type Place, smallApp } from "../support/cli.ts";
import { deployInProcess, differencesOf, filesOf, internalFilesAfter, internalFilesOf } from "../support/deployed.ts";
import { type S3, type S3Request, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

const TARGET = "s3://content/api";
/** More files than are uploaded before the journal is marked. */
const MANY = 1_200;

let store: Store;
let place: Place;
let s3: S3;
const out = (tree: string, ...path: string[]) => join(place.folder, tree, ...path);

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "", PRECAST_ALLOW_OLDER: "true" });
  s3 = await startS3({ page: 1_000 });
  const trees: [name: string, apps: Record<string, string[]>][] = [
    ["a", { shop: ["Ada", "Bob", "Cid"], going: [] }],
    ["b", { shop: ["Ada", "Eve"], coming: ["Zoe"] }],
    ["c", { shop: ["Bob"] }],
    ["many", { shop: Array.from({ length: MANY }, (_, index) => `N${index}`) }],
  ];
  for (const [name, apps] of trees) {
    await store.database.execute("DELETE FROM precast.apps");
    for (const [key, names] of Object.entries(apps)) await place.import(smallApp(key, names));
    await place.build(name);
  }
});
afterAll(async () => {
  await s3.close();
  await place.close();
  await store.close();
});
beforeEach(() => {
  s3.objects.clear();
  s3.requests.length = 0;
  s3.trouble = () => undefined;
});

const HEADERS = ["max-age=60", "no-cache"].map((policy) => ({ cacheControl: policy, cdnCacheControl: policy }));
type Headers = (typeof HEADERS)[number];

type How = {
  readonly dryRun?: boolean;
  readonly filesPerMark?: number;
  readonly force?: boolean;
  readonly trouble?: S3["trouble"];
};

/** Deploys in this process, after it has removed the lock that a failed deploy may have left. */
async function attempt(tree: string, headers: Headers, { trouble, ...how }: How = {}): Promise<Deployed> {
  for (const key of s3.objects.keys()) if (key.endsWith("/deploy.lock")) s3.objects.delete(key);
  s3.requests.length = 0;
  s3.trouble = trouble ?? (() => undefined);
  return deployInProcess(s3, out(tree), { ...headers, ...how }, undefined, 0).finally(() => {
    s3.trouble = () => undefined;
  });
}

function expectExact(tree: string, { cacheControl }: Headers): void {
  expect(differencesOf(filesOf(s3), out(tree))).toEqual([]);
  const policies = [...filesOf(s3).keys()].map((path) => s3.objects.get(`api/${path}`)?.headers["cache-control"]);
  expect([...new Set(policies)]).toEqual([cacheControl]);
  const states = readdirSync(out(tree, ".precast")).filter((name) => /^s-.*\.json$/.test(name));
  expect(internalFilesOf(s3)).toEqual(internalFilesAfter(states.map((name) => name.slice(2, -5))));
}

const isUpload = ({ method, key }: S3Request) => method === "PUT" && !key.includes("/.precast/");
/** Makes a deploy fail after all its uploads. */
const refusesManifest: S3["trouble"] = ({ method, key }) =>
  method === "PUT" && key.endsWith("/manifest.json") ? { status: 403 } : undefined;

test("files marked as uploaded are not uploaded again after a failure, and no mark remains at the end", async () => {
  let seen = 0;
  s3.trouble = (request) => (isUpload(request) && ++seen > 1_100 ? { status: 403 } : undefined);
  const { code, stderr } = await place.run(`deploy ${TARGET} --out many --concurrency 1`, s3.env);
  const told =
    /\n1100 of (\d+) files of shop were uploaded, and nothing was deleted\. Run the deploy again: it does not upload 1000 of them again\.\n$/;
  expect([code, stderr]).toEqual([1, expect.stringMatching(told)]);
  const all = Number(told.exec(stderr)?.[1]);
  s3.trouble = () => undefined;
  const next = await place.json(`deploy ${TARGET} --out many`, s3.env);
  expect(next).toMatchObject({ written: all - 1_000, unchanged: 1_000, deleted: 0 });
  expect(differencesOf(filesOf(s3), out("many"))).toEqual([]);
  expect(internalFilesOf(s3)).toEqual(internalFilesAfter(["shop"]));
});

describe("a deploy after one that failed when everything was uploaded", () => {
  const [usual, other] = HEADERS as [Headers, Headers];
  beforeEach(async () => {
    await expect(attempt("a", usual, { filesPerMark: 1, trouble: refusesManifest })).rejects.toThrow(
      /All (\d+) files of \w+ were uploaded; the manifest was not replaced.* it does not upload \1 of them again\./,
    );
  });

  test("uploads and deletes no file, and replaces the manifest", async () => {
    expect(await attempt("a", usual)).toMatchObject({ written: 0, deleted: 0, generation: 2 });
    expectExact("a", usual);
  });

  test("uploads what has changed in the tree since, and deletes what the tree no longer has", async () => {
    const { written, unchanged, deleted } = await attempt("b", usual);
    expect([written, unchanged, deleted].every((count) => count > 0)).toBe(true);
    expectExact("b", usual);
  });

  test("uploads everything again with other headers", async () => {
    expect(await attempt("a", other)).toMatchObject({ unchanged: 0 });
    expectExact("a", other);
  });

  test("uploads everything again with --force", async () => {
    expect(await attempt("a", usual, { force: true })).toMatchObject({ unchanged: 0 });
    expectExact("a", usual);
  });
});

test("uploads after the last mark are done again", async () => {
  const usual = HEADERS[0] as Headers;
  await expect(attempt("c", usual, { filesPerMark: 7, trouble: refusesManifest })).rejects.toThrow("Run the deploy");
  const { written, unchanged } = await attempt("c", usual);
  expect(unchanged).toBeGreaterThan(0);
  expect(written).toBe((written + unchanged) % 7);
  expectExact("c", usual);
});

test("files that a failed deploy has uploaded are still known after a second failed deploy", async () => {
  const usual = HEADERS[0] as Headers;
  await attempt("a", usual);
  for (const _ of [1, 2])
    await expect(attempt("b", usual, { filesPerMark: 1, trouble: refusesManifest })).rejects.toThrow("Run the deploy");
  const { written, unchanged } = await attempt("b", usual, { dryRun: true });
  expect([written, unchanged > 0]).toEqual([0, true]);
  await attempt("a", usual);
  expectExact("a", usual);
});

const arbitraryTree = fc.constantFrom("a", "b", "c");
const arbitraryHeaders = fc.nat(5).map((number) => HEADERS[number === 0 ? 1 : 0] as Headers);
const arbitraryAttempt = fc.record({
  tree: arbitraryTree,
  headers: arbitraryHeaders,
  filesPerMark: fc.constantFrom(1, 2, 5),
  force: fc.nat(9).map((number) => number === 0),
  /** Number of the request at which it is interrupted; `done`: whether the store still carries that request out. */
  last: fc.integer({ min: 6, max: 40 }),
  done: fc.boolean(),
});
/** What is deployed at first, deploys that may be interrupted, and a last one that is not. */
const arbitraryHistory = fc.record({
  before: fc.option(arbitraryTree),
  attempts: fc.array(arbitraryAttempt, { minLength: 1, maxLength: 4 }),
  tree: arbitraryTree,
  headers: arbitraryHeaders,
});

test("a deploy makes the store equal to its tree after interrupted deploys of any trees with any options", async () => {
  const property = fc.asyncProperty(arbitraryHistory, async ({ before, attempts, tree, headers }) => {
    s3.objects.clear();
    if (before !== null) await attempt(before, HEADERS[0] as Headers);
    for (const { tree: begun, headers: wanted, last, done, ...how } of attempts) {
      const trouble: S3["trouble"] = ({ number }) => {
        if (number < last) return undefined;
        return number === last && done ? "cut when done" : "cut";
      };
      await attempt(begun, wanted, { ...how, trouble }).catch(() => {});
    }
    await attempt(tree, headers);
    expectExact(tree, headers);
  });
  await fc.assert(property, { numRuns: 25 });
});
