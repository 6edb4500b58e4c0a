/** `--purge` makes a CDN drop what a deploy has changed; `--wait-visible` waits until clients see it. */
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { invalidationPaths, openPurge } from "../../cli/deploy/purge.ts";
import { waitVisible } from "../../cli/deploy/visible.ts";
import { digestBytes, type TreeState } from "../../shared/tree.ts";
import type { TreeFile } from "../../shared/tree-file.ts";
import { type Cdn, startCdn } from "../support/cdn.ts";
import {
  holdPort,
  idOf,
  LONG,
  openPlace,
  type Place,
  SHOP_FOLDER,
  shop,
  shopWithout,
  smallApp,
} from "../support/cli.ts";
import { differencesOf, filesOf, internalFilesOf } from "../support/deployed.ts";
import { type S3, type S3Object, type S3Request, startS3, type Trouble } from "../support/s3.ts";
import { signatureProblem } from "../support/sigv4.ts";
import { openStore, type Store } from "../support/site.ts";

const TARGET = "s3://content/api";
const CLOUDFLARE = { CLOUDFLARE_ZONE_ID: "zone", CLOUDFLARE_API_TOKEN: "cf-token" };
const FASTLY = { FASTLY_SERVICE_ID: "service", FASTLY_API_TOKEN: "fastly-token" };
const PATIENCE = { timeout: 5, retries: 0, now: () => new Date() };
/** The settings of a purge in this process. */
const PURGE = {
  ...{ purge: null, purgeMethod: "POST", purgeHeader: null, purgeEndpoint: null, concurrency: 1 },
  ...{ cloudflareZone: null, cloudflareToken: null, fastlyService: null, fastlyToken: null },
  ...{ cloudfrontDistribution: null, accessKeyId: null, secretAccessKey: null, sessionToken: null },
} satisfies Parameters<typeof openPurge>[0];

let store: Store;
let place: Place;
let s3: S3;
let cdn: Cdn;
let first: Map<string, S3Object>;

/** The bucket holds the whole shop, the local tree lacks one post: most tests deploy this difference. */
beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  await place.build();
  s3 = await startS3();
  await place.json(`deploy ${TARGET}`, s3.env);
  first = new Map(s3.objects);
  await place.import(shopWithout(1));
  await place.build();
});
afterAll(async () => {
  await s3.close();
  await place.close();
  await store.close();
});
beforeEach(async () => {
  s3.objects.clear();
  s3.trouble = () => undefined;
  for (const [key, object] of first) s3.objects.set(key, object);
  cdn = await startCdn(() => ({ status: 200, body: '{"success":true}' }));
  return () => cdn.close();
});

const run = (line: string, env: Record<string, string> = {}) =>
  place.call(`deploy ${TARGET} --retries 1 ${line}`, { ...s3.env, PRECAST_PURGE_ENDPOINT: cdn.url, ...env });

async function deploy(line: string, env: Record<string, string> = {}): Promise<{ purges: number; written: number }> {
  const { code, stdout, stderr } = await run(`${line} --json`, env);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as { purges: number; written: number };
}

describe("--purge", () => {
  test("cloudflare sends the changed tags to Cloudflare, with the API token", async () => {
    expect(await deploy("--purge cloudflare", CLOUDFLARE)).toMatchObject({ purges: 1 });
    expect(cdn.requests).toMatchObject([{ method: "POST", target: "/zones/zone/purge_cache" }]);
    expect(cdn.requests[0]?.headers.authorization).toBe("Bearer cf-token");
    expect(JSON.parse(String(cdn.requests[0]?.body))).toEqual({ tags: ["Shop/_schemas", "Shop/posts"] });
  });

  test("--purge-endpoint may end in a slash", async () => {
    await deploy(`--purge cloudflare --purge-endpoint ${cdn.url}/`, CLOUDFLARE);
    expect(cdn.requests).toMatchObject([{ target: "/zones/zone/purge_cache" }]);
  });

  test("fastly sends the changed surrogate keys to Fastly, with the API token", async () => {
    expect(await deploy("--purge fastly", FASTLY)).toMatchObject({ purges: 1 });
    expect(cdn.requests).toMatchObject([{ method: "POST", target: "/service/service/purge" }]);
    expect(cdn.requests[0]?.headers["fastly-key"]).toBe("fastly-token");
    expect(JSON.parse(String(cdn.requests[0]?.body))).toEqual({ surrogate_keys: ["Shop/_schemas", "Shop/posts"] });
  });

  test("cloudfront sends a signed invalidation of the changed paths to CloudFront", async () => {
    cdn.answer = () => ({ status: 201 });
    expect(await deploy("--purge cloudfront", { CLOUDFRONT_DISTRIBUTION_ID: "E1" })).toMatchObject({ purges: 1 });
    const [request] = cdn.requests;
    expect(request).toMatchObject({ method: "POST", target: "/2020-05-31/distribution/E1/invalidation" });
    const scope = { region: "us-east-1", service: "cloudfront" };
    expect(signatureProblem(request as never, s3.keys, scope, new Date())).toBe(null);
    const body = String(request?.body);
    const paths = [...body.matchAll(/<Path>([^<]*)<\/Path>/g)].map(([, path]) => path);
    expect(paths).toContain(`/${SHOP_FOLDER}/_schemas.json`);
    expect(paths).toContain("/api/v1/posts*");
    expect(body).toContain(`<Quantity>${paths.length}</Quantity>`);
    expect(body).toMatch(/<CallerReference>precast-\S+<\/CallerReference>/);
  });

  test("a URL is called once for each changed request, with the method, the header and the app key", async () => {
    const { purges, written } = await deploy(`--purge ${cdn.url}/purge/{key}?url={url} --purge-method PURGE`, {
      PRECAST_PURGE_HEADER: "AccessKey: s3cret",
    });
    const targets = cdn.requests.map(({ target }) => target);
    expect(new Set(targets).size).toBe(purges);
    expect(purges).toBeGreaterThan(written - 1);
    expect(targets).toContain(`/purge/Shop?url=${encodeURIComponent(`/api/v1/posts/${idOf(1)}`)}`);
    expect(targets).toContain(`/purge/Shop?url=${encodeURIComponent("/api/v1/posts?filter[tags]=a")}`);
    expect(targets).toContain(`/purge/Shop?url=${encodeURIComponent("/api/v1/_schemas")}`);
    for (const { method, headers } of cdn.requests) {
      expect([method, headers.accesskey, headers["x-app-key"]]).toEqual(["PURGE", "s3cret", "Shop"]);
    }
  });

  test("cloudflare is purged of a deleted app that only its files in the store tell of", async () => {
    const object = s3.objects.get(`api/${SHOP_FOLDER}/_schemas.json`) as S3Object;
    s3.objects.set("api/s-other/v1/authors/page/1.json", object);
    s3.objects.delete("api/.precast/manifest.json");
    await deploy("--force --purge cloudflare", CLOUDFLARE);
    expect([...s3.objects.keys()].filter((key) => key.includes("s-other"))).toEqual([]);
    expect(JSON.parse(String(cdn.requests[0]?.body)).tags).toContain("other/authors");
  });

  test("adds the number of purge requests to the summary", async () => {
    expect((await run("--purge cloudflare", CLOUDFLARE)).stdout).toMatch(/ s, purged with 1 request\n$/);
  });

  test("sends nothing when the deploy changes nothing", async () => {
    await deploy("--purge cloudflare", CLOUDFLARE);
    cdn.requests.length = 0;
    expect(await deploy("--purge cloudflare", CLOUDFLARE)).toMatchObject({ purges: 0, written: 0 });
    expect(cdn.requests).toEqual([]);
  });

  test("a failed purge is repeated by the next deploy, which uploads nothing", async () => {
    cdn.answer = () => ({ status: 403, body: '{"success":false,"errors":[{"message":"no such token"}]}' });
    const { code, stdout, stderr } = await run("--purge cloudflare", CLOUDFLARE);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^Cloudflare denies access \(403: no such token\)\. Check CLOUDFLARE_API_TOKEN\.\nAll files are deployed\. Run the deploy again: it purges what was not purged\.\n$/,
    );
    expect(differencesOf(filesOf(s3), join(place.folder, "out"))).toEqual([]);
    cdn.answer = () => ({ status: 200, body: '{"success":true}' });
    cdn.requests.length = 0;
    expect(await deploy("--purge cloudflare", CLOUDFLARE)).toMatchObject({ purges: 1, written: 0 });
    expect(JSON.parse(String(cdn.requests[0]?.body))).toEqual({ tags: ["Shop/_schemas", "Shop/posts"] });
    expect([...s3.objects.keys()].filter((key) => key.includes("journal"))).toEqual([]);
  });

  test.each([
    ["while the CDN accepts purges", 200],
    ["while the CDN answers 429", 429],
  ])("stops on SIGTERM %s, and the next deploy sends the remaining purges", async (_, status) => {
    const line = `--purge ${cdn.url}{path} --concurrency 1`;
    const { pid, end } = place.start(`deploy ${TARGET} ${line}`, s3.env);
    cdn.answer = () => {
      if (cdn.requests.length === 1) process.kill(pid, "SIGTERM");
      return { status };
    };
    const { code, stderr } = await end();
    expect([code, stderr]).toEqual([
      1,
      "The deploy was stopped by a signal.\nAll files are deployed. Run the deploy again: it purges what was not purged.\n",
    ]);
    expect(cdn.requests.length).toBeLessThan(10);
    cdn.answer = () => ({ status: 200 });
    expect((await deploy(line)).purges).toBeGreaterThan(10);
  });

  test("a failed purge is repeated by a deploy with --max-delete 0, as the deletions are already done", async () => {
    cdn.answer = () => ({ status: 403 });
    expect((await run("--purge cloudflare", CLOUDFLARE)).code).toBe(1);
    cdn.answer = () => ({ status: 200, body: '{"success":true}' });
    cdn.requests.length = 0;
    expect(await deploy("--purge cloudflare --max-delete 0", CLOUDFLARE)).toMatchObject({ purges: 1, deleted: 0 });
    expect(JSON.parse(String(cdn.requests[0]?.body))).toEqual({ tags: ["Shop/_schemas", "Shop/posts"] });
  });

  describe("a failed purge of a deleted app", () => {
    const other = (names: string[]) => place.import(smallApp("other", names));
    const refused = () => run("--purge cloudflare --out gone", CLOUDFLARE);

    beforeAll(async () => {
      await other(["Ada", "Bob"]);
      await place.build("both");
      await store.database.execute("DELETE FROM precast.apps WHERE key = 'other'");
      await place.build("gone");
    });
    beforeEach(async () => {
      await deploy("--out both");
      cdn.answer = () => ({ status: 403 });
      expect((await refused()).code).toBe(1);
      cdn.answer = () => ({ status: 200, body: '{"success":true}' });
      cdn.requests.length = 0;
    });

    test("is repeated by tag, with the tags of that app", async () => {
      await deploy("--purge cloudflare --out gone", CLOUDFLARE);
      expect(JSON.parse(String(cdn.requests[0]?.body))).toEqual({ tags: ["other/_schemas", "other/authors"] });
    });

    test("is repeated by URL, with the key of that app", async () => {
      await deploy(`--purge ${cdn.url}{path} --out gone`);
      expect(cdn.requests.map(({ target }) => target)).toContain("/api/v1/_schemas");
      expect(new Set(cdn.requests.map(({ headers }) => headers["x-app-key"]))).toEqual(new Set(["other"]));
    });

    test("is repeated after deploys without --purge", async () => {
      for (const line of ["--force", "--cache-control max-age=1", ""]) await deploy(`--out gone ${line}`);
      await deploy("--purge cloudflare --out gone", CLOUDFLARE);
      expect(JSON.parse(String(cdn.requests[0]?.body)).tags).toContain("other/authors");
    });
  });

  describe("an owed purge is sent by the next deploy with --purge", () => {
    const refuse = ({ key, method }: S3Request): Trouble | undefined =>
      method === "PUT" && key.endsWith("/manifest.json") ? { status: 403 } : undefined;

    async function expectMadeUpFor(): Promise<void> {
      cdn.answer = () => ({ status: 200, body: '{"success":true}' });
      cdn.requests.length = 0;
      expect(await deploy("--purge cloudflare", CLOUDFLARE)).toMatchObject({ purges: 1, written: 0 });
      expect(JSON.parse(String(cdn.requests[0]?.body))).toEqual({ tags: ["Shop/_schemas", "Shop/posts"] });
      expect(internalFilesOf(s3).filter((key) => key.includes("journal"))).toEqual([]);
      expect(await deploy("--purge cloudflare", CLOUDFLARE)).toMatchObject({ purges: 0 });
    }

    test.each([
      ["a deploy that has nothing to do", ["", "--dry-run"]],
      ["forced deploys without --purge, which add nothing to the owed purge", ["--force", "--force", ""]],
    ])("after the CDN refused the purge, followed by %s", async (_, lines) => {
      cdn.answer = () => ({ status: 403 });
      expect((await run("--purge cloudflare", CLOUDFLARE)).code).toBe(1);
      for (const line of lines) expect(await deploy(line)).toMatchObject({ purges: null });
      await expectMadeUpFor();
    });

    test("after the CDN refused the purge, followed by a deploy that fails and one that succeeds", async () => {
      cdn.answer = () => ({ status: 403 });
      expect((await run("--purge cloudflare", CLOUDFLARE)).code).toBe(1);
      s3.trouble = refuse;
      expect((await run("--force")).code).toBe(1);
      s3.trouble = () => undefined;
      await deploy("--force");
      await expectMadeUpFor();
    });

    test("after the deploy failed before the purge, followed by one without --purge that succeeds", async () => {
      s3.trouble = refuse;
      expect((await run("--purge cloudflare", CLOUDFLARE)).code).toBe(1);
      expect(cdn.requests).toEqual([]);
      s3.trouble = () => undefined;
      expect((await deploy("")).written).toBeGreaterThan(0);
      await expectMadeUpFor();
    });
  });

  test("is retried after a 429, and other errors of the CDN are reported", async () => {
    cdn.answer = () => (cdn.requests.length === 1 ? { status: 429 } : { status: 200, body: "{}" });
    expect(await deploy("--purge fastly", FASTLY)).toMatchObject({ purges: 1 });
    const told = async (answer: ReturnType<Cdn["answer"]>) => {
      cdn.answer = () => answer;
      return (await run("--purge fastly --force", FASTLY)).stderr;
    };
    expect(await told({ status: 404, body: '{"msg":"Record not found"}' })).toMatch(
      /^Fastly cannot find the resource to purge \(404: Record not found\)\. Check --fastly-service\.\n/,
    );
    expect(await told({ status: 200, body: "<html>" })).toMatch(/^Fastly refused the purge \(200\)\.\n/);
    expect(await told({ status: 401 })).toMatch(/^Fastly denies access \(401\)\. Check FASTLY_API_TOKEN\./);
    expect(await told({ status: 500 })).toMatch(/^Fastly is overloaded or failing \(500\)\./);
    const failure = '{"success":false,"errors":[{"message":"no such zone"}]}';
    cdn.answer = () => ({ status: 200, body: failure });
    expect((await run("--purge cloudflare --force", CLOUDFLARE)).stderr).toMatch(
      /^Cloudflare refused the purge \(200: no such zone\)\.\n/,
    );
  });

  test.each([
    ["cloudflare", /^--cloudflare-zone is missing .*\nCLOUDFLARE_API_TOKEN is missing in the environment\n$/],
    ["fastly", /^--fastly-service is missing .*\nFASTLY_API_TOKEN is missing in the environment\n$/],
    ["cloudfront", /^--cloudfront-distribution is missing/],
    ["http://127.0.0.1/purge", /^The URL of --purge must contain \{path\} or \{url\}/],
    [
      "akamai",
      /^--purge must be cloudflare, fastly, cloudfront or an address without a user name or password in it\n$/,
    ],
  ])(
    "%s is refused before anything is deployed when it is invalid or its settings are missing",
    async (how, message) => {
      const { code, stderr } = await run(`--purge ${how}`);
      expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
      expect(s3.objects).toEqual(first);
    },
  );
});

test("a purge by URL succeeds for what the cache does not hold (404), and skips files of unknown requests", async () => {
  cdn.answer = () => ({ status: 404 });
  const file = { app: "a", type: "t", request: "/api/v1/t", path: "s-a/v1/t/page/1.json" };
  const hashed = { ...file, request: null, path: `s-a/v1/t/filter/f/h-${"0".repeat(64)}.json` };
  const ofNobody = { ...file, app: null, path: `h-${"0".repeat(64)}/v1/t/page/1.json` };
  const purge = openPurge({ ...PURGE, purge: `${cdn.url}{path}`, purgeMethod: "PURGE" }, PATIENCE);
  expect(await purge?.([file, hashed, ofNobody])).toBe(1);
  expect(cdn.requests.map(({ target }) => target)).toEqual(["/api/v1/t"]);
});

describe("request limits of CDNs", () => {
  const files = (types: number, each: number): TreeFile[] =>
    Array.from({ length: types * each }, (_, index) => {
      const type = `t${Math.floor(index / each)}`;
      return { app: "a", type, request: `/api/v1/${type}`, path: `s-a/v1/${type}/page/${index % each}.json` };
    });

  test("a request to Cloudflare has at most 100 tags, and one to Fastly at most 256 surrogate keys", async () => {
    const cloudflare = { purge: "cloudflare", cloudflareZone: "z", cloudflareToken: "t" };
    const fastly = { purge: "fastly", fastlyService: "s", fastlyToken: "t" };
    const open = (cdnSettings: Partial<Parameters<typeof openPurge>[0]>) =>
      openPurge({ ...PURGE, purgeEndpoint: cdn.url, ...cdnSettings }, PATIENCE);
    expect(await open(cloudflare)?.(files(250, 1))).toBe(3);
    expect(await open(fastly)?.(files(257, 2))).toBe(2);
    const sizes = cdn.requests.map(
      ({ body }) => (Object.values(JSON.parse(String(body)) as object)[0] as string[]).length,
    );
    expect(sizes).toEqual([100, 100, 50, 256, 1]);
  });

  test("CloudFront invalidates few files one by one, many by a wildcard for their type, and many types by /*", () => {
    expect(invalidationPaths(files(1, 2))).toEqual(["/api/v1/t0*", "/s-a/v1/t0/page/0.json", "/s-a/v1/t0/page/1.json"]);
    expect(invalidationPaths(files(2, 21))).toEqual(["/api/v1/t0*", "/api/v1/t1*", "/s-a/v1/t0*", "/s-a/v1/t1*"]);
    expect(invalidationPaths(files(15, 20))).toHaveLength(15 * 21);
    expect(invalidationPaths(files(16, 1))).toEqual(["/*"]);
  });

  test("CloudFront invalidates a file whose name is a hash with every query, because that has the hashed value", () => {
    const path = `s-a/v1/t0/filter/title/h-${"0".repeat(64)}.json`;
    const hashed = files(1, 1).map((file) => ({ ...file, path }));
    expect(invalidationPaths(hashed)).toEqual(["/api/v1/t0*", `/${path}*`]);
  });

  test("CloudFront invalidates the types of many apps by /*, although their requests share their paths", () => {
    const ofApps = (count: number) =>
      Array.from({ length: count }, (_, app) =>
        files(1, 20).map((file) => ({ ...file, app: `a${app}`, path: file.path.replace("s-a", `s-a${app}`) })),
      ).flat();
    expect(invalidationPaths(ofApps(149))).toHaveLength(149 * 20 + 1);
    expect(invalidationPaths(ofApps(150))).toEqual(["/*"]);
  });

  test("CloudFront is asked again while too many invalidations are in progress", async () => {
    const credentials = { accessKeyId: "key", secretAccessKey: "secret" };
    const cloudfront = { purge: "cloudfront", purgeEndpoint: cdn.url, cloudfrontDistribution: "E1", ...credentials };
    const purge = openPurge({ ...PURGE, ...cloudfront }, { ...PATIENCE, retries: 1 });
    const busy = "<ErrorResponse><Error><Code>TooManyInvalidationsInProgress</Code></Error></ErrorResponse>";
    cdn.answer = () => (cdn.requests.length === 1 ? { status: 400, body: busy } : { status: 201 });
    // Nothing but a deletion of somebody else's file has such a path.
    const [stray] = files(1, 1).map((file) => ({ ...file, path: "s-a/v1/t0/a&b<c.json" }));
    expect(await purge?.([stray as TreeFile])).toBe(1);
    const bodies = cdn.requests.map(({ body }) => String(body));
    expect([bodies.length, bodies[0] === bodies[1]]).toEqual([2, true]);
    expect(bodies[0]).toContain("<Path>/s-a/v1/t0/a&amp;b&lt;c.json</Path>");
  });
});

describe("--wait-visible", () => {
  test("asks for the catalog of each app and for a changed file that is still there", async () => {
    const digest = digestBytes(Buffer.from("{}"));
    const page = (app: string, type: string): TreeFile => {
      return { app, type, request: `/api/v1/${type}`, path: `s-${app}/v1/${type}/page/1.json` };
    };
    const paths = ["s-a/v1/_schemas.json", "s-b/v1/_schemas.json", page("b", "kept").path];
    const files = new Map(paths.map((path) => [path, digest]));
    const tree = { apps: new Map(["a", "b"].map((key) => [key, { key, files, state: {} as TreeState }])) };
    const hashed = { ...page("b", "kept"), request: null };
    const changed = [page("a", "deleted"), hashed, page("b", "deleted"), page("b", "kept")];
    cdn.answer = () => ({ status: 200, body: "{}" });
    const waiting = { address: cdn.url, limit: 5, out: "", throwIfStopped: () => {} };
    await waitVisible(tree, changed, { ...PATIENCE, ...waiting });
    expect(cdn.requests.map(({ target, headers }) => `${headers["x-app-key"]} ${target}`)).toEqual([
      "a /api/v1/_schemas",
      "b /api/v1/kept",
      "b /api/v1/_schemas",
    ]);
  });

  /** The bucket's file for a request, as an edge maps it. */
  const show = (target: string): string | undefined =>
    target === "/api/v1/_schemas"
      ? filesOf(s3).get(`${SHOP_FOLDER}/_schemas.json`)
      : filesOf(s3).get(`${SHOP_FOLDER}/${fileOf(target)}`);
  const fileOf = (target: string) => {
    const [, type, id] = /^\/api\/v1\/([^/?]+)\/([^/?]+)$/.exec(target) ?? [];
    if (id !== undefined) return `${type}/entry/${id}.json`;
    const [, list, sort] = /^\/api\/v1\/([^/?]+)\?sort=(.+)$/.exec(target) ?? [];
    return sort === undefined ? `${target.slice("/api/v1/".length)}/page/1.json` : `${list}/sort/${sort}.json`;
  };

  test("polls with the app key until the CDN shows what was deployed", async () => {
    const old = String(first.get(`api/${SHOP_FOLDER}/_schemas.json`)?.bytes);
    let asked = 0;
    cdn.answer = ({ target, headers }) => {
      if (headers["x-app-key"] !== "Shop") return { status: 401 };
      if (target === "/api/v1/_schemas" && ++asked < 3) return { status: 200, body: old };
      return { status: 200, body: show(target) ?? "" };
    };
    await deploy(`--wait-visible ${cdn.url}`);
    expect(asked).toBe(3);
    expect(new Set(cdn.requests.map(({ target }) => target)).size).toBe(2);
  });

  test("ends on SIGTERM, with an error", async () => {
    const { pid, end } = place.start(`deploy ${TARGET} --wait-visible ${cdn.url}`, s3.env);
    cdn.answer = () => {
      process.kill(pid, "SIGTERM");
      return { status: 404 };
    };
    const { code, stderr } = await end();
    expect([code, stderr]).toEqual([1, "The deploy was stopped by a signal.\n"]);
  });

  test("fails after --wait-limit, and says what is shown instead", async () => {
    cdn.answer = () => ({ status: 200, body: "{}" });
    const { code, stderr } = await run(`--wait-visible ${cdn.url}/{file} --wait-limit 1`);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^After 1 seconds, http:\/\/127\.0\.0\.1:\d+\/x-53686f70\/v1\/\S+\.json still does not return what was deployed: it returns different content\. All files are deployed\. .*--wait-limit\.\n$/,
    );
    cdn.answer = () => ({ status: 503 });
    expect((await run(`--wait-visible ${cdn.url} --wait-limit 1`)).stderr).toMatch(/it answers with 503/);
    cdn.answer = () => ({ status: 301, headers: { Location: `${cdn.url}/elsewhere` } });
    expect((await run(`--wait-visible ${cdn.url} --wait-limit 1`)).stderr).toMatch(/it answers with 301/);
    expect(cdn.requests.map(({ target }) => target)).not.toContain("/elsewhere");
    const { port, release } = await holdPort();
    await release();
    expect((await run(`--wait-visible http://127.0.0.1:${port} --wait-limit 1`)).stderr).toMatch(
      /it cannot be reached \(ECONNREFUSED\)/,
    );
  });
});

test("a purge by URL includes the filter value that is too long for a file name", async () => {
  await deploy(`--purge ${cdn.url}{path} --force`);
  expect(cdn.requests.filter(({ target }) => target.includes(LONG))).toHaveLength(1);
});
