/** `precast deploy` makes a bucket or a folder equal to the tree, and refuses what it must not deploy. */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { isOlder } from "../../cli/deploy/age.ts";
import { deployTree } from "../../cli/deploy/deploy.ts";
import { readJournal, readManifest } from "../../cli/deploy/manifest.ts";
import { deletionsRefusal } from "../../cli/deploy/plan.ts";
import { openTarget } from "../../cli/deploy/target.ts";
import { readState } from "../../shared/tree.ts";
import {
  idOf,
  openPlace,
  type Place,
  readTree,
  SHOP,
  SHOP_FOLDER,
  shop,
  shopWith,
  shopWithout,
  smallApp,
} from "../support/cli.ts";
import {
  deployInProcess,
  differencesOf,
  filesOf,
  internalFilesAfter,
  internalFilesOf,
  noteOf,
} from "../support/deployed.ts";
import type { Bundle, BundleEntry } from "../support/model-bundle.ts";
import { type S3, type S3Object, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

type Report = {
  readonly target: string;
  readonly dry_run: boolean;
  readonly generation: number;
  readonly written: number;
  readonly unchanged: number;
  readonly deleted: number;
  readonly bytes: number;
  readonly conditional: boolean | null;
};

/** Files of the tree, and one state file. */
const SHOP_FILES = 46 + 1;
const TARGET = "s3://content/api";
const NOTES = internalFilesAfter([SHOP]);
const MANIFEST = noteOf("manifest.json", SHOP);
/** A journal that can be read, of a deploy that changes nothing. */
const WHOLE_JOURNAL = {
  ...{ format: 2, generation: 9, deploy: "one", cache_control: "", cdn_cache_control: "" },
  ...{ writes: {}, uploaded: 0, removes: [], purging: false, purges: [], app: SHOP },
};

/** Node option that resolves every host name to 127.0.0.1. */
const LOCAL = `--import=data:text/javascript,${encodeURIComponent(
  'import dns from "node:dns"; dns.lookup = (name, options, done) => done(null, [{ address: "127.0.0.1", family: 4 }]);',
)}`;

let store: Store;
let place: Place;
let s3: S3;
const out = () => join(place.folder, "out");
const deploy = (line = TARGET) => place.json<Report>(`deploy ${line}`, s3.env);
/** Keys of all requests with this method, in order, without the prefix. */
const touched = (method: string) =>
  s3.requests.filter((request) => request.method === method).map(({ key }) => key.replace(/^api\//, ""));

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  await place.build("built");
});
afterAll(async () => {
  await place.close();
  await store.close();
});
beforeEach(async () => {
  for (const folder of ["out", "web"]) rmSync(join(place.folder, folder), { recursive: true, force: true });
  cpSync(join(place.folder, "built"), out(), { recursive: true, preserveTimestamps: true });
  s3 = await startS3();
  return () => s3.close();
});

/** Imports the bundles and builds the tree. After the test, restores the database. */
async function rebuild(...bundles: readonly Bundle[]): Promise<void> {
  for (const bundle of bundles) await place.import(bundle);
  await place.build();
  onTestFinished(async () => {
    await store.database.execute("DELETE FROM precast.apps");
    await place.import(shop());
  });
}

describe("a deploy to a bucket", () => {
  test("makes the bucket equal to the tree, and after an edit uploads the files that differ and no others", async () => {
    expect(await deploy()).toMatchObject({
      target: TARGET,
      generation: 1,
      written: SHOP_FILES,
      deleted: 0,
      conditional: true,
    });
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
    expect(internalFilesOf(s3)).toEqual(NOTES);
    await rebuild(shopWith((posts) => posts.map((post) => (post.id === idOf(1) ? edited(post) : post))));
    s3.requests.length = 0;
    const before = filesOf(s3);
    const { generation, written, unchanged, deleted } = await deploy();
    expect([generation, written + unchanged, deleted]).toEqual([2, SHOP_FILES, 0]);
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
    const differing = [...filesOf(s3)].filter(([path, content]) => before.get(path) !== content);
    expect(differing.length).toBeGreaterThan(0);
    expect(
      touched("PUT")
        .filter((key) => !key.startsWith(".precast/"))
        .sort(),
    ).toEqual(differing.map(([path]) => path).sort());
    // The state of the app is a file as well.
    expect(written).toBe(differing.length + 1);
  });

  test("writes nothing when the bucket already equals the tree", async () => {
    await deploy();
    s3.requests.length = 0;
    expect(await deploy()).toMatchObject({ generation: 1, written: 0, unchanged: SHOP_FILES, deleted: 0, bytes: 0 });
    expect([...touched("PUT"), ...touched("DELETE")]).toEqual([]);
  });

  test("writes entries, lists, schemas, catalog, state and manifest in this order, then deletes files", async () => {
    await deploy();
    s3.requests.length = 0;
    await rebuild(shopWithout(1), smallApp("other", ["A", "B"]));
    await deploy(`${TARGET} --concurrency 4`);
    const stepsOf = (folder: string) => {
      const own = s3.requests.filter(({ method, key }) => method !== "GET" && key.includes(folder));
      const steps = own.map(({ method, key }) => `${method === "PUT" ? "write" : "delete"} ${kindOf(key)}`);
      return steps.filter((step, index) => step !== steps[index - 1]);
    };
    const begin = ["write lock", "write journal"];
    const end = ["write catalog", "write state", "write manifest"];
    expect(stepsOf("s-other")).toEqual([
      ...begin,
      ...["write entry", "write list", "write schema"],
      ...end,
      ...["delete journal", "delete lock"],
    ]);
    expect(stepsOf("x-53686f70")).toEqual([
      ...begin,
      "write list",
      ...end,
      ...["delete list", "delete entry", "delete journal", "delete lock"],
    ]);
  });

  test("deletes the files of a deleted app in the opposite order: lists before their pages, entries last", async () => {
    await rebuild(smallApp("other", ["A", "B"]));
    await deploy();
    await store.database.execute("DELETE FROM precast.apps WHERE key = 'other'");
    await place.build();
    s3.requests.length = 0;
    await deploy();
    const deleted = touched("DELETE").filter((key) => /^s-other|^\.precast\/s-other\.json/.test(key));
    const steps = deleted.map((key) => (key.endsWith("/page/1.json") ? "first page" : kindOf(`api/${key}`)));
    expect(steps.filter((step, index) => step !== steps[index - 1])).toEqual([
      "state",
      "catalog",
      "schema",
      "first page",
      "list",
      "entry",
    ]);
  });

  test("keeps each last_page reachable throughout, also when forced, with new headers or after a failure", async () => {
    await rebuild(pagesOf(3));
    cpSync(out(), join(place.folder, "few"), { recursive: true });
    await rebuild(pagesOf(9));
    for (const [options, died] of [
      [{}, false],
      [{ force: true }, false],
      [{ cacheControl: "max-age=9" }, false],
      [{}, true],
    ] as const) {
      s3.objects.clear();
      s3.trouble = () => undefined;
      await deployInProcess(s3, join(place.folder, "few"));
      s3.trouble = ({ method, key }) => (method === "PUT" && key.includes("/page/") ? { status: 403 } : undefined);
      if (died) await expect(deployInProcess(s3, out())).rejects.toThrow(/nothing was deleted/);
      const broken = new Set<string>();
      s3.trouble = () => {
        for (const page of [1, 2, 3]) if (!s3.objects.has(lastPageAt(page))) broken.add(`page ${page}`);
        return undefined;
      };
      await deployInProcess(s3, out(), { concurrency: 1, ...options });
      expect([options, died, lastPageAt(1), ...broken]).toEqual([options, died, "api/s-paged/v1/authors/page/9.json"]);
    }
  });

  /** Key of the last page, according to `last_page` in this page. */
  function lastPageAt(page: number): string {
    const at = (name: number) => `api/s-paged/v1/authors/page/${name}.json`;
    return at(JSON.parse(String(s3.objects.get(at(page))?.bytes)).meta.last_page);
  }

  test("stores files with content type, cache headers and cache tags, and the manifest with no-store", async () => {
    await deploy(`${TARGET} --cdn-cache-control max-age=9`);
    const headersOf = (path: string) => s3.objects.get(`api/${SHOP_FOLDER}/${path}`)?.headers;
    expect(headersOf("posts/page/1.json")).toEqual({
      "content-type": "application/json; charset=utf-8",
      "cache-control": "public, max-age=60",
      "x-amz-meta-cdn-cache-control": "max-age=9",
      "x-amz-meta-cache-tag": "Shop,Shop/posts",
    });
    expect(headersOf("_schemas/posts.json")).toMatchObject({ "x-amz-meta-cache-tag": "Shop,Shop/posts" });
    expect(headersOf("_schemas.json")).toMatchObject({ "x-amz-meta-cache-tag": "Shop,Shop/_schemas" });
    expect(s3.objects.get(MANIFEST)?.headers).toMatchObject({ "cache-control": "no-store" });
  });

  test.each([
    ["--cache-control", "cache-control", "no-store"],
    ["--cdn-cache-control", "x-amz-meta-cdn-cache-control", undefined],
  ])("uploads every file again when %s changes", async (option, header, ofPrivateFiles) => {
    await deploy();
    expect(await deploy(`${TARGET} ${option} max-age=1`)).toMatchObject({ written: SHOP_FILES, deleted: 0 });
    const times = [...s3.objects.values()].map(({ headers }) => headers[header]);
    expect(new Set(times)).toEqual(new Set(["max-age=1", ofPrivateFiles]));
  });

  test("without a prefix writes to the bucket's root, deletes surplus tree files and keeps other files", async () => {
    const others = ["index.html", "s-other/readme.txt", "s-other/v1/image.png"];
    const stray = `${SHOP_FOLDER}/posts/page/9.json`;
    const object = { bytes: Buffer.from("{}"), etag: '"x"', modified: new Date(), headers: {} };
    for (const key of [...others, stray]) s3.objects.set(key, object);
    expect(await deploy("s3://content")).toMatchObject({ written: SHOP_FILES, deleted: 1 });
    const files = new Map(
      [...s3.objects].filter(([key]) => !key.startsWith(".precast/")).map(([key, { bytes }]) => [key, String(bytes)]),
    );
    expect(differencesOf(files, out())).toEqual(others.map((key) => `surplus: ${key}`).sort());
  });

  test("accepts a prefix with spaces, plus signs and non-ASCII letters, also when the manifest is lost", async () => {
    expect(await deploy("s3://content/a+b/ü%20(1)/")).toMatchObject({ target: "s3://content/a+b/ü%20(1)", deleted: 0 });
    expect(differencesOf(filesOf(s3, "a+b/ü%20(1)"), out())).toEqual([]);
    for (const key of ["a+b/ü%20(1)/.precast/manifest.json", noteOf("manifest.json", SHOP, "a+b/ü%20(1)")])
      s3.objects.delete(key);
    // Only a listing of the bucket tells of this file.
    s3.objects.set("a+b/ü%20(1)/s-gone/v1/_schemas.json", {
      bytes: Buffer.from("{}"),
      etag: '"x"',
      modified: new Date(),
      headers: {},
    });
    expect(await deploy("s3://content/a+b/ü%20(1)")).toMatchObject({ written: SHOP_FILES, deleted: 1 });
    expect(differencesOf(filesOf(s3, "a+b/ü%20(1)"), out())).toEqual([]);
  });

  test("works with temporary credentials (AWS_SESSION_TOKEN)", async () => {
    const lent = await startS3({ sessionToken: "token/1" });
    expect(await place.json<Report>(`deploy ${TARGET}`, lent.env)).toMatchObject({ written: SHOP_FILES });
    await lent.close();
  });

  test("names the bucket in the host when the endpoint is a host name", async () => {
    const { code, stderr } = await place.run(`deploy ${TARGET}`, {
      ...s3.env,
      AWS_ENDPOINT_URL: s3.url.replace("127.0.0.1", "s3.test"),
      NODE_OPTIONS: LOCAL,
    });
    expect([code, stderr]).toEqual([0, ""]);
    expect(new Set(s3.requests.map(({ headers }) => headers.host))).toEqual(
      new Set([`content.s3.test:${new URL(s3.url).port}`]),
    );
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
  });

  test.each([
    ["MyBucket", "s3.test"],
    ["my_bucket", "s3.test"],
    ["content", "localhost"],
  ])("names the bucket in the path if no host name allows it: %s at %s", async (bucket, host) => {
    const capital = await startS3({ bucket });
    const { code, stderr } = await place.run(`deploy s3://${bucket}/api`, {
      ...capital.env,
      AWS_ENDPOINT_URL: capital.url.replace("127.0.0.1", host),
      NODE_OPTIONS: LOCAL,
    });
    expect([code, stderr]).toEqual([0, ""]);
    expect(new Set(capital.requests.map(({ headers }) => headers.host?.split(":")[0]))).toEqual(new Set([host]));
    expect(differencesOf(filesOf(capital), out())).toEqual([]);
    await capital.close();
  });

  test("reports uploads, unchanged files, deletions, size and duration in one line", async () => {
    const { code, stdout, stderr } = await place.run(`deploy ${TARGET}`, s3.env);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^s3:\/\/content\/api: uploaded 47 files, 0 unchanged, deleted 0, [\d.]+ kB in [\d.]+ s\n$/);
    const manifest = s3.objects.get(MANIFEST) as S3Object;
    const text = String(manifest.bytes).replace(`${SHOP_FOLDER}/posts/page/2.json`, `${SHOP_FOLDER}/posts/page/9.json`);
    s3.objects.set(MANIFEST, { ...manifest, bytes: Buffer.from(text) });
    expect((await place.call(`deploy ${TARGET}`, s3.env)).stdout).toContain(
      ": uploaded 1 file, 46 unchanged, deleted 1,",
    );
  });
});

describe("a deploy to a folder", () => {
  // nginx and Caddy tell versions of a file apart by its size and its mtime in seconds.
  test("gives changed content of the same size an mtime in a later second", async () => {
    await place.json(`deploy ${target()}`);
    const [here, there] = ["out", "web"].map((name) => join(place.folder, name, SHOP_FOLDER, "posts/page/1.json"));
    const second = Math.floor(Date.now() / 1_000) + 60;
    utimesSync(there as string, second, second + 0.25);
    writeFileSync(here as string, readFileSync(here as string, "utf8").replace('"data"', '"DATA"'));
    await place.json(`deploy ${target()}`);
    expect(readFileSync(there as string, "utf8")).toBe(readFileSync(here as string, "utf8"));
    expect(statSync(there as string).mtimeMs).toBe((second + 1) * 1_000);
  });

  test("does not look into a folder of others beside the tree, which it may be unable to read", async () => {
    const others = join(place.folder, "web", "lost+found");
    mkdirSync(others, { recursive: true });
    // Nobody can list the innermost by its path, which is too long; a folder of another user is one that root can read.
    const deep = `for (let level = 0; level < 20; level++) { fs.mkdirSync("${"d".repeat(250)}"); process.chdir("${"d".repeat(250)}"); }`;
    execFileSync(process.execPath, ["-e", deep], { cwd: others });
    try {
      expect((await place.json<Report>(`deploy ${target()} --force`)).written).toBeGreaterThan(0);
      expect(existsSync(others)).toBe(true);
    } finally {
      execFileSync("rm", ["-rf", others]);
    }
  });

  const target = () => pathToFileURL(join(place.folder, "web")).href;
  const LOCK = "web/.precast/x-53686f70/deploy.lock";

  /** Deploys in this process. `onPlan` runs before anything but the lock is written. */
  function deployFolder(onPlan: () => void) {
    const retryPolicy = { timeout: 30, retries: 0, now: () => new Date() };
    const keys = { accessKeyId: null, secretAccessKey: null, sessionToken: null };
    const reached = { concurrency: 1, endpoint: null, region: null, pathStyle: false, out: out() };
    return deployTree(openTarget(target(), { ...retryPolicy, ...keys, ...reached }, retryPolicy), {
      ...{
        out: out(),
        dryRun: false,
        force: false,
        allowOlder: false,
        allowLocalMedia: true,
        maxDelete: 0,
        concurrency: 1,
        throwIfStopped: () => {},
      },
      ...{ cacheControl: "max-age=60", cdnCacheControl: "max-age=60" },
      onPlan,
    });
  }

  test("makes the folder equal to the tree, and an unchanged file keeps its mtime", async () => {
    await deploy(target());
    expect(differencesOf(readTree(join(place.folder, "web")), out())).toEqual([]);
    const file = join(place.folder, "web", SHOP_FOLDER, "authors/page/1.json");
    const before = statSync(file).mtimeMs;
    await rebuild(shopWithout(1));
    expect(await deploy(target())).toMatchObject({ generation: 2 });
    expect(differencesOf(readTree(join(place.folder, "web")), out())).toEqual([]);
    expect(statSync(file).mtimeMs).toBe(before);
  });

  test("says why, what to do and that nothing was changed when it cannot write", async () => {
    const deploying = deployFolder(() => writeFileSync(join(place.folder, "web/.precast/part"), ""));
    await expect(deploying).rejects.toThrow(
      /^Part of the path \S+\/web\/\.precast\/part\S* is a file, not a folder\. Specify another folder .*the target of a deploy\)\.\nNothing of Shop was changed\. Run .*$/,
    );
  });

  test("is refused while another deploy holds the lock, and names its process", async () => {
    mkdirSync(join(place.folder, LOCK, ".."), { recursive: true });
    writeFileSync(join(place.folder, LOCK), `${process.pid}\n`);
    const { code, stderr } = await place.run(`deploy ${target()}`);
    expect([code, stderr]).toEqual([
      1,
      `Another deploy (process ${process.pid}) holds the lock of Shop in ${target()}. Wait for it to end, then deploy again.\n`,
    ]);
    expect([...readTree(join(place.folder, "web"))]).toEqual([]);
  });

  test("fails when another deploy has written or replaced the manifest meanwhile", async () => {
    const manifest = join(place.folder, "web/.precast/x-53686f70/manifest.json");
    const replaced =
      /^Another deploy replaced \.precast\/x-53686f70\/manifest\.json in file:\/\/\S+ during this one\.\nAll \d+ files/;
    await expect(deployFolder(() => writeFileSync(manifest, "{}"))).rejects.toThrow(replaced);
    rmSync(manifest);
    await deployFolder(() => {});
    await rebuild(shopWith((posts) => posts.map((post) => (post.id === idOf(1) ? edited(post) : post))));
    await expect(deployFolder(() => writeFileSync(manifest, "{}"))).rejects.toThrow(replaced);
    expect(readFileSync(manifest, "utf8")).toBe("{}");
  });

  test("writes nothing after another deploy has taken over its lock", async () => {
    const deploying = deployFolder(() => writeFileSync(join(place.folder, LOCK), "1 - elsewhere\n"));
    await expect(deploying).rejects.toThrow(
      /^Another deploy has taken over Shop in file:\/\/\S+, or somebody has removed its lock\.\nNothing of Shop was changed\./,
    );
    expect(readdirSync(join(place.folder, LOCK, ".."))).toEqual(["deploy.lock"]);
    expect(existsSync(join(place.folder, "web", SHOP_FOLDER))).toBe(false);
  });

  test("is refused when the folder is that of the tree, contains it or lies in it", async () => {
    for (const folder of ["out", "out/web", "."]) {
      const { code, stderr } = await place.call(`deploy ${pathToFileURL(join(place.folder, folder)).href}`);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/it overlaps with the tree in --out/)]);
    }
  });
});

test("a tree that was built with --app leaves other apps alone, whatever it changes", async () => {
  await rebuild(smallApp("other", ["A"]));
  await deployInProcess(s3, out());
  await rebuild(shopWithout(1));
  const whole = join(place.folder, "whole");
  cpSync(out(), whole, { recursive: true });
  rmSync(out(), { recursive: true });
  await place.json("build --app Shop");
  expect((await deployInProcess(s3, out())).deleted).toBeGreaterThan(0);
  for (const options of [{ force: true }, { cacheControl: "no-cache" }, {}])
    expect(await deployInProcess(s3, out(), options)).toMatchObject({ deleted: 0, unchanged: 0 });
  expect(differencesOf(filesOf(s3), whole)).toEqual([]);
  expect(await deployInProcess(s3, whole)).toMatchObject({ deleted: 0 });
  // A tree of all apps shows which one the database has no more.
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'other'");
  await place.build();
  await deployInProcess(s3, out());
  expect(differencesOf(filesOf(s3), out())).toEqual([]);
  expect(internalFilesOf(s3)).toEqual(NOTES);
});

describe("checks before a deploy", () => {
  test("--dry-run only reads, and reports what the deploy then does", async () => {
    await deploy();
    await rebuild(shopWithout(1));
    s3.requests.length = 0;
    const { code, stdout } = await place.run(`deploy ${TARGET} --dry-run`, s3.env);
    expect(code).toBe(0);
    expect(stdout).toContain(`upload ${SHOP_FOLDER}/posts/page/1.json\n`);
    expect(stdout).toContain(`delete ${SHOP_FOLDER}/posts/entry/${idOf(1)}.json\n`);
    expect(new Set(s3.requests.map(({ method }) => method))).toEqual(new Set(["GET"]));
    const dry = await deploy(`${TARGET} --dry-run`);
    const done = await deploy();
    expect({ ...dry, dry_run: false, generation: 2, conditional: true, seconds: 0 }).toEqual({ ...done, seconds: 0 });
  });

  describe("a tree that is older than the deployed one", () => {
    const newer = (app = SHOP) =>
      new RegExp(
        `^s3://content/api has a newer tree of ${app}: it was built .* Nothing was changed\\. .* --allow-older\\.\\n$`,
      );
    const build = (folder: string, env?: Record<string, string>) => place.json(`build --out ${folder}`, env);
    const deployOf = (folder: string, line = "") => place.call(`deploy ${TARGET} --out ${folder} ${line}`, s3.env);
    const content = () => new Map([...s3.objects].filter(([key]) => !key.includes("/.precast/")));

    afterEach(async () => {
      for (const folder of ["older", "newer"]) rmSync(join(place.folder, folder), { recursive: true, force: true });
      await store.database.execute("DELETE FROM precast.apps");
      await place.import(shop());
    });

    test("is refused and changes nothing, until it has been built again; --allow-older deploys it", async () => {
      await build("older");
      await place.import(shopWithout(1));
      await build("newer");
      expect(await deployOf("newer")).toMatchObject({ code: 0, stderr: "" });
      const before = new Map(s3.objects);
      expect(await deployOf("older")).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(newer()) });
      expect(await deployOf("older", "--force")).toMatchObject({ code: 1, stderr: expect.stringMatching(newer()) });
      expect(await deployOf("older", "--dry-run")).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(
          /^Without --dry-run, the deploy would be refused: s3:.* has a newer tree of Shop: /,
        ),
      });
      expect(content()).toEqual(new Map([...before].filter(([key]) => !key.includes("/.precast/"))));
      expect(await deployOf("older", "--allow-older")).toMatchObject({ code: 0, stderr: "" });
      expect(differencesOf(filesOf(s3), join(place.folder, "older"))).toEqual([]);
      expect(await deployOf("newer")).toMatchObject({ code: 0, stderr: "" });
      await build("older");
      expect(await deployOf("older")).toMatchObject({ code: 0, stderr: "" });
      expect(differencesOf(filesOf(s3), join(place.folder, "newer"))).toEqual([]);
    });

    test("is refused if it lacks an app that was made later", async () => {
      await build("older");
      await place.import(smallApp("later", ["A"]));
      await build("newer");
      expect(await deployOf("newer")).toMatchObject({ code: 0, stderr: "" });
      expect(await deployOf("older")).toMatchObject({ code: 1, stderr: expect.stringMatching(newer("later")) });
      await store.database.execute("DELETE FROM precast.apps WHERE key = 'later'");
      await build("older");
      expect(await deployOf("older")).toMatchObject({ code: 0, stderr: "" });
    });

    test("is deployed if it has the same content", async () => {
      await build("older");
      await build("newer");
      for (const folder of ["newer", "older"]) expect(await deployOf(folder)).toMatchObject({ code: 0, stderr: "" });
    });

    test("is refused if it was built before from another database", async () => {
      const other = await openStore("postgres");
      onTestFinished(() => other.close());
      const elsewhere = { DATABASE_URL: other.url ?? "" };
      await place.import(shopWithout(1), elsewhere);
      await build("older");
      await build("newer", elsewhere);
      expect(await deployOf("newer")).toMatchObject({ code: 0, stderr: "" });
      expect(await deployOf("older")).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("from another database"),
      });
      rmSync(join(place.folder, "older"), { recursive: true });
      await build("older");
      expect(await deployOf("older")).toMatchObject({ code: 0, stderr: "" });
    });

    test.each([
      ["10:10:", "10:10:", false],
      ["10:10:", "10:11:", true],
      ["10:11:", "10:10:", false],
      ["10:12:10", "10:12:", true],
      ["10:12:", "10:12:10", false],
      ["10:12:10,11", "10:12:11", true],
      ["10:12:10", "10:13:10,12", false],
      ["10:13:10,12", "10:12:10", false],
      ["10:12:10", "12:12:", true],
      ["99999999999999999998:99999999999999999998:", "99999999999999999999:99999999999999999999:", true],
    ])("of the snapshots %s and %s, the first is older: %s", (own, other, expected) => {
      const of = (snapshot: string) => ({
        built_at: "",
        source: "",
        snapshot,
        app: { key: "", name: "", media_base_url: "", types: [] },
      });
      expect(isOlder(of(own), of(other))).toBe(expected);
    });
  });

  test.each(["http://localhost:3000", "http://127.0.0.2:8080", "https://[::1]/m", "http://cms.localhost"])(
    "files with addresses of media at %s are refused, unless --allow-local-media is given",
    async (address) => {
      const own = { ...s3.env, PRECAST_ALLOW_LOCAL_MEDIA: "" };
      await place.call(`build --out local --media-base-url ${address}`);
      const { code, stderr } = await place.call(`deploy ${TARGET} --out local`, own);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(
          /^In 17 files, such as .*, addresses of media lead to the reader's own machine\. Nothing .*\n$/,
        ),
      ]);
      expect(await place.call(`deploy ${TARGET} --out local --dry-run`, own)).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^Without --dry-run, the deploy would be refused: In 17 files, /),
      });
      expect(await place.call(`deploy ${TARGET} --out local --allow-local-media`, own)).toMatchObject({ code: 0 });
      await place.call("build --out local --media-base-url https://media.test");
      expect(await place.call(`deploy ${TARGET} --out local`, own)).toMatchObject({ code: 0, stderr: "" });
    },
  );

  test("more deletions than --max-delete are refused before any change; --dry-run warns, --force deletes", async () => {
    await deploy();
    await rebuild(shopWithout(1));
    const before = new Map(s3.objects);
    const { code, stdout, stderr } = await place.run(`deploy ${TARGET} --max-delete 3`, s3.env);
    expect([code, stdout]).toEqual([1, ""]);
    const foretold = await place.call(`deploy ${TARGET} --max-delete 3 --dry-run`, s3.env);
    expect([foretold.code, foretold.stderr]).toEqual([0, expect.stringContaining(stderr.trim())]);
    const [, count] =
      /^This would delete (\d+) files, but --max-delete is 3\. Nothing was changed\./.exec(stderr) ?? [];
    expect(Number(count)).toBeGreaterThan(3);
    expect(deletionsRefusal(1, { force: false, maxDelete: 0 })?.message).toContain("would delete 1 file,");
    expect(s3.objects).toEqual(before);
    expect(await deploy(`${TARGET} --max-delete 3 --force`)).toMatchObject({
      deleted: Number(count),
      written: expect.any(Number),
    });
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
  });

  test("a tree that was never built, is being built, or has missing, empty or cut files is refused", async () => {
    const refused = async (line = TARGET) => {
      const { code, stdout, stderr } = await place.run(`deploy ${line}`, s3.env);
      expect([code, stdout, s3.objects.size]).toEqual([1, "", 0]);
      return stderr;
    };
    expect(await refused(`${TARGET} --out nowhere`)).toMatch(
      /^nowhere has no finished build .*`precast build` first\. .* if the last app was deleted, delete its files .*\n$/,
    );
    const lock = join(out(), ".precast/build.lock");
    writeFileSync(lock, `${process.pid}\n`);
    expect(await refused()).toMatch(new RegExp(`^A build \\(process ${process.pid}\\) is changing out\\..*\\n$`));
    rmSync(lock);
    mkdirSync(join(out(), ".precast/ready"));
    expect(await refused()).toBe("A build of out was interrupted. Run `precast build` to complete it.\n");
    rmdirSync(join(out(), ".precast/ready"));
    const page = join(out(), SHOP_FOLDER, "posts/page/2.json");
    for (const cut of ["", '{"data":[']) {
      writeFileSync(page, cut);
      expect(await refused()).toMatch(
        /^out differs from what was built: \S+\/posts\/page\/2\.json is empty, truncated or edited\. .*--full.*\n$/,
      );
    }
    rmSync(page);
    expect(await refused()).toMatch(
      /^out differs from what was built: Shop has 45 files, but its build left 46\..*--full.*\n$/,
    );
    rmSync(join(out(), ".precast/x-53686f70.json"));
    expect(await refused()).toMatch(/^Not every app in out has a finished build\./);
  });

  test("invalid targets, missing credentials and an empty --region are refused; no password is printed", async () => {
    for (const target of ["s3://me:hunter2@content/api", "file://me:hunter2@/srv"]) {
      const { code, stderr } = await place.call(`deploy ${target}`);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^A target must not contain a user name or password: /),
      ]);
      expect(stderr).not.toContain("hunter2");
    }
    for (const target of ["content", "ftp://x/y", "https://content.s3.amazonaws.com"]) {
      const { code, stderr } = await place.call(`deploy ${target}`);
      expect([code, stderr]).toEqual([
        1,
        `${target} is not a valid target: specify s3://bucket/prefix or file:///folder.\n`,
      ]);
    }
    expect((await place.call(["deploy", ""])).stderr).toMatch(/^An empty text is not a valid target: /);
    for (const target of ["s3://content/a/../b", "s3://content/.", "s3://content/.."]) {
      const { code, stderr } = await place.call(`deploy ${target}`, s3.env);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/ has '\.' or '\.\.' in its prefix, .*: specify a prefix without them\.\n$/),
      ]);
    }
    const { stderr } = await place.run("deploy s3://x/y");
    expect((await place.call("deploy s3://xyz/y --purge cloudfront")).stderr).toMatch(
      /^AWS_ACCESS_KEY_ID is missing .*\nAWS_SECRET_ACCESS_KEY is missing .*\n--cloudfront-distribution is missing .*\n$/,
    );
    expect(stderr).toMatch(
      /^s3:\/\/x\/y has no valid bucket name.*\nAWS_ACCESS_KEY_ID is missing.*\nAWS_SECRET_ACCESS_KEY is missing.*\n$/,
    );
    // As when a pipeline passes a variable that is not set.
    expect((await place.call("deploy s3://xyz/y --region=")).stderr).toMatch(
      /^--region must be a name such as eu-central-1.*\n$/,
    );
    for (const target of ["file://host/x", "file:deployed"])
      expect((await place.call(`deploy ${target}`)).stderr).toMatch(/with three slashes\.\n$/);
    // A URL ends its path at ? and #, so another folder would be deployed to, and files there deleted.
    for (const name of ["a?b", "a#b", "a\\b", "100%"]) {
      const { code, stdout, stderr } = await place.call(`deploy file://${place.folder}/deployed/${name}`);
      expect([code, stdout, stderr]).toEqual([1, "", expect.stringMatching(/ is not a valid target: .* # as %23 /)]);
    }
    expect(existsSync(join(place.folder, "deployed"))).toBe(false);
  });

  test.each(["--endpoint", "--purge", "--purge-endpoint", "--wait-visible"])(
    "%s is refused before any request when its address has a password, an impossible port or a broken host",
    async (option) => {
      for (const address of [
        "https://me:hunter2@127.0.0.1/{path}",
        "http://127.0.0.1:99999/{path}",
        "http://[::1/{path}",
      ]) {
        const { code, stdout, stderr } = await place.call(`deploy ${TARGET} ${option} ${address}`, s3.env);
        expect([code, stdout, s3.requests]).toEqual([1, "", []]);
        expect(stderr).toMatch(
          new RegExp(`^${option} must be .*an address .*without a user name or password in it\n$`),
        );
        expect(stderr).not.toContain("hunter2");
      }
    },
  );

  test.each([
    ["AWS_ACCESS_KEY_ID", ""],
    ["AWS_SECRET_ACCESS_KEY", ""],
    ["AWS_SESSION_TOKEN", ""],
    ["CLOUDFLARE_API_TOKEN", "--purge cloudflare --cloudflare-zone zone"],
    ["FASTLY_API_TOKEN", "--purge fastly --fastly-service service"],
    ["PRECAST_PURGE_HEADER", "--purge http://127.0.0.1:9{path}"],
  ])("%s is refused at once, and not printed, unless it is one line of printable ASCII", async (variable, line) => {
    for (const secret of ["AccessKey: hunter2\nmore", "AccessKey: hunter–2"]) {
      const { code, stdout, stderr } = await place.call(`deploy ${TARGET} ${line}`, { ...s3.env, [variable]: secret });
      expect([code, stdout, stderr]).toEqual([1, "", `${variable} must be one line of printable ASCII\n`]);
      expect(s3.requests).toEqual([]);
    }
  });

  test("a line break at the end of a secret, as read from a file, is ignored", async () => {
    const { accessKeyId, secretAccessKey } = s3.keys;
    const env = { AWS_ACCESS_KEY_ID: `${accessKeyId}\n`, AWS_SECRET_ACCESS_KEY: `${secretAccessKey}\r\n` };
    const { code, stderr } = await place.call(`deploy ${TARGET}`, { ...s3.env, ...env });
    expect([code, stderr]).toEqual([0, ""]);
  });

  test.each([
    [
      "manifest",
      '{"format":3,"generation":1,"app":"Shop","cache_control":"","cdn_cache_control":"","files":{}}',
      '{"format":2,"generation":1,"app":"Shop","cache_control":"","cdn_cache_control":"","files":{"a":["b",1]}}',
    ],
    [
      "journal",
      JSON.stringify({ ...WHOLE_JOURNAL, format: 3 }),
      JSON.stringify({ ...WHOLE_JOURNAL, writes: { a: ["b", 1] } }),
    ],
  ])(
    "a %s that is broken or of another format is refused, and --force uploads everything again",
    async (name, ...formats) => {
      await deploy();
      const manifest = s3.objects.get(MANIFEST);
      const stray = `api/${SHOP_FOLDER}/posts/page/9.json`;
      for (const text of ["", "{", ...formats]) {
        s3.objects.set(noteOf(`${name}.json`, SHOP), { ...(manifest as S3Object), bytes: Buffer.from(text) });
        s3.objects.set(stray, { bytes: Buffer.from("{}"), etag: '"x"', modified: new Date(), headers: {} });
        const { code, stderr } = await place.call(`deploy ${TARGET}`, s3.env);
        expect([code, stderr]).toEqual([
          1,
          expect.stringMatching(
            new RegExp(`^\\.precast/x-53686f70/${name}\\.json in s3://content/api is corrupt or .*--force.*\n$`),
          ),
        ]);
        expect(await deploy(`${TARGET} --force`)).toMatchObject({ written: SHOP_FILES, deleted: 1 });
        expect(differencesOf(filesOf(s3), out())).toEqual([]);
      }
    },
  );
});

test("a manifest or journal with a path that is no tree file is refused, and --force keeps that file", async () => {
  expect(readJournal(JSON.stringify(WHOLE_JOURNAL), "x-53686f70")).toMatchObject({ generation: 9, deploy: "one" });
  await deployInProcess(s3, out());
  const notes = new Map(s3.objects);
  const others = ["other/v1/index.json", "api/index.json", "api/s-other/readme.json"];
  const names = [
    "../other/v1/index.json",
    "s-x/v1/../../../other/v1/index.json",
    "index.json",
    "s-other/readme.json",
    ".precast/s-x/../../index.json",
    "s-other/v1/_schemas.json",
  ];
  const note = (text: string): S3Object => ({
    bytes: Buffer.from(text),
    etag: '"x"',
    modified: new Date(),
    headers: {},
  });
  for (const name of names) {
    const manifest = String(notes.get(MANIFEST)?.bytes);
    const mark = JSON.stringify(["0".repeat(64), 1]);
    for (const [key, text] of [
      ["manifest", manifest.replace('"files":{', `"files":{"${name}":${mark},`)],
      ["journal", JSON.stringify({ ...WHOLE_JOURNAL, removes: [name] })],
    ] as const) {
      s3.objects.clear();
      for (const [path, object] of notes) s3.objects.set(path, object);
      for (const other of others) s3.objects.set(other, note("{}"));
      s3.objects.set(noteOf(`${key}.json`, SHOP), note(text));
      await expect(deployInProcess(s3, out())).rejects.toThrow(
        new RegExp(`^\\.precast/x-53686f70/${key}\\.json in \\S+ is corrupt`),
      );
      await deployInProcess(s3, out(), { force: true });
      expect(others.filter((other) => !s3.objects.has(other))).toEqual([]);
    }
  }
});

test("a manifest or journal with an app that is no key is refused, as is a path that is none of the app", () => {
  const manifest = { format: 2, generation: 1, cache_control: "", cdn_cache_control: "", app: "x", files: {} };
  const read = (content: object) => readManifest(JSON.stringify({ ...manifest, ...content }), "s-x");
  expect(read({})).toMatchObject({ app: "x" });
  for (const app of [7, { length: 1 }, "", "a b", "\u001b[2J"]) {
    expect(read({ app })).toBeNull();
    expect(readJournal(JSON.stringify({ ...WHOLE_JOURNAL, app }), "s-x")).toBeNull();
  }
  const files = (path: string) => read({ files: { [path]: ["0".repeat(64), 1] } });
  expect(files("s-x/v1/a/sort/-b_1.json")?.files.size).toBe(1);
  for (const path of [
    "s-y/v1/a/sort/-b_1.json",
    "s-x/v1/..\\..\\..\\other.json",
    "s-x/v1/\u001b[2J.json",
    ".precast/s-x\\..\\..\\other.json",
  ])
    expect(files(path)).toBeNull();
});

test("a state without a part of what a build writes, or with an app or a type that is none, is not read", () => {
  const text = readFileSync(join(out(), ".precast", `${SHOP_FOLDER.replace(/\/.*/, "")}.json`), "utf8");
  const state = JSON.parse(text) as Record<string, unknown> & { app: { types: object[] } };
  const { format: _, ...read } = state;
  expect(readState(text)).toEqual(read);
  expect(JSON.stringify(readState(text)?.app)).toBe(JSON.stringify(state.app));
  for (const name of Object.keys(state)) expect(readState(JSON.stringify({ ...state, [name]: undefined }))).toBeNull();
  for (const app of [{ key: "a b" }, { types: null }, { types: [{ ...state.app.types[0], slug: "../x" }] }])
    expect(readState(JSON.stringify({ ...state, app: { ...state.app, ...app } }))).toBeNull();
});

test("the manifest lists all files in sorted order, with their sizes, and is the same for the same tree", async () => {
  await deploy();
  const text = String(s3.objects.get(MANIFEST)?.bytes);
  const { files, ...head } = JSON.parse(text) as { files: Record<string, [string, number]> };
  expect(head).toMatchObject({ format: 2, generation: 1, app: "Shop" });
  expect(Object.keys(files)).toEqual([...Object.keys(files)].sort());
  expect(Object.keys(files)).toHaveLength(SHOP_FILES);
  const page = readFileSync(join(out(), SHOP_FOLDER, "posts/page/1.json"));
  expect(files[`${SHOP_FOLDER}/posts/page/1.json`]?.[1]).toBe(page.length);
  const other = await startS3();
  await place.json(`deploy ${TARGET}`, other.env);
  expect(String(other.objects.get(MANIFEST)?.bytes)).toBe(text);
  await other.close();
});

/** An app with one list of this many pages. */
function pagesOf(count: number): Bundle {
  const { types, ...rest } = smallApp("paged", "ABCDEFGHI".slice(0, count).split(""));
  return { ...rest, types: types.map((type) => ({ ...type, per_page: 1 })) };
}

function edited(post: BundleEntry): BundleEntry {
  return { ...post, data: { ...post.data, title: "Edited" } };
}

function kindOf(key: string): string {
  const note = /^api\/\.precast\/[^/]+\/(manifest|journal|deploy)\./.exec(key)?.[1];
  if (note !== undefined) return note === "deploy" ? "lock" : note;
  if (key.startsWith("api/.precast/")) return "state";
  if (key.endsWith("/_schemas.json")) return "catalog";
  if (key.includes("/_schemas/")) return "schema";
  return key.includes("/entry/") ? "entry" : "list";
}
