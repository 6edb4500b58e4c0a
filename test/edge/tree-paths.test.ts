/** `precast serve --tree-paths`: a CDN that fails over from a bucket asks for a file's path and gets its content. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { segment } from "../../shared/api/address.ts";
import { type RunningServer, readTree } from "../support/cli.ts";
import { EDGE_KEY, EDGE_KEYS, edgeId, HASHED_VALUES } from "../support/edge-apps.ts";
import { type MapRequest, openCore } from "../support/edge-core.ts";
import { type EdgeSite, openEdgeSite } from "../support/edge-site.ts";
import { edgeVectors, isFile } from "../support/edge-vectors.ts";

let site: EdgeSite;
let plain: RunningServer;
let map: MapRequest;

beforeAll(async () => {
  site = await openEdgeSite("--tree-paths");
  plain = await site.place.serve();
  map = openCore(site.apps);
});
afterAll(() => site.close());

const FOLDER = `/${segment(EDGE_KEY)}/v1`;
const asked = { appKey: EDGE_KEY };

test("a request for the path of any file of the tree, of any app, gets that file", async () => {
  const values = [...HASHED_VALUES, ...EDGE_KEYS.map((key) => `only ${key}`)];
  const hashes = Object.fromEntries(values.map((value) => [segment(value), encodeURIComponent(value)]));
  const files = [...readTree(site.out)];
  expect(files.length).toBeGreaterThan(200);
  for (const [path, text] of files) {
    const appKey = EDGE_KEYS.find((key) => path.startsWith(`${segment(key)}/`)) as string;
    const [, field, hash = ""] = /filter\/(\w+)\/(.*)\.json$/.exec(path) ?? [];
    const query = !hash.startsWith("h-") ? "" : `?filter[${field}]=${hashes[hash]}`;
    const got = await site.origin.get(`/${path}${query}`, { appKey });
    expect([path, got.status, got.text]).toEqual([path, 200, text]);
    expect([got.headers["x-request-counted"], got.headers["cache-status"]]).toEqual(["false", "precast; hit"]);
  }
});

test("the path that an edge makes of a request gets the answer to the request", async () => {
  const vectors = edgeVectors().filter((vector) => vector.class !== "preflight" && vector.method === "GET");
  let paths = 0;
  for (const { target, keys, ...vector } of vectors) {
    const file = map("GET", target, keys);
    if (file === "origin") continue;
    paths += 1;
    const query = target.includes("?") ? target.slice(target.indexOf("?")) : "";
    const sent = { headers: { "X-App-Key": [...keys] } };
    const [expected, got] = [await plain.get(target, sent), await site.origin.get(file + query, sent)];
    // A filter value in another spelling than the canonical one has no file, but still an answer.
    expect([file, got.status, got.text]).toEqual([file, expected.status, expected.text]);
    expect(got.headers["x-request-counted"]).toBe(
      isFile(vector as never) ? "false" : expected.headers["x-request-counted"],
    );
  }
  expect(paths).toBeGreaterThan(200);
});

describe("a path of the tree", () => {
  const [value = ""] = HASHED_VALUES;
  const HASHED = segment(value);
  const QUERY = `?filter[title]=${value}`;

  test.each([
    ["with the key of another app", "/posts/page/1.json", { appKey: "shop" }],
    ["without a key", "/posts/page/1.json", {}],
    ["when it is not canonical", "/posts/page/01.json", asked],
    ["when no answer has such a file", "/posts/nothing/1.json", asked],
    ["with an entry's id in upper case", `/posts/entry/${edgeId(1).toUpperCase()}.json`, asked],
    ["with the name of another endpoint in place of an id", "/posts/entry/search.json", asked],
    ["without the name of a sort", "/posts/sort/.json", asked],
    ["when it is a hash and the query lacks the hashed value", `/posts/filter/title/h-${"0".repeat(64)}.json`, asked],
    [
      "when it is a hash and the query has another value",
      `/posts/filter/title/${HASHED}.json?filter[title]=news`,
      asked,
    ],
    ["when it has a parent segment (..)", "/../v1/_schemas.json", asked],
    ["with a percent-encoded letter", "/po%73ts/page/1.json", asked],
    ["with more behind it", "/posts/page/1.json/x", asked],
    ["when it is a hash and there is more before the type", `/x/posts/filter/title/${HASHED}.json${QUERY}`, asked],
  ])("is not found %s", async (_, path, sent) => {
    const got = await site.origin.get(FOLDER + path, sent);
    expect([got.status, got.json.error.code]).toEqual([404, "NOT_FOUND"]);
  });

  test("is not found below another folder", async () => {
    const { status, json } = await site.origin.get(`/out${FOLDER}/posts/page/1.json`, asked);
    expect([status, json.error.code]).toEqual([404, "NOT_FOUND"]);
  });

  test("is not found by a server without --tree-paths", async () => {
    const { status, json } = await plain.get(`${FOLDER}/posts/page/1.json`, asked);
    expect([status, json.error.code]).toEqual([404, "NOT_FOUND"]);
  });
});

test("files in the state folder of the tree are not served", async () => {
  expect((await site.origin.get("/.precast/changes.json", asked)).status).toBe(404);
  expect(readFileSync(join(site.out, ".precast/changes.json"), "utf8")).not.toBe("");
});

test("no query makes the path of a file return the content of another file", async () => {
  const { text } = await plain.get("/api/v1/posts?page=2", asked);
  for (const query of ["", "?page=1", "?filter[title]=news", "?sort=title"]) {
    expect((await site.origin.get(`${FOLDER}/posts/page/2.json${query}`, asked)).text).toBe(text);
  }
  const [value = ""] = HASHED_VALUES;
  const filtered = await plain.get(`/api/v1/posts?filter[title]=${value}`, asked);
  for (const more of ["", "&page=2", "&per_page=1", "&filter[price]=0"]) {
    const target = `${FOLDER}/posts/filter/title/${segment(value)}.json?filter[title]=${value}${more}`;
    expect((await site.origin.get(target, asked)).text).toBe(filtered.text);
  }
});
