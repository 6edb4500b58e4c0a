/** `build --state`: a runner that has no tree builds what has changed all the same, from the tree that was deployed. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openPlace, type Place, readTree, SHOP_FOLDER, shop, shopWithout, smallApp } from "../support/cli.ts";
import { differencesOf, filesOf } from "../support/deployed.ts";
import { type S3, type S3Object, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

const TARGET = "s3://content/api";

type Built = {
  readonly apps: readonly { key: string; mode: string; written: number }[];
  readonly restored: { readonly files: number; readonly bytes: number; readonly reason: string | null };
};

let store: Store;
let place: Place;
let s3: S3;
let first: Map<string, S3Object>;
const inPlace = (name: string) => join(place.folder, name);
const build = (line = "") => place.json<Built>(`build --out fresh --state ${TARGET} ${line}`, s3.env);
const modes = ({ apps }: Built) => apps.map(({ key, mode }) => `${key} ${mode}`);

/** Deployed was the shop and an app that goes; then a post goes, and an app comes. */
beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  s3 = await startS3();
  await place.take(shop());
  await place.take(smallApp("going", ["A"]));
  await place.json("build --out before");
  await place.json(`deploy ${TARGET} --out before`, s3.env);
  first = new Map(s3.objects);
  await place.take(shopWithout(1));
  await place.take(smallApp("coming", ["A"]));
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'going'");
  await place.json("build --out whole");
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

/** The tree is that of a full build, to the byte. */
function expectWhole(): void {
  expect(differencesOf(readTree(inPlace("fresh")), inPlace("whole"))).toEqual([]);
}

test("a build without a tree builds what has changed, and the deploy after it uploads that alone", async () => {
  const built = await build();
  expect(built.restored).toMatchObject({ files: 46 + 11 - 1, reason: null });
  expect(modes(built)).toEqual(["Shop incremental", "coming full", "going removal"]);
  expectWhole();
  s3.requests.length = 0;
  const { written, unchanged } = await place.json<{ written: number; unchanged: number }>(
    `deploy ${TARGET} --out fresh`,
    s3.env,
  );
  expect(unchanged).toBeGreaterThan(10);
  expect(
    s3.requests.filter(({ method, key }) => method === "PUT" && !key.includes("/.precast/")).length,
  ).toBeLessThanOrEqual(written);
  expect(differencesOf(filesOf(s3), inPlace("whole"))).toEqual([]);
  expect((await place.run("verify --out fresh")).code).toBe(0);
});

test("a folder is as good", async () => {
  const folder = pathToFileURL(inPlace("web")).href;
  await place.json(`deploy ${folder} --out before`);
  const built = await place.json<Built>(`build --out fresh --state ${folder}`);
  expect(modes(built)).toContain("Shop incremental");
  expectWhole();
});

describe("it says what it did", () => {
  const said = async (line = "") => {
    const { code, stdout, stderr } = await place.run(`build --out fresh --state ${TARGET} ${line}`, s3.env);
    expect([code, stderr]).toEqual([0, ""]);
    expectWhole();
    return stdout.split("\n")[0];
  };

  test("when it fetched the tree, and when the tree was there", async () => {
    expect(await said()).toMatch(/^s3:\/\/content\/api: fetched 56 files, [\d.]+ kB: the tree of the last deploy$/);
    s3.requests.length = 0;
    expect(await said()).toBe("s3://content/api: fetched nothing: the tree is here");
    expect(s3.requests).toEqual([]);
  });

  test("when nothing was deployed yet, or nothing that can be used", async () => {
    const fetchedNothing = async (why: string | RegExp) => {
      expect(await said()).toMatch(why instanceof RegExp ? why : new RegExp(`: fetched nothing: ${why}$`));
      rmSync(inPlace("fresh"), { recursive: true });
    };
    s3.objects.set("api/.precast/manifest.json", {
      ...(first.get("api/.precast/manifest.json") as S3Object),
      bytes: Buffer.from("{"),
    });
    await fetchedNothing("its manifest is broken or of another version of Precast");
    s3.objects.clear();
    await fetchedNothing("nothing is deployed there yet");
  });

  test("when --full asks for everything anew", async () => {
    expect(await said("--full")).toMatch(/fetched nothing: --full asks for it$/);
  });

  test.each(["changed", "missing"])("when a file of the store was %s meanwhile: it builds in full", async (how) => {
    const key = `api/${SHOP_FOLDER}/posts/page/1.json`;
    if (how === "missing") s3.objects.delete(key);
    else s3.objects.set(key, { ...(s3.objects.get(key) as S3Object), bytes: Buffer.from("{}") });
    expect(await said()).toMatch(
      /fetched nothing: x-53686f70\/v1\/posts\/page\/1\.json is not there as its manifest tells: a deploy goes on or has died$/,
    );
  });
});

test("another database's tree is not fetched", async () => {
  const other = await openStore("postgres");
  const elsewhere = openPlace({ DATABASE_URL: other.url ?? "" });
  await elsewhere.take(shop());
  const built = await elsewhere.json<Built>(`build --state ${TARGET}`, s3.env);
  expect(built.restored).toEqual({ files: 0, bytes: 0, reason: "it was built from another database" });
  expect(modes(built)).toEqual(["Shop full"]);
  await elsewhere.close();
  await other.close();
});

test("a store that denies or does not answer is told, and no tree is left behind", async () => {
  s3.trouble = ({ key }) => (key.endsWith("/page/1.json") ? { status: 403 } : undefined);
  const { code, stderr } = await place.run(`build --out fresh --state ${TARGET}`, s3.env);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^127\.0\.0\.1:\d+ denies access .*\n$/)]);
  expect(readdirSync(inPlace("fresh"))).toEqual([".precast"]);
  expect(readdirSync(inPlace("fresh/.precast"))).toEqual([]);
});

test("killed while it fetches, it is done by the next, which finds more in its way", async () => {
  for (const number of [4, 20, 40]) {
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

test("--dry-run goes without it", async () => {
  const { code, stderr } = await place.run(`build --dry-run --state ${TARGET}`, s3.env);
  expect([code, stderr]).toEqual([1, "--dry-run changes nothing, and --state fetches a tree: give one of them.\n"]);
});
