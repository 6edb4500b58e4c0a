/**
 * `precast edge cloudfront`: CloudFront itself cannot be run here. Its functions run in Node without host APIs, in the
 * njs shell, and in a stand-in for CloudFront with a bucket and failover.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openCloudfront, openFunction, requestOf } from "../support/edge-cloudfront.ts";
import { type MapRequest, openCore } from "../support/edge-core.ts";
import { findProgram } from "../support/edge-program.ts";
import { proveEdge } from "../support/edge-proof.ts";
import { type EdgeSite, openEdgeSite } from "../support/edge-site.ts";
import { edgeVectors, type Vector } from "../support/edge-vectors.ts";

proveEdge({
  name: "cloudfront",
  serveOptions: "--tree-paths",
  start: async (site) => {
    await site.place.json(`edge cloudfront --origin ${site.origin.url} --write cloudfront`);
    return openCloudfront(join(site.place.folder, "cloudfront"), site.out, site.origin.url);
  },
  servedByOrigin: [],
  // CloudFront itself refuses URLs above 8,192 bytes (its quotas).
  isAltered: ({ target }) => target.length > 8_192,
  // Paths outside of the API would be those of files in the bucket, which clients may not request.
  refuses: ({ target }) => !target.startsWith("/api/"),
  hasOwnErrorPage: true,
  // At failover the server is asked for the path in the bucket, not for the target as it was sent.
  forwardedAs: null,
});

const NJS = findProgram("njs");

describe("the viewer-request function", () => {
  let site: EdgeSite;
  let map: MapRequest;
  let folder: string;
  const vectors = edgeVectors();

  beforeAll(async () => {
    site = await openEdgeSite();
    map = openCore(site.apps);
    await site.place.json("edge cloudfront --origin https://api.example.com --write cloudfront");
    folder = join(site.place.folder, "cloudfront");
  });
  afterAll(() => site.close());

  test("is below CloudFront's size limit", () => {
    expect(statSync(join(folder, "viewer-request.js")).size).toBeLessThan(10_240);
  });

  test("names the file that the mapping core names, and leaves every other path of the API as it is", () => {
    const handler = openFunction(join(folder, "viewer-request.js"));
    for (const vector of vectors) {
      const result = handler({ request: eventOf(vector) }) as { uri?: string; statusCode?: number };
      const expected = expectedOf(map, vector);
      expect(`${told(vector)} ${result.statusCode ?? result.uri}`).toBe(`${told(vector)} ${expected}`);
    }
  });

  test("asks for a file without a query, also of a type that is named like a hash", () => {
    const handler = openFunction(join(folder, "viewer-request.js"));
    const event = { method: "GET", url: "/api/v1/h-x?filter[title]=&page=2", rawHeaders: ["X-App-Key", "shop"] };
    const asked = handler({ request: requestOf(event) });
    expect(JSON.stringify(asked)).toContain('"uri":"/s-shop/v1/h-x/page/2.json","querystring":{}');
  });

  test("is followed by one that gives files of a bucket with a CORS policy their headers, and counted answers none", () => {
    const handler = openFunction(join(folder, "viewer-response.js"));
    const [cors, own] = [{ value: "*" }, { value: "true" }];
    const file = { statusCode: 200, headers: { "access-control-allow-origin": cors, vary: { value: "Origin" } } };
    expect(handler({ response: file })).toMatchObject({
      headers: { "x-request-counted": { value: "false" }, vary: { value: "X-App-Key, Accept-Encoding" } },
    });
    const counted = { statusCode: 200, headers: { "access-control-allow-origin": cors, "x-request-counted": own } };
    expect(handler({ response: structuredClone(counted) })).toEqual(counted);
  });

  test("is installed so that no error of the server is kept", () => {
    const setup = readFileSync(join(folder, "setup.txt"), "utf8");
    expect(setup).toMatch(/500, 502, 503 and 504 with an error caching minimum TTL of 0/);
  });

  test.skipIf(NJS === null)("gives the same results in the njs shell", () => {
    const requests = vectors.map(eventOf).map((request) => ({ ...request, query: request.rawQueryString() ?? null }));
    writeFileSync(join(folder, "requests.json"), JSON.stringify(requests));
    writeFileSync(join(folder, "run.js"), `${readFileSync(join(folder, "viewer-request.js"), "utf8")}\n${RUN}`);
    const output = execFileSync(NJS as string, ["run.js"], { cwd: folder, encoding: "utf8" });
    const found = output.trim().split("\n");
    const lines = vectors.map((vector, at) => `${told(vector)} ${found[at]}`);
    expect(lines).toEqual(vectors.map((vector) => `${told(vector)} ${expectedOf(map, vector)}`));
  });
});

const RUN = `JSON.parse(require("fs").readFileSync("requests.json", "utf8")).forEach(function (request) {
  request.rawQueryString = function () {
    return request.query === null ? undefined : request.query;
  };
  var result = handler({ request: request });
  console.log(String(result.statusCode === undefined ? result.uri : result.statusCode));
});
`;

const told = ({ method, target, keys }: Vector) => `${method} ${target} [${keys}]`;

function eventOf({ method, target, keys }: Vector) {
  return requestOf({ method, url: target, rawHeaders: keys.flatMap((key) => ["X-App-Key", key]) });
}

function expectedOf(map: MapRequest, { method, target, keys }: Vector): string {
  const found = map(method, target, keys);
  if (found === "preflight") return "204";
  if (found !== "origin") return found;
  return target.startsWith("/api/") ? (target.split("?")[0] as string) : "404";
}
