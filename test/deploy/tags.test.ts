/** `precast serve --cache-tags`: answers carry the tags of their files, and a purge misses no changed answer. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addressOfFile, writeRequest } from "../../shared/api/address.ts";
import { startCdn } from "../support/cdn.ts";
import {
  idOf,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  SHOP_FOLDER,
  shop,
  shopWithout,
} from "../support/cli.ts";
import { type S3, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

const TARGET = "s3://content/api";
const TAG = "cache-tag";
/** Free requests whose answers no file holds. */
const FILELESS = ["/posts?page=99", "/posts?filter[tags]=nobody", `/posts/${idOf(99)}`, "/posts/x", "/posts?page=01"];
/** Requests whose answers no cache may keep, or whose paths name no valid type. */
const UNTAGGED = ["/posts?page=0", "/posts?per_page=1", "/posts/search?q=post", "/a,b", "/%0Aposts", "/posts/x/y"];

let store: Store;
let place: Place;
let s3: S3;
let server: RunningServer;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  await place.build();
  s3 = await startS3();
  await place.json(`deploy ${TARGET}`, s3.env);
  server = await place.serve("--cache-tags");
});
afterAll(async () => {
  await place.close();
  await s3.close();
  await store.close();
});

const ask = (target: string, headers: Record<string, string> = {}) => server.get(target, { appKey: SHOP, headers });
const tagOf = async (path: string) => (await ask(`/api/v1${path}`)).headers[TAG];

/** Requests for the deployed files, with their tags in the store. A hashed name (`h-`) tells no request. */
function deployed(): [request: string, tag: unknown][] {
  const folder = `api/${SHOP_FOLDER}/`;
  return [...s3.objects].flatMap(([key, { headers }]): [string, unknown][] => {
    const address = key.startsWith(folder) ? addressOfFile(key.slice(folder.length)) : null;
    return address === null || key.includes("/h-") ? [] : [[writeRequest(address), headers["x-amz-meta-cache-tag"]]];
  });
}

describe("the tags of an answer", () => {
  test("are those of the deployed file, with 200 and with 304", async () => {
    expect(deployed().length).toBeGreaterThan(30);
    for (const [request, tag] of deployed()) {
      const first = await ask(request);
      const again = await ask(request, { "If-None-Match": first.headers.etag as string });
      expect([request, first.status, first.headers[TAG]]).toEqual([request, 200, tag]);
      expect([request, again.status, again.headers[TAG]]).toEqual([request, 304, tag]);
    }
  });

  test("are those of the type when no file holds the answer", async () => {
    for (const path of FILELESS) expect([path, await tagOf(path)]).toEqual([path, `${SHOP},${SHOP}/posts`]);
    expect(await tagOf("/nope")).toBe(`${SHOP},${SHOP}/nope`);
  });

  test("are absent when no cache may keep the answer, and when the path names no valid type", async () => {
    for (const path of UNTAGGED) expect([path, await tagOf(path)]).toEqual([path, undefined]);
    expect((await server.get("/api/v1/posts", { appKey: "nobody" })).headers[TAG]).toBeUndefined();
    expect((await server.get("/api/v1/posts", { method: "OPTIONS" })).headers[TAG]).toBeUndefined();
  });
});

test("after a deploy with --purge, answers whose tags were not purged have not changed", async () => {
  const targets = [...deployed().map(([request]) => request), ...FILELESS.map((path) => `/api/v1${path}`)];
  const kept = new Map<string, { readonly tags: readonly string[]; readonly text: string }>();
  for (const target of targets) {
    const { headers, text } = await ask(target);
    kept.set(target, { tags: String(headers[TAG]).split(","), text });
  }
  const cdn = await startCdn(() => ({ status: 200, body: '{"success":true}' }));
  await place.import(shopWithout(1));
  await place.build();
  const env = { ...s3.env, PRECAST_PURGE_ENDPOINT: cdn.url, CLOUDFLARE_ZONE_ID: "zone", CLOUDFLARE_API_TOKEN: "token" };
  await place.json(`deploy ${TARGET} --purge cloudflare`, env);
  await cdn.close();
  const purged = cdn.requests.flatMap(({ body }) => (JSON.parse(String(body)) as { tags: string[] }).tags);
  const left = [...kept].filter(([, { tags }]) => !tags.some((tag) => purged.includes(tag)));
  expect(left.length).toBeGreaterThan(0);
  expect(left.length).toBeLessThan(kept.size);
  for (const [target, { text }] of left) expect([target, (await ask(target)).text]).toEqual([target, text]);
});

test("without --cache-tags an answer lacks Cache-Tag and no other header", async () => {
  const plain = await place.serve();
  const { headers } = await plain.get("/api/v1/posts", { appKey: SHOP });
  const { [TAG]: tag, ...rest } = (await ask("/api/v1/posts")).headers;
  expect([tag, Object.keys(headers)]).toEqual([`${SHOP},${SHOP}/posts`, Object.keys(rest)]);
});

test("precast edge refuses --cache-tags for nginx and varnish, which send no tags with files", async () => {
  for (const target of ["nginx", "varnish"]) {
    const { code, stdout, stderr } = await place.call(`edge ${target} --tree-url http://tree.example.com --cache-tags`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe("This edge cannot send cache tags with files. Remove --cache-tags (PRECAST_CACHE_TAGS).\n");
  }
});
