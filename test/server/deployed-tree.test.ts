/** Servers without a folder of their own: free answers from the tree where it was deployed (server/deployed/). */
import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { checkTreeStore, openTreeStore } from "../../cli/serve/tree-store.ts";
import { openFileCache } from "../../server/deployed/cache.ts";
import { readManifest } from "../../server/deployed/manifest.ts";
import { openDeployedTree } from "../../server/deployed/tree.ts";
import { segment } from "../../shared/api/address.ts";
import { describeTreeFile } from "../../shared/tree-file.ts";
import { openPlace, readTree, UNREACHABLE_URL } from "../support/cli.ts";
import { deployInProcess } from "../support/deployed.ts";
import { GOODS, KEY } from "../support/goods.ts";
import { LIBRARY_KEY, loadLibrary } from "../support/library.ts";
import type { Bundle } from "../support/model-bundle.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { type S3, startS3 } from "../support/s3.ts";
import {
  type ApiServer,
  buildSite,
  loadBundles,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type Store,
} from "../support/site.ts";
import { until } from "../support/until.ts";

const TARGET = "s3://content/api";
const PREFIX = "api/";
const NEVER = 3_600_000;
const FOLDER = segment(KEY);

const hash = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** Versions of the goods: each has other titles, and an entry more than the one before. */
const VERSIONS = 4;

function goodsOf(version: number): Bundle {
  const { goods = [] } = GOODS.entries;
  const [first] = goods;
  const more = Array.from({ length: version }, (_, index) => ({
    ...(first as (typeof goods)[number]),
    id: `0b7e8f52-6c1d-4f0e-9d53-0d2f6a1c9a${10 + index}`,
    published_at: `2026-02-${10 + index}T12:00:00Z`,
    data: { title: `new ${index} of ${version}` },
  }));
  const renamed = goods.map((one) => ({ ...one, data: { title: `${one.data.title} of ${version}` } }));
  return { ...GOODS, entries: { goods: [...renamed, ...more] } };
}

let server: TestServer;
let store: Store;
let s3: S3;
/** The folders of the trees of the goods' versions, and of the library. */
const trees: string[] = [];
const library = () => join(store.folder, "library");

beforeAll(async () => {
  server = await startPostgres();
  store = await openStore("postgres", { queryTimeout: 5_000, connections: 3, queue: 10 }, server.url("postgres"));
  for (let version = 0; version < VERSIONS; version++) {
    await loadBundles(store, [goodsOf(version)]);
    await buildSite(store);
    trees.push(join(store.folder, `tree-${version}`));
    cpSync(join(store.folder, "out"), trees[version] as string, { recursive: true });
  }
  await loadLibrary(store);
  await buildSite(store, library());
});
afterAll(async () => {
  await store.close();
  await server.remove();
});
beforeEach(async () => {
  s3 = await startS3();
  onTestFinished(s3.close);
});

const deploy = (version: number) => deployInProcess(s3, trees[version] as string, { concurrency: 1 });

/** A deploy that ends behind the upload of a file whose key matches. */
async function deployUntil(version: number, pattern: RegExp): Promise<void> {
  let isPast = false;
  s3.trouble = ({ method, key }) => {
    if (isPast && method === "PUT") return "cut";
    isPast ||= method === "PUT" && pattern.test(key);
    return undefined;
  };
  await expect(deployInProcess(s3, trees[version] as string, { concurrency: 1 }, undefined, 0)).rejects.toThrow();
  expect(isPast).toBe(true);
  s3.trouble = () => undefined;
}

type Options = {
  readonly refresh?: number;
  readonly folder?: string;
  readonly memory?: number;
  readonly address?: string;
};

let folders = 0;
const newFolder = () => join(store.folder, `cache-${folders++}`);

function storeAt(address: string) {
  const { accessKeyId, secretAccessKey } = s3.keys;
  const settings = { endpoint: s3.url, region: s3.env.AWS_REGION ?? null, pathStyle: true, out: "out" };
  return openTreeStore(address, { ...settings, accessKeyId, secretAccessKey, sessionToken: null }, () => new Date());
}

/** Starts a server on what is deployed. It is closed with the test. */
async function serve(options: Options = {}): Promise<ApiServer> {
  const { refresh = NEVER, folder = newFolder(), memory = 1 << 20, address = TARGET } = options;
  const api = await openApiServer(store, join(store.folder, "nowhere"), {
    memory,
    deployed: (findApp, report) =>
      openDeployedTree({
        ...{ store: storeAt(address), folder, maxBytes: 1e8, refresh, report },
        hasApp: (key) => findApp(key, new AbortController().signal).then(Boolean, () => true),
      }),
  });
  onTestFinished(api.close);
  return api;
}

const asked = (method = "GET") => s3.requests.filter((one) => one.method === method).map(({ key }) => key);

/** Removes a file from what is kept on disk. */
function forget(folder: string, bytes: Buffer): void {
  const [name, files] = [hash(bytes), join(folder, "files")];
  for (const newest of existsSync(files) ? readdirSync(files) : [])
    rmSync(join(files, newest, name.slice(0, 2), name.slice(2)), { force: true });
}

function timeless({ status, headers: { date: _, "x-request-id": __, ...headers }, text }: ReceivedAnswer) {
  return { status, headers, text };
}

function requestsOf(out: string, key: string): string[] {
  const apps = new Map([[segment(key), key]]);
  const paths = [...readTree(out).keys()].filter((path) => path.startsWith(`${segment(key)}/`));
  return paths.map((path) => describeTreeFile(out, path, apps).request ?? expect.unreachable(path));
}

const get = (api: ApiServer, target: string) => api.get(target, { appKey: KEY });
const FIRST_PAGE = "/api/v1/goods";
const ENTRY = `/api/v1/goods/${GOODS.entries.goods?.[0]?.id}`;
const versionIn = (text: string) => Number(/ of (\d+)"/.exec(text)?.[1] ?? Number.NaN);

describe("a server on a deployed tree", () => {
  test("answers every request of the tree as one on the folder does, and asks the store once for a file", async () => {
    await deployInProcess(s3, library());
    const [folder, deployed] = [await openApiServer(store, library()), await serve()];
    onTestFinished(folder.close);
    s3.requests.length = 0;
    const requests = requestsOf(library(), LIBRARY_KEY);
    expect(requests.length).toBeGreaterThan(100);
    const others = ["?page=99", "?filter[title]=nobody", "/deadbeef-dead-4eef-8ead-deadbeefdead", "?sort=nope"];
    const targets = [...requests, ...others.map((other) => `/api/v1/books${other}`), "/api/v1/nope"];
    for (const target of targets) {
      const ask = { appKey: LIBRARY_KEY, headers: { "Accept-Encoding": "identity" } };
      const [one, other] = [await folder.get(target, ask), await deployed.get(target, ask)];
      expect({ target, ...timeless(other) }).toEqual({ target, ...timeless(one) });
      const headers = { "If-None-Match": one.headers.etag ?? "none" };
      const again = { appKey: LIBRARY_KEY, headers };
      expect(timeless(await deployed.get(target, again))).toEqual(timeless(await folder.get(target, again)));
    }
    // Files of the same content are kept as one.
    const own = [...s3.objects].filter(([key]) => key.includes(segment(LIBRARY_KEY)));
    expect(new Set(asked()).size).toBe(asked().length);
    expect(asked()).toHaveLength(new Set(own.map(([, { bytes }]) => hash(bytes))).size);
    expect(deployed.warnings).toEqual([]);
  });

  test("answers requests for one cold file that come together from one request to the store", async () => {
    await deploy(0);
    const api = await serve({ memory: 0 });
    await get(api, ENTRY);
    await Promise.all(Array.from({ length: 20 }, () => get(api, FIRST_PAGE)));
    expect(asked().filter((key) => key.endsWith("/page/1.json"))).toHaveLength(1);
  });

  test("answers live what is not deployed, and keys of no app cost no request to the store", async () => {
    const api = await serve();
    expect((await get(api, ENTRY)).headers["cache-status"]).toBe("precast; fwd=miss");
    expect(asked()).toEqual([`${PREFIX}.precast/${FOLDER}/manifest.json`]);
    for (const key of ["one", "two"]) expect((await api.get(ENTRY, { appKey: key })).status).toBe(401);
    expect(asked()).toHaveLength(1);
    expect(api.warnings).toEqual([]);
  });

  test("shows a deploy without being started again, and keeps the files that it leaves", async () => {
    await deploy(0);
    const api = await serve({ refresh: 50 });
    expect(versionIn((await get(api, ENTRY)).text)).toBe(0);
    await get(api, "/api/v1/_schemas/goods");
    await deploy(1);
    await until("the new tree", async () => versionIn((await get(api, ENTRY)).text) === 1);
    await get(api, "/api/v1/_schemas/goods");
    expect(asked().filter((key) => key.endsWith("/_schemas/goods.json"))).toHaveLength(1);
    // An app whose tree is deleted there is answered live.
    s3.objects.clear();
    await until("a live answer", async () => (await get(api, ENTRY)).headers["cache-status"] === "precast; fwd=miss");
  });

  test.each([10, NEVER])(
    "never shows a list that leads to an older entry, or to none, in the middle of deploys (asking after %i ms)",
    async (refresh) => {
      await deploy(0);
      const folder = newFolder();
      // Like two workers, which share what is on disk.
      const apis = [await serve({ refresh, folder, memory: 0 }), await serve({ refresh, folder })];
      let turn = 0;
      const seen = new Set<string>();
      /** Reads a list and what it leads to. */
      const walk = async (version: number) => {
        const next = () => apis[turn++ % 2] as ApiServer;
        // Now and then, nothing is kept.
        if (turn % 41 === 0) rmSync(join(folder, "files"), { recursive: true, force: true });
        const list = await get(next(), turn % 3 === 0 ? "/api/v1/goods?sort=title" : FIRST_PAGE);
        expect(list.headers["cache-status"]).toBe("precast; hit");
        seen.add(`${version} ${versionIn(list.text)}`);
        forget(folder, Buffer.from(list.text));
        for (const { id } of list.json.data) {
          const entry = await get(next(), `/api/v1/goods/${id}`);
          expect([entry.status, entry.headers["cache-status"]]).toEqual([200, "precast; hit"]);
          expect(versionIn(entry.text)).toBeGreaterThanOrEqual(versionIn(list.text));
        }
      };
      const failures: unknown[] = [];
      for (let version = 1; version < VERSIONS; version++) {
        let walks = Promise.resolve();
        s3.trouble = ({ method }) => {
          if (method !== "PUT" && method !== "DELETE") return undefined;
          walks = walks.then(() => walk(version)).catch((error: unknown) => void failures.push(error));
          return { after: walks };
        };
        await deploy(version);
        await walks;
      }
      if (failures.length > 0) throw failures[0];
      s3.trouble = () => undefined;
      await walk(VERSIONS);
      expect([...seen]).toEqual(expect.arrayContaining(["1 0", "1 1", `${VERSIONS} ${VERSIONS - 1}`]));
      expect(apis.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    },
  );

  test("answers live what is missing in the store although it was deployed", async () => {
    await deploy(VERSIONS - 1);
    s3.objects.delete(`${PREFIX}${FOLDER}/v1/goods/page/1.json`);
    const api = await serve();
    expect((await get(api, FIRST_PAGE)).headers["cache-status"]).toBe("precast; fwd=miss");
    expect((await get(api, ENTRY)).headers["cache-status"]).toBe("precast; hit");
  });

  test("reports a manifest that it cannot read, once, and answers live or from the deploy before", async () => {
    await deploy(0);
    const [before, fresh] = [await serve({ refresh: 50 }), await serve({ refresh: 50 })];
    await get(before, ENTRY);
    const key = `${PREFIX}.precast/${FOLDER}/manifest.json`;
    const other = { bytes: Buffer.from('{"format":3,"files":{\n}}\n'), etag: '"3"' };
    s3.objects.set(key, { ...other, modified: new Date(), headers: {} });
    const checks = () => asked().filter((key) => key.endsWith("manifest.json")).length;
    const enough = checks() + 6;
    await until("more checks", async () => {
      expect((await get(fresh, ENTRY)).headers["cache-status"]).toBe("precast; fwd=miss");
      expect(versionIn((await get(before, ENTRY)).text)).toBe(0);
      return checks() > enough;
    });
    for (const { warnings } of [before, fresh])
      expect(warnings).toEqual([expect.stringMatching(/^\.precast\/s-shop\/manifest\.json in s3:.* another version/)]);
  });
});

describe("while something is away", () => {
  const away = () => {
    s3.trouble = () => "cut";
  };
  const back = () => {
    s3.trouble = () => undefined;
  };

  test("of the store: what was asked for before is answered from the tree, all else live, and the log says so once", async () => {
    await deploy(VERSIONS - 1);
    const api = await serve({ refresh: 50 });
    const before = await get(api, ENTRY);
    away();
    await until("the news", async () => {
      expect(timeless(await get(api, ENTRY))).toEqual(timeless(before));
      return api.warnings.length > 0;
    });
    for (const target of [FIRST_PAGE, "/api/v1/_schemas"]) {
      const got = await get(api, target);
      expect([got.status, got.headers["cache-status"]]).toEqual([200, "precast; fwd=miss"]);
    }
    expect(timeless(await get(api, ENTRY))).toEqual(timeless(before));
    back();
    await until("the store", async () => (await get(api, FIRST_PAGE)).headers["cache-status"] === "precast; hit");
    expect(api.warnings).toEqual([
      expect.stringMatching(
        /cannot be reached .*\. Free requests are answered from what is kept .* s3:\/\/content\/api/,
      ),
      "The tree at s3://content/api can be read again.",
    ]);
  });

  test("of a store that is silent: requests wait for it once, and then answers come as before", async () => {
    await deploy(VERSIONS - 1);
    const api = await serve({ refresh: 50, memory: 0 });
    const before = await get(api, ENTRY);
    s3.trouble = () => "silence";
    for (let time = 0; time < 5; time++) expect(timeless(await get(api, ENTRY))).toEqual(timeless(before));
    expect((await get(api, FIRST_PAGE)).status).toBe(200);
  });

  test("of the database, then of the store as well, and after a start: free answers stay", async () => {
    await deploy(0);
    const api = await serve();
    const before = [await get(api, ENTRY), await get(api, FIRST_PAGE)];
    await server.stop("fast");
    onTestFinished(() => server.start());
    expect((await get(api, "/api/v1/goods?per_page=1")).status).toBe(503);
    // Not asked for before.
    expect((await get(api, "/api/v1/_schemas")).headers["cache-status"]).toBe("precast; hit");
    // In the middle of a deploy, too: the list is already the next one, and so is what it leads to.
    await deployUntil(1, /page\/2\.json/);
    expect(versionIn((await get(api, "/api/v1/goods?page=2")).text)).toBe(1);
    expect(versionIn((await get(api, ENTRY)).text)).toBe(1);
    await deploy(0);
    const kept = newFolder();
    const other = await serve({ folder: kept });
    expect([await get(other, ENTRY), await get(other, FIRST_PAGE)].map(timeless)).toEqual(before.map(timeless));
    away();
    const started = await serve({ folder: kept });
    expect([await get(started, ENTRY), await get(started, FIRST_PAGE)].map(timeless)).toEqual(before.map(timeless));
    expect((await get(started, "/api/v1/_schemas")).status).toBe(503);
  });
});

describe("where a tree may be", () => {
  test("in a folder", async () => {
    const folder = join(store.folder, "deployed here");
    const address = pathToFileURL(folder).href;
    const deployHere = async (version: number) => {
      const place = openPlace();
      onTestFinished(place.close);
      const ran = await place.call(`deploy ${address} --out ${trees[version]} --allow-local-media --allow-older`);
      expect(ran.code).toBe(0);
    };
    await deployHere(VERSIONS - 1);
    const api = await serve({ address, refresh: 50, memory: 0 });
    for (const target of requestsOf(trees[VERSIONS - 1] as string, KEY))
      expect((await get(api, target)).headers["cache-status"]).toBe("precast; hit");
    await deployHere(0);
    await until("the other tree", async () => versionIn((await get(api, ENTRY)).text) === 0);
  });

  test("at a CDN that shows all of it; what that still has of before a deploy comes live", async () => {
    await deploy(0);
    const old = new Map<string, Buffer>();
    const url = await startWebServer((path) => old.get(path) ?? s3.objects.get(PREFIX + path)?.bytes);
    const api = await serve({ address: `${url}/tree/`, refresh: 50, memory: 0 });
    for (const target of requestsOf(trees[0] as string, KEY))
      expect((await get(api, target)).headers["cache-status"]).toBe("precast; hit");
    const page = `${FOLDER}/v1/goods/page/1.json`;
    old.set(page, s3.objects.get(PREFIX + page)?.bytes as Buffer);
    await deploy(1);
    await until("the other tree", async () => versionIn((await get(api, ENTRY)).text) === 1);
    expect((await get(api, FIRST_PAGE)).headers["cache-status"]).toBe("precast; fwd=miss");
    expect(api.warnings).toEqual([]);
  });

  test("a server does not start on what it can never use, and says why", async () => {
    const check = async (address: string) => {
      const warnings: string[] = [];
      const problem = await checkTreeStore(storeAt(address), (text) => warnings.push(text)).then(
        () => null,
        ({ message }: Error) => message,
      );
      return { problem, warnings };
    };
    const old = Buffer.from('{"format":1,"apps":[]}');
    const url = await startWebServer((path) => (path === "old/.precast/manifest.json" ? old : undefined));
    expect((await check(url)).problem).toMatch(/does not show \.precast\/manifest\.json, .*\(s3:\/\/bucket\/prefix/);
    expect((await check(`${url}/old`)).problem).toMatch(/not written by this version of Precast\. Deploy there/);
    expect((await check("s3://other/api")).problem).toMatch(/other/);
    expect(await check(TARGET)).toEqual({
      problem: null,
      warnings: [expect.stringMatching(/^Nothing is deployed at s3:/)],
    });
    s3.trouble = () => "cut";
    expect(await check(TARGET)).toEqual({ problem: null, warnings: [expect.stringMatching(/what it has kept/)] });
    for (const [address, why] of [
      ["ftp://host/tree", "specify s3://bucket/prefix, file:///folder or https://host/path."],
      ["https://user@host/tree", "specify https://host/path, without a user name, ? and #."],
    ] as const)
      expect(() => storeAt(address)).toThrow(`${address} is not the address of a deployed tree: ${why}`);
  });
});

/** Shows files below /tree/ as well. */
async function startWebServer(find: (path: string) => Buffer | undefined): Promise<string> {
  const web = createServer(({ url = "", headers }, response) => {
    const bytes = find(url.replace(/^\/(tree\/)?/, ""));
    const etag = bytes === undefined ? "" : `W/"${hash(bytes)}"`;
    if (bytes === undefined) response.writeHead(404).end("<html>");
    else if (headers["if-none-match"] === etag) response.writeHead(304, { ETag: etag }).end();
    else response.writeHead(200, { ETag: etag }).end(bytes);
  });
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    web.closeAllConnections();
    return new Promise<void>((resolve) => web.close(() => resolve()));
  });
  return `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
}

test("`serve --tree` answers with several workers and no database, reports the store, and refuses what contradicts it", async () => {
  await deploy(0);
  const place = openPlace({ ...s3.env, DATABASE_URL: UNREACHABLE_URL });
  onTestFinished(place.close);
  for (const [line, why] of [
    ["--watch", /--watch builds the tree in --out, which a server with --tree does not read/],
    ["--studio --admin-port 0", /--studio shows the tree in --out/],
  ] as const) {
    const { code, stderr } = await place.call(`serve --tree ${TARGET} --path-style ${line}`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(why)]);
  }
  expect((await place.call("serve --tree-refresh 9")).stderr).toMatch(/--tree-refresh has no effect without --tree/);

  const serving = await place.serve(`--tree ${TARGET} --path-style --workers 2 --tree-refresh 1 --admin-port 0`);
  await serving.printed(/Free requests are answered from the tree at s3:\/\/content\/api/);
  const ask = () => serving.get(ENTRY, { appKey: KEY });
  expect((await ask()).headers["cache-status"]).toBe("precast; hit");
  const admin = /Health and metrics: (\S+)/.exec(serving.output().stdout)?.[1] ?? "";
  const read = async (path: string) => (await fetch(admin + path)).text();
  const isUp = async () => /^precast_tree_store_up (\d)$/m.exec(await read("/metrics"))?.[1];
  expect(await isUp()).toBe("1");
  await deploy(1);
  // Both workers: what one has shown, the other shows as well.
  await until("the new tree", async () => versionIn((await ask()).text) === 1);
  for (let time = 0; time < 10; time++) expect(versionIn((await ask()).text)).toBe(1);
  s3.trouble = () => "cut";
  await until("the news", async () => (await ask()).status === 200 && (await isUp()) === "0");
  expect(JSON.parse(await read("/readyz"))).toMatchObject({ status: "degraded", tree: { ready: true } });
  expect((await serving.stop()).code).toBe(0);
});

describe("what is kept on disk", () => {
  const sizeOf = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .map((path) => statSync(join(folder, path)))
      .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);

  test("stays within its limit, and what is read again and again stays longest", async () => {
    const folder = newFolder();
    const errors: unknown[] = [];
    const caches = [1, 2].map(() => openFileCache(folder, 400_000, (error) => errors.push(error)));
    const [one, other] = caches as [(typeof caches)[0], (typeof caches)[0]];
    const used = Buffer.from("used".repeat(2_000));
    await one.keep(hash(used), used);
    const files = Array.from({ length: 100 }, (_, index) => Buffer.alloc(20_000, `file ${index}`));
    for (const [index, bytes] of files.entries()) {
      await (index % 2 === 0 ? one : other).keep(hash(bytes), bytes);
      expect(await other.read(hash(used))).toEqual(used);
      if (index % 10 === 9) await until("room", () => sizeOf(folder) <= 400_000);
    }
    expect(await one.read(hash(files.at(-1) as Buffer))).toEqual(files.at(-1));
    expect(await one.read(hash(files[0] as Buffer))).toBeNull();
    expect(errors).toEqual([]);
  });

  test("is not given when a power failure has damaged it, and is replaced", async () => {
    const folder = newFolder();
    const cache = openFileCache(folder, 1e6, (error) => expect.unreachable(String(error)));
    const bytes = Buffer.from("whole");
    await cache.keep(hash(bytes), bytes);
    const [path = ""] = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.length > 60);
    writeFileSync(join(folder, path), "who");
    expect(await cache.read(hash(bytes))).toBeNull();
    await cache.keep(hash(bytes), bytes);
    expect(await cache.read(hash(bytes))).toEqual(bytes);
  });
});

test("a manifest is searched by path, and one that is damaged, out of order or of another version is refused", async () => {
  const line = (path: string, digit: string) => `"${path}":["${digit.repeat(64)}",7]`;
  const text = (...lines: string[]) => `{"format":2,"app":"shop","files":{\n${lines.join(",\n")}\n}}\n`;
  const paths = Array.from({ length: 3_000 }, (_, index) => `s-shop/v1/goods/page/${10_000 + index}.json`);
  const whole = text(...paths.map((path, index) => line(path, String(index % 10))));
  const manifest = await readManifest(Buffer.from(whole));
  expect(paths.map((path) => manifest?.find(path)?.[0])).toEqual(paths.map((_, index) => String(index % 10)));
  for (const path of ["", "a", "s-shop/v1/goods/page/1.json", "z"]) expect(manifest?.find(path)).toBeNull();
  expect((await readManifest(Buffer.from(text())))?.find("a")).toBeNull();
  for (const broken of [
    "",
    whole.slice(0, -100),
    whole.replace('"format":2', '"format":3'),
    text(line("b", "1"), line("a", "2")),
    text(line("a", "1"), line("b", "x")),
  ])
    expect(await readManifest(Buffer.from(broken))).toBeNull();
});
