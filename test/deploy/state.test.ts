/** `build --state`: without a local tree, a build continues from the deployed one and is still incremental. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  idOf,
  MAIN,
  openPlace,
  type Place,
  readTree,
  SHOP_FOLDER,
  shop,
  shopWithout,
  smallApp,
} from "../support/cli.ts";
import { differencesOf, filesOf, noteOf } from "../support/deployed.ts";
import { type S3, type S3Object, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

const TARGET = "s3://content/api";
const KILLER = pathToFileURL(join(import.meta.dirname, "../support/kill-at.mjs")).href;

type Built = {
  readonly apps: readonly { key: string; mode: string; reason: string; written: number }[];
  readonly restored: { readonly files: number; readonly bytes: number; readonly reason: string | null };
};

let store: Store;
let place: Place;
let s3: S3;
let first: Map<string, S3Object>;
const inPlace = (name: string) => join(place.folder, name);
const build = (line = "") => place.json<Built>(`build --out fresh --state ${TARGET} ${line}`, s3.env);
const modes = ({ apps }: Built) => apps.map(({ key, mode }) => `${key} ${mode}`);

/** Deployed are the shop and the app `going`. Then a post is unpublished, `coming` is added and `going` deleted. */
beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  s3 = await startS3();
  await place.import(shop());
  await place.import(smallApp("going", ["A"]));
  await place.build("before");
  await place.json(`deploy ${TARGET} --out before`, s3.env);
  first = new Map(s3.objects);
  await place.import(shopWithout(1));
  await place.import(smallApp("coming", ["A"]));
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'going'");
  await place.build("whole");
});
afterAll(async () => {
  await s3.close();
  await place.close();
  await store.close();
});
beforeEach(() => {
  rmSync(inPlace("fresh"), { recursive: true, force: true });
  s3.objects.clear();
  for (const [key, object] of first) s3.objects.set(key, object);
  s3.trouble = () => undefined;
  s3.requests.length = 0;
});

/** Local files, and those that `elsewhere.json` lists in the store, together equal the tree of a full build. */
function expectWhole(deployed: ReadonlyMap<string, S3Object> = first): void {
  const files = readTree(inPlace("fresh"));
  for (const path of remote()) if (!files.has(path)) files.set(path, String(deployed.get(`api/${path}`)?.bytes));
  expect(differencesOf(files, inPlace("whole"))).toEqual([]);
}

function remote(): string[] {
  const list = inPlace("fresh/.precast/elsewhere.json");
  if (!existsSync(list)) return [];
  return (JSON.parse(readFileSync(list, "utf8")) as [string, unknown][]).map(([path]) => path);
}

test("a build without a local tree fetches part of the deployed one, and a deploy updates the store", async () => {
  const built = await build();
  expect(built.restored.reason).toBe(null);
  expect(built.restored.files).toBeGreaterThan(10);
  expect(built.restored.files).toBeLessThan(46);
  expect(modes(built)).toEqual(["Shop incremental", "coming full", "going removal"]);
  expectWhole();
  expect(remote()).toContain(`${SHOP_FOLDER}/authors/entry/${idOf(1)}.json`);
  expect((await place.run("verify --out fresh")).code).toBe(0);
  const { unchanged } = await place.json<{ unchanged: number }>(`deploy ${TARGET} --out fresh`, s3.env);
  expect(unchanged).toBeGreaterThan(10);
  expect(differencesOf(filesOf(s3), inPlace("whole"))).toEqual([]);
  expect(await place.json(`deploy ${TARGET} --out whole --dry-run`, s3.env)).toMatchObject({ written: 2, deleted: 0 });
});

test("a build without changes fetches few files, and the deploy after it changes nothing", async () => {
  await place.json(`deploy ${TARGET} --out whole`, s3.env);
  const built = await build();
  expect(built.restored.files).toBeLessThan(10);
  expect(await place.json(`deploy ${TARGET} --out fresh`, s3.env)).toMatchObject({
    written: 0,
    deleted: 0,
    generation: 2,
  });
});

test("--state also continues from a deployed folder", async () => {
  const folder = pathToFileURL(inPlace("web")).href;
  await place.json(`deploy ${folder} --out before`);
  const built = await place.json<Built>(`build --out fresh --state ${folder}`);
  expect(modes(built)).toContain("Shop incremental");
  expectWhole();
});

describe("a partial tree, with the rest only in the store", () => {
  beforeEach(async () => {
    await build();
  });

  test("is not served: the server answers live", async () => {
    const server = await place.serve("--out fresh");
    await server.printed(
      /^Some files of the tree in fresh exist only where it was deployed: .*`precast build --full`/m,
    );
    const { status, headers } = await server.get("/api/v1/authors", { appKey: "Shop" });
    expect([status, headers["cache-status"]]).toEqual([200, "precast; fwd=miss"]);
    await server.stop();
  });

  test("is verified, the files that are only in the store by their SHA-256", async () => {
    const list = inPlace("fresh/.precast/elsewhere.json");
    const path = `${SHOP_FOLDER}/authors/entry/${idOf(1)}.json`;
    const marks = new Map(JSON.parse(readFileSync(list, "utf8")) as [string, { sha256: string; size: number }][]);
    marks.set(`${SHOP_FOLDER}/authors/page/7.json`, marks.get(path) as { sha256: string; size: number });
    marks.set(path, { sha256: "0".repeat(64), size: 1 });
    writeFileSync(list, JSON.stringify([...marks]));
    const { code, stdout } = await place.call("verify --out fresh");
    expect(code).toBe(2);
    expect(stdout).toMatch(new RegExp(`^Shop authors/entry/${idOf(1)}\\.json: differs$`, "m"));
    expect(stdout).toMatch(/^Shop authors\/page\/7\.json: surplus$/m);
    expect(stdout).toContain("2 differences");
  });

  test("is built in full without --state, and is complete then", async () => {
    const { apps } = await place.json<Built>("build --out fresh");
    expect(apps[0]).toMatchObject({
      key: "Shop",
      mode: "full",
      reason: "some of its files exist only at the deploy target",
    });
    expect(remote()).toEqual([]);
    expect(differencesOf(readTree(inPlace("fresh")), inPlace("whole"))).toEqual([]);
  });

  test("is built incrementally by the next build with --state", async () => {
    expect(modes(await build())).toContain("Shop incremental");
    expectWhole();
  });

  test.each(["", "--dry-run"])("cannot be deployed to a store that lacks the rest: deploy %s", async (line) => {
    const { code, stderr } = await place.call(`deploy s3://content/other --out fresh ${line}`, s3.env);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^\d+ files that s3:\/\/content\/other needs are not in fresh, .*\. Nothing was changed\. Run `precast build --full`, then deploy\.\n$/,
      ),
    ]);
    expect([...s3.objects.keys()].filter((key) => key.startsWith("other/"))).toEqual([]);
  });

  test.each(["--force", "--force --dry-run"])("cannot be uploaded in full: deploy %s", async (line) => {
    const { code, stdout, stderr } = await place.call(`deploy ${TARGET} --out fresh ${line}`, s3.env);
    expect([code, stdout, stderr]).toEqual([
      1,
      "",
      expect.stringMatching(/ needs are not in fresh, .*`precast build --full`/),
    ]);
  });
});

describe("build --state says", () => {
  const said = async (line = "") => {
    const { code, stdout, stderr } = await place.run(`build --out fresh --state ${TARGET} ${line}`, s3.env);
    expect([code, stderr]).toEqual([0, ""]);
    expectWhole();
    return stdout.split("\n")[0];
  };

  test("how much it fetched, and that it fetched nothing when there was a local tree", async () => {
    expect(await said()).toMatch(
      /^s3:\/\/content\/api: continued from the deployed tree: fetched \d+ of its 56 files, [\d.]+ kB$/,
    );
    await place.build("fresh");
    s3.requests.length = 0;
    expect(await said()).toBe("s3://content/api: not used: the tree already exists locally");
    expect(s3.requests).toEqual([]);
  });

  test("why it fetched nothing: a changed state, a broken manifest, or nothing deployed yet", async () => {
    const nothing = async (why: string) => {
      expect(await said()).toMatch(new RegExp(`: not used: ${why}$`));
      rmSync(inPlace("fresh"), { recursive: true });
    };
    const state = "api/.precast/x-53686f70.json";
    s3.objects.set(state, { ...(first.get(state) as S3Object), bytes: Buffer.from("{}") });
    const changed = "\\.precast/x-53686f70\\.json was changed or removed after it was built";
    const because =
      "a deploy is running or was interrupted, or somebody changed the store: `precast deploy --force` repairs that";
    await nothing(`${changed}: ${because}`);
    s3.objects.delete(state);
    await nothing(`${changed}: ${because}`);
    const key = noteOf("manifest.json", "Shop");
    s3.objects.set(key, { ...(first.get(key) as S3Object), bytes: Buffer.from("{") });
    await nothing(
      "\\.precast/x-53686f70/manifest\\.json in \\S+ is corrupt or was written by another version of Precast\\. .*",
    );
    s3.objects.clear();
    await nothing("nothing is deployed there yet");
  });

  test("that it fetched nothing because of --full", async () => {
    expect(await said("--full")).toMatch(/not used: --full builds everything$/);
  });
});

test.each(["changed", "missing"])("an app is built in full when a file of the deployed tree is %s", async (how) => {
  for (const path of ["authors/page/1.json", "posts/sort/price.json"]) {
    const key = `api/${SHOP_FOLDER}/${path}`;
    if (how === "missing") s3.objects.delete(key);
    else s3.objects.set(key, { ...(s3.objects.get(key) as S3Object), bytes: Buffer.from("{}") });
    const { apps } = await build();
    expect(apps[0]).toMatchObject({
      key: "Shop",
      mode: "full",
      reason: expect.stringMatching(/was changed or removed after it was built$|exist only at the deploy target$/),
    });
    expect(differencesOf(readTree(inPlace("fresh")), inPlace("whole"))).toEqual([]);
    rmSync(inPlace("fresh"), { recursive: true });
    s3.objects.set(key, first.get(key) as S3Object);
  }
});

test("a tree that was built from another database is not fetched", async () => {
  const other = await openStore("postgres");
  const remote = openPlace({ DATABASE_URL: other.url ?? "" });
  await remote.import(shop());
  const built = await remote.json<Built>(`build --state ${TARGET}`, s3.env);
  expect(built.restored).toEqual({ files: 0, bytes: 0, reason: "it was built from another database" });
  expect(modes(built)).toEqual(["Shop full"]);
  await remote.close();
  await other.close();
});

test("a build fails when the store denies access, and the next one is incremental and complete", async () => {
  s3.trouble = ({ key }) => (key.endsWith("/sort/price.json") ? { status: 403 } : undefined);
  const { code, stderr } = await place.call(`build --out fresh --state ${TARGET}`, s3.env);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^127\.0\.0\.1:\d+ denies access .*\n$/)]);
  s3.trouble = () => undefined;
  expect(modes(await build())).toContain("Shop incremental");
  expectWhole();
});

test("a build killed while it fetches files is completed by the next one", async () => {
  for (const number of [4, 14]) {
    const { pid, end } = place.start(`build --out fresh --state ${TARGET}`, s3.env);
    s3.requests.length = 0;
    s3.trouble = (request) => {
      if (request.number === number) process.kill(pid, "SIGKILL");
      return undefined;
    };
    expect((await end()).code).toBe(null);
    s3.trouble = () => undefined;
    expect(modes(await build())).toContain("Shop incremental");
    expectWhole();
    rmSync(inPlace("fresh"), { recursive: true });
  }
});

test("after a build was killed while moving files, the next continues from what is deployed by then", async () => {
  const run = async (env: Readonly<Record<string, string>>) => {
    const line = ["build", "--out", "fresh", "--state", TARGET];
    const own = { ...s3.env, ...env, NODE_OPTIONS: `--import=${KILLER}` };
    return (await place.spawn(process.execPath, [MAIN, ...line], own)).code;
  };
  const log = inPlace("calls");
  expect(await run({ PRECAST_TEST_COUNT: log })).toBe(0);
  const calls = readFileSync(log, "utf8").split("\n");
  const own = calls.filter((call) => call.startsWith("main "));
  const committed = own.findIndex((call) => call.endsWith("/.precast/ready")) + 1;
  expect(committed).toBeGreaterThan(0);
  rmSync(inPlace("fresh"), { recursive: true });
  expect(await run({ PRECAST_TEST_KILL: `main:${committed + 2}` })).toBe(null);
  expect(existsSync(inPlace("fresh/.precast/ready"))).toBe(true);

  // Another runner builds and deploys an edit before the next build.
  await store.database.execute(
    `UPDATE precast.entries SET data = data || '{"title": "edited"}' WHERE id = '${idOf(2)}' AND data ? 'title'`,
  );
  await place.build("whole");
  await place.json(`deploy ${TARGET} --out whole`, s3.env);
  expect(modes(await build())).toContain("Shop incremental");
  expectWhole(s3.objects);
  await place.json(`deploy ${TARGET} --out fresh`, s3.env);
  expect(differencesOf(filesOf(s3), inPlace("whole"))).toEqual([]);
});

test("--dry-run together with --state is refused", async () => {
  const { code, stderr } = await place.call(`build --dry-run --state ${TARGET}`, s3.env);
  expect([code, stderr]).toEqual([
    1,
    "--dry-run changes nothing, but --state fetches a tree: specify only one of them.\n",
  ]);
});
