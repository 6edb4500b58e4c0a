/** `precast verify`: finds nothing right after a build, and lists every difference later, with exit code 2. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { idOf, openPlace, type Place, SHOP, SHOP_FOLDER, shop, shopWithout, smallApp } from "../support/cli.ts";
import { openStore, type Store } from "../support/site.ts";

const SHOP_SIZE = 46;
const UNPUBLISHED = "shows an unpublished entry";

type Report = {
  readonly apps: readonly {
    readonly key: string;
    readonly files: number;
    readonly computed: number;
    readonly differences: readonly { app: string; problem: string; file: string }[];
  }[];
};

let store: Store;
let place: Place;
const inOut = (path: string, folder = SHOP_FOLDER) => join(place.folder, "out", folder, path);

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
});
afterAll(async () => {
  await place.close();
  await store.close();
});
beforeEach(async () => {
  rmSync(join(place.folder, "out"), { recursive: true, force: true });
  await store.database.execute("DELETE FROM precast.apps");
  await place.import(shop());
  await place.build();
});

/** The problem and file of each difference that `--json` lists. The exit code must be 2. */
async function differences(line = ""): Promise<string[]> {
  const { code, stdout } = await place.call(`verify ${line} --json`);
  expect(code).toBe(2);
  const { apps } = JSON.parse(stdout) as Report;
  return apps.flatMap((app) => app.differences.map(({ problem, file }) => `${problem}: ${file}`));
}

test("verify finds no difference right after a build", async () => {
  const { code, stdout, stderr } = await place.run("verify");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain(`Shop: ${SHOP_SIZE} files`);
  expect(await place.json("verify")).toEqual({
    apps: [{ key: SHOP, files: SHOP_SIZE, computed: SHOP_SIZE, differences: [] }],
  });
});

test("verify and status say `1 file` of an app that has no type yet", async () => {
  await store.database.execute("INSERT INTO precast.apps (key) VALUES ('new')");
  await place.build();
  expect((await place.call("verify --app new")).stdout).toBe("new: 1 file, 1 computed live, 0 differences\n");
  expect((await place.call("status")).stdout).toMatch(/^new: built .*, 1 file, /m);
});

test("verify finds a file that was changed", async () => {
  const file = inOut("posts/sort/price.json");
  writeFileSync(file, readFileSync(file, "utf8").replace("Two", "Twö"));
  expect(await differences()).toEqual(["differs: posts/sort/price.json"]);
});

test("verify finds a file that lacks its last byte, and one that has an extra byte", async () => {
  const [short, long] = [inOut("posts/page/2.json"), inOut("_schemas.json")];
  writeFileSync(short, readFileSync(short, "utf8").slice(0, -1));
  writeFileSync(long, `${readFileSync(long, "utf8")}\n`);
  expect((await differences()).sort()).toEqual(["differs: _schemas.json", "differs: posts/page/2.json"]);
});

test("verify finds a byte that is not UTF-8 in place of a U+FFFD of the answer", async () => {
  const title = `jsonb_build_object('title', 'Tw' || chr(65533))`;
  await store.database.execute(`UPDATE precast.entries SET data = data || ${title} WHERE id = '${idOf(2)}'`);
  await place.build();
  const file = inOut(`posts/entry/${idOf(2)}.json`);
  const [before, after] = readFileSync(file, "utf8").split("\uFFFD", 2) as [string, string];
  writeFileSync(file, Buffer.concat([Buffer.from(before), Buffer.from([0xff]), Buffer.from(after)]));
  expect(await differences()).toEqual([`differs: posts/entry/${idOf(2)}.json`]);
});

test("verify finds a file that was deleted", async () => {
  rmSync(inOut("posts/filter/tags/s-a.json"));
  expect(await differences()).toEqual(["missing: posts/filter/tags/s-a.json"]);
});

test("verify finds files that were added", async () => {
  const added = ["posts/page/3.json", "posts/page/1.json.tmp", "notes.txt", "old/x.json"];
  for (const path of added) {
    mkdirSync(dirname(inOut(path)), { recursive: true });
    writeFileSync(inOut(path), "{}");
  }
  expect((await differences()).sort()).toEqual(added.map((path) => `surplus: ${path}`).sort());
});

test("verify lists every file of an app when a file is in place of the app's folder", async () => {
  for (const folder of [inOut(""), dirname(inOut(""))]) {
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "");
    expect(await differences(), folder).toHaveLength(SHOP_SIZE);
  }
});

test("verify lists every file as missing when there is no tree", async () => {
  const missing = await differences("--out nowhere");
  expect(missing).toHaveLength(SHOP_SIZE);
  expect(new Set(missing.map((line) => line.split(":")[0]))).toEqual(new Set(["missing"]));
});

test("verify finds every file that shows an entry unpublished since the build", async () => {
  const shows = [
    `posts/entry/${idOf(1)}.json`,
    "posts/page/1.json",
    "posts/filter/category/x-4e657773.json",
    "posts/filter/tags/s-a.json",
    "posts/filter/tags/x-c3a4.json",
    "posts/filter/price/s-2020.json",
    "posts/filter/active/s-true.json",
    "posts/filter/day/s-2026-01-20.json",
    `posts/filter/author_id/s-${idOf(1)}.json`,
    ...["price", "-price"].map((sort) => `posts/sort/${sort}.json`),
    ...["published_at", "-published_at", "created_at", "-created_at", "updated_at", "-updated_at"].map(
      (sort) => `posts/sort/${sort}.json`,
    ),
  ];
  await place.import(shopWithout(1));
  const found = await differences();
  expect(found.filter((line) => line.startsWith(UNPUBLISHED)).sort()).toEqual(
    shows.map((path) => `${UNPUBLISHED}: ${path}`).sort(),
  );
  expect(found).toContain(`surplus: posts/entry/${idOf(1)}.json`);
  expect(found).toContain("differs: posts/page/1.json");
  expect(found).toContain("surplus: posts/page/2.json");
  await place.build();
  expect((await place.call("verify")).code).toBe(0);
});

test("verify finds an unpublished entry in a file that no build wrote", async () => {
  writeFileSync(inOut("posts/page/7.json"), `{"data":[{"id":"${idOf(4)}","title":"Draft"}]}`);
  expect((await differences()).sort()).toEqual([`${UNPUBLISHED}: posts/page/7.json`, "surplus: posts/page/7.json"]);
});

test("verify lists copies of files under other names as surplus, not as showing unpublished entries", async () => {
  mkdirSync(inOut("copies/page"), { recursive: true });
  const copies = { "copy.json": "_schemas.json", "copies/page/1.json": "authors/page/1.json" };
  for (const [copy, file] of Object.entries(copies)) writeFileSync(inOut(copy), readFileSync(inOut(file)));
  expect((await differences()).sort()).toEqual(
    Object.keys(copies)
      .map((copy) => `surplus: ${copy}`)
      .sort(),
  );
});

test("verify finds a tree without app and state, deploy refuses it, and the next build removes it", async () => {
  const stranger = join(place.folder, "out", "s-stranger", "v1");
  mkdirSync(stranger, { recursive: true });
  writeFileSync(join(stranger, "_schemas.json"), '{"data":[]}');
  expect(await differences()).toEqual(["surplus: _schemas.json"]);
  const deployed = await place.call(`deploy file://${join(place.folder, "deployed")}`);
  expect([deployed.code, deployed.stderr]).toEqual([
    1,
    expect.stringContaining("out/s-stranger does not belong to any finished build."),
  ]);
  await place.build();
  expect(existsSync(join(place.folder, "out", "s-stranger"))).toBe(false);
  expect((await place.run("verify")).code).toBe(0);
});

test("verify finds the files of a type unpublished since the build", async () => {
  const types = shop().types.map((type) => (type.slug === "authors" ? { ...type, published: false } : type));
  await place.import({ ...shop(), types });
  const found = await differences();
  expect(found).toContain(`${UNPUBLISHED}: authors/entry/${idOf(1)}.json`);
  expect(found).toContain("surplus: _schemas/authors.json");
  expect(found).toContain("differs: _schemas.json");
});

test("verify finds the files of an app that was deleted", async () => {
  await store.database.execute("DELETE FROM precast.apps");
  expect(await differences()).toContain(`surplus: posts/entry/${idOf(1)}.json`);
});

test("verify prints each difference and what to run, also with --quiet", async () => {
  writeFileSync(inOut("posts/page/1.json"), "{}");
  rmSync(inOut("notes/page/1.json"));
  const { code, stdout } = await place.call("verify");
  expect(code).toBe(2);
  expect(stdout).toMatch(/^Shop posts\/page\/1\.json: differs$/m);
  expect(stdout).toMatch(/^Shop notes\/page\/1\.json: missing$/m);
  expect(stdout).toContain("2 differences");
  expect(stdout).toContain("precast build");
  expect((await place.run("verify --quiet")).stdout).toBe(stdout);
});

test("verify lists the first 100 differences and counts the others", async () => {
  await place.import(
    smallApp(
      "many",
      Array.from({ length: 100 }, (_, index) => `Name ${index}`),
    ),
  );
  await place.build();
  rmSync(inOut("", "s-many"), { recursive: true });
  const { code, stdout } = await place.call("verify --app many");
  const [, count] = /, (\d+) differences$/m.exec(stdout) ?? [];
  expect(code).toBe(2);
  expect(stdout.match(/: missing$/gm)).toHaveLength(100);
  expect(stdout).toMatch(new RegExp(`: missing\n… and ${Number(count) - 100} more\nmany: `));
});

test("verify of a database without apps fails and says what to do", async () => {
  await store.database.execute("DELETE FROM precast.apps");
  const { code, stderr } = await place.call("verify --out nowhere");
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^No app in the database: import a bundle first .*\n$/)]);
});

test("verify distinguishes a tree that is behind or not built from one that is wrong", async () => {
  await place.import(shopWithout(1));
  const behind = await place.run("verify");
  expect([behind.code, behind.stdout]).toEqual([2, expect.stringMatching(/has changed since .* `precast build`, and/)]);
  const { stdout } = await place.call("verify --out nowhere");
  expect(stdout).toMatch(/^Shop: .*: its tree is not built\nRun `precast build`\.\n$/);
  await place.build();
  writeFileSync(inOut("posts/page/1.json"), "{}");
  expect((await place.call("verify")).stdout).toMatch(
    /^Run `precast build --full` .* triggers were off: run `SELECT precast\.keep_anew\(\)`/m,
  );
});

test("verify recommends doctor when the collation version has changed, as live answers may be the wrong ones", async () => {
  await store.database.execute("UPDATE pg_collation SET collversion = '1.1' WHERE collname = 'und-x-icu'");
  expect((await place.call("verify")).code).toBe(0);
  writeFileSync(inOut("posts/page/1.json"), "{}");
  const { code, stdout } = await place.call("verify");
  expect([code, stdout.split("\n").at(-2)]).toEqual([
    2,
    expect.stringMatching(/^A collation version has changed .*`precast doctor`/),
  ]);
  await store.database.execute('ALTER COLLATION pg_catalog."und-x-icu" REFRESH VERSION');
});

test("verify --sample computes that many answers, or all, and still finds every missing and surplus file", async () => {
  for (const sample of [1, 5, SHOP_SIZE - 1, SHOP_SIZE, SHOP_SIZE + 1]) {
    const { apps } = await place.json<Report>(`verify --sample ${sample}`);
    expect(apps).toMatchObject([{ files: SHOP_SIZE, computed: Math.min(sample, SHOP_SIZE), differences: [] }]);
  }
  writeFileSync(inOut("posts/page/3.json"), "{}");
  rmSync(inOut("posts/page/1.json"));
  rmSync(inOut("_schemas/notes.json"));
  expect((await differences("--sample 5")).sort()).toEqual([
    "missing: _schemas/notes.json",
    "missing: posts/page/1.json",
    "surplus: posts/page/3.json",
  ]);
});

test("verify --app checks that app only, and lists the existing apps when its key is unknown", async () => {
  await place.import(smallApp("other", ["A"]));
  await place.build();
  writeFileSync(inOut("authors/page/1.json", "s-other/v1"), "{}");
  expect((await place.call(`verify --app ${SHOP}`)).code).toBe(0);
  expect(await differences("--app other")).toEqual(["differs: authors/page/1.json"]);
  expect(await differences()).toEqual(["differs: authors/page/1.json"]);
  const { code, stderr } = await place.run("verify --app nope");
  expect(code).toBe(1);
  expect(stderr).toMatch(/^.*\bnope\b.*\bShop\b.*\bother\b.*\n$/);
});
