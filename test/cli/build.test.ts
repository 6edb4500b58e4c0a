/** `precast build`: which files it writes, what is in them, what it leaves alone and what it refuses. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  idOf,
  LONG,
  MAIN,
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
import { arbitraryBundles } from "../support/content.ts";
import type { Bundle } from "../support/model-bundle.ts";
import { buildSite, type Engine, loadBundles, openStore, type Store } from "../support/site.ts";

const TIMESTAMPS = ["published_at", "-published_at", "created_at", "-created_at", "updated_at", "-updated_at"];
const SHA_256_OF_LONG = "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9";

/** The files that section 8 of the contract demands for the shop, worked out by hand. */
const SHOP_FILES = [
  "_schemas.json",
  "_schemas/posts.json",
  "_schemas/authors.json",
  "_schemas/notes.json",
  "posts/page/1.json",
  "posts/page/2.json",
  `posts/entry/${idOf(1)}.json`,
  `posts/entry/${idOf(2)}.json`,
  `posts/entry/${idOf(3)}.json`,
  "posts/filter/category/x-4e657773.json",
  "posts/filter/category/x-4d61746368205265706f7274.json",
  `posts/filter/category/h-${SHA_256_OF_LONG}.json`,
  "posts/filter/tags/s-a.json",
  "posts/filter/tags/x-c3a4.json",
  "posts/filter/price/s-2020.json",
  "posts/filter/price/x-302e35.json",
  "posts/filter/active/s-true.json",
  "posts/filter/active/s-false.json",
  "posts/filter/day/s-2026-01-20.json",
  `posts/filter/author_id/s-${idOf(1)}.json`,
  `posts/filter/author_id/s-${idOf(2)}.json`,
  ...["price", "-price", ...TIMESTAMPS].map((sort) => `posts/sort/${sort}.json`),
  "authors/page/1.json",
  `authors/entry/${idOf(1)}.json`,
  ...["name", "-name", ...TIMESTAMPS].map((sort) => `authors/sort/${sort}.json`),
  "notes/page/1.json",
  ...TIMESTAMPS.map((sort) => `notes/sort/${sort}.json`),
];

const stamps = (day: number) => {
  const stamp = `2026-01-0${day}T12:00:00.000+00:00`;
  return `"published_at":"${stamp}","created_at":"${stamp}","updated_at":"${stamp}"`;
};
const COVER = `"cover":"c 1.png","cover_url":"http://localhost:3000/Shop/cms/media/c%201.png"`;
const ONE =
  `"category":"News","tags":["a","ä"],"price":2020,"active":true,"day":"2026-01-20",` +
  `"author_id":"${idOf(1)}",${COVER},${stamps(3)}}`;
const ONE_LISTED = `{"id":"${idOf(1)}","title":"One",${ONE}`;
const TWO_LISTED =
  `{"id":"${idOf(2)}","title":"Two","category":"Match Report","tags":[],"price":0.5,"active":false,"day":null,` +
  `"author_id":"${idOf(2)}","cover":null,"cover_url":null,${stamps(2)}}`;
const THREE_LISTED =
  `{"id":"${idOf(3)}","title":"Three","category":"${LONG}","tags":null,"price":null,"active":null,"day":null,` +
  `"author_id":null,"cover":null,"cover_url":null,${stamps(1)}}`;

const meta = (page: number, total: number, last: number) =>
  `"meta":{"current_page":${page},"per_page":2,"total":${total},"last_page":${last}}`;
const NAME = `{"name":"name","type":"text","required":true,"label":"name","searchable":true}`;
const AUTHORS_LISTS = `"filterable_fields":[],"sortable_fields":["name"],"searchable_fields":["name"]`;
const NO_LISTS = `"filterable_fields":[],"sortable_fields":[],"searchable_fields":[]`;
const POSTS_LISTS =
  `"filterable_fields":["category","tags","price","active","day","author_id"],` +
  `"sortable_fields":["price"],"searchable_fields":["title"]`;

const BYTES: [string, string][] = [
  [`posts/entry/${idOf(1)}.json`, `{"data":{"id":"${idOf(1)}","title":"One","body":"<p>Hello</p>",${ONE}}`],
  ["posts/page/1.json", `{"data":[${ONE_LISTED},${TWO_LISTED}],${meta(1, 3, 2)}}`],
  ["posts/page/2.json", `{"data":[${THREE_LISTED}],${meta(2, 3, 2)}}`],
  ["posts/filter/tags/x-c3a4.json", `{"data":[${ONE_LISTED}],${meta(1, 1, 1)}}`],
  ["posts/sort/price.json", `{"data":[${TWO_LISTED},${ONE_LISTED}],${meta(1, 3, 2)}}`],
  ["notes/page/1.json", `{"data":[],"meta":{"current_page":1,"per_page":20,"total":0,"last_page":1}}`],
  [
    "_schemas/authors.json",
    `{"data":{"slug":"authors","name":"authors","description":"","icon":"","fields":[${NAME}],${AUTHORS_LISTS}}}`,
  ],
  [
    "_schemas.json",
    `{"data":[{"slug":"posts","name":"posts","description":"","icon":"","entry_count":3,` +
      `"fields":["title","body","category","tags","price","active","day","author_id","cover"],${POSTS_LISTS}},` +
      `{"slug":"authors","name":"authors","description":"","icon":"","entry_count":1,"fields":["name"],${AUTHORS_LISTS}},` +
      `{"slug":"notes","name":"notes","description":"","icon":"","entry_count":0,"fields":["title"],${NO_LISTS}}]}`,
  ],
];

type Built = {
  readonly apps: { key: string; written: number; unchanged: number; deleted: number; bytes: number; seconds: number }[];
  readonly seconds: number;
};

const paths = (tree: ReadonlyMap<string, string>) => [...tree.keys()];
const inShop = (files: readonly string[]) => files.map((file) => `${SHOP_FOLDER}/${file}`).sort();
const differing = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>) =>
  paths(after).filter((path) => before.get(path) !== after.get(path));

describe("a build of a small shop", () => {
  let store: Store;
  let place: Place;
  const out = () => join(place.folder, "out");
  const tree = () => readTree(out());
  const inOut = (path: string) => join(out(), SHOP_FOLDER, path);
  const modified = () =>
    new Map(paths(tree()).map((path) => [path, statSync(join(out(), path), { bigint: true }).mtimeNs]));

  beforeAll(async () => {
    store = await openStore("postgres");
    place = openPlace({ DATABASE_URL: store.url ?? "" });
  });
  afterAll(async () => {
    await place.close();
    await store.close();
  });
  beforeEach(async () => {
    rmSync(out(), { recursive: true, force: true });
    await store.database.execute("DELETE FROM precast.apps");
    await place.import(shop());
  });

  test("writes exactly the files of the contract", async () => {
    expect((await place.run("build")).code).toBe(0);
    expect(paths(tree())).toEqual(inShop(SHOP_FILES));
  });

  test("writes files whose bytes are the expected responses", async () => {
    await place.call("build");
    for (const [path, bytes] of BYTES) expect([path, readFileSync(inOut(path), "utf8")]).toEqual([path, bytes]);
  });

  test("writes no draft and nothing of an unpublished type into any file", async () => {
    await place.call("build");
    for (const [path, bytes] of tree()) expect(path + bytes).not.toMatch(/draft|hidden|nobody|secrets/i);
  });

  test("writes nothing when nothing has changed, and keeps the modification times of files", async () => {
    await place.call("build");
    const before = modified();
    const { apps } = await place.json<Built>("build");
    expect(apps).toMatchObject([{ key: SHOP, written: 0, unchanged: SHOP_FILES.length, deleted: 0 }]);
    expect(modified()).toEqual(before);
  });

  test("rewrites only the files that differ after an edit", async () => {
    await place.call("build");
    const [before, times] = [tree(), modified()];
    await place.import(
      shopWith((posts) =>
        posts.map((post) => (post.id === idOf(3) ? { ...post, data: { ...post.data, title: "3" } } : post)),
      ),
    );
    const { apps } = await place.json<Built>("build");
    const changed = inShop([
      `posts/entry/${idOf(3)}.json`,
      "posts/page/2.json",
      `posts/filter/category/h-${SHA_256_OF_LONG}.json`,
    ]);
    expect(apps).toMatchObject([{ written: 3, unchanged: SHOP_FILES.length - 3, deleted: 0 }]);
    expect(differing(before, tree())).toEqual(changed);
    expect(paths(tree()).filter((path) => modified().get(path) !== times.get(path))).toEqual(changed);
  });

  test("deletes the file of an unpublished entry, and the list files that have no entry left", async () => {
    await place.call("build");
    const before = tree();
    await place.import(shopWithout(1));
    const { apps } = await place.json<Built>("build");
    const gone = [
      `posts/entry/${idOf(1)}.json`,
      "posts/page/2.json",
      "posts/filter/category/x-4e657773.json",
      "posts/filter/tags/s-a.json",
      "posts/filter/tags/x-c3a4.json",
      "posts/filter/price/s-2020.json",
      "posts/filter/active/s-true.json",
      "posts/filter/day/s-2026-01-20.json",
      `posts/filter/author_id/s-${idOf(1)}.json`,
    ];
    expect(apps).toMatchObject([{ deleted: gone.length }]);
    expect(paths(before).filter((path) => !tree().has(path))).toEqual(inShop(gone));
    for (const [path, bytes] of tree()) expect([path, bytes.includes('"One"')]).toEqual([path, false]);
  });

  test("deletes the files of a content type that was removed", async () => {
    await place.call("build");
    const { authors: _, ...entries } = shop().entries;
    const types = shop().types.filter(({ slug }) => slug !== "authors");
    await place.import({ ...shop(), types, entries });
    await place.call("build");
    const left = SHOP_FILES.filter((path) => !path.includes("authors"));
    expect(paths(tree())).toEqual(inShop(left));
    expect(readdirSync(inOut(""))).not.toContain("authors");
  });

  test("deletes the files of an app that was removed, and leaves those of other apps unchanged", async () => {
    await place.import(smallApp("going", ["A"]));
    await place.call("build");
    expect(paths(tree()).some((path) => path.startsWith("s-going/"))).toBe(true);
    await store.database.execute("DELETE FROM precast.apps WHERE key = 'going'");
    const { apps } = await place.json<Built>("build");
    expect(apps).toMatchObject([
      { key: SHOP, written: 0, deleted: 0 },
      { key: "going", written: 0, unchanged: 0, deleted: 10 },
    ]);
    expect(readdirSync(out()).sort()).toEqual([".precast", "x-53686f70"]);
    expect(readFileSync(join(out(), ".precast", "x-53686f70.json"), "utf8")).toContain(SHOP);
    expect(readdirSync(join(out(), ".precast"))).toEqual(["changes.json", "history.json", "x-53686f70.json"]);
  });

  test("builds only the apps that --app names", async () => {
    for (const key of ["a", "b", "c"]) await place.import(smallApp(key, [key]));
    await place.call("build --app a");
    expect(readdirSync(out()).sort()).toEqual([".precast", "s-a"]);
    const { apps } = await place.json<Built>("build --app b c");
    expect(apps.map(({ key }) => key)).toEqual(["b", "c"]);
    expect(readdirSync(out()).sort()).toEqual([".precast", "s-a", "s-b", "s-c"]);
  });

  test("with --app, keeps the files of another app that was removed from the database", async () => {
    await place.import(smallApp("other", ["A"]));
    await place.call("build");
    const before = tree();
    await place.import(shopWithout(1));
    await store.database.execute("DELETE FROM precast.apps WHERE key = 'other'");
    await place.call(`build --app ${SHOP}`);
    const others = (files: Map<string, string>) => [...files].filter(([path]) => path.startsWith("s-other/"));
    expect(others(tree())).toEqual(others(before));
    expect(others(before)).not.toEqual([]);
  });

  test("with --app, deletes the files of that app if it was removed from the database", async () => {
    await place.import(smallApp("other", ["A"]));
    await place.call("build");
    const before = tree();
    await store.database.execute("DELETE FROM precast.apps WHERE key = 'other'");
    const empty = await openStore("postgres");
    await loadBundles(empty, [smallApp("third", ["A"])]);
    const refused = await place.call("build --app other", { DATABASE_URL: empty.url ?? "" });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^No app has the key other\./) });
    await empty.close();
    expect(tree()).toEqual(before);
    expect((await place.json<Built>("build --app other")).apps).toMatchObject([{ key: "other", mode: "removal" }]);
    expect(paths(tree())).toEqual(paths(before).filter((path) => !path.startsWith("s-other/")));
    expect((await place.call("build --app other")).code).toBe(1);
  });

  test("fails, lists the existing apps and builds nothing when --app names an unknown app", async () => {
    await place.import(smallApp("other", ["A"]));
    const { code, stdout, stderr } = await place.call(`build --app ${SHOP} nope`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^.*\bnope\b.*\bShop\b.*\bother\b.*\n$/);
    expect(paths(tree())).toEqual([]);
  });

  test("with --dry-run, lists what the next build writes and deletes, and changes nothing", async () => {
    await place.call("build");
    await place.import(shopWithout(1));
    const [before, times] = [tree(), modified()];
    const { code, stdout } = await place.run("build --dry-run");
    expect(code).toBe(0);
    expect(stdout).toContain(`write ${SHOP} posts/page/1.json\n`);
    expect(stdout).toContain(`write ${SHOP} _schemas.json\n`);
    expect(stdout).toContain(`delete ${SHOP} posts/entry/${idOf(1)}.json\n`);
    expect(stdout).not.toContain("authors/page/1.json");
    expect(tree()).toEqual(before);
    expect(modified()).toEqual(times);
    const promised = await place.json<Built>("build --dry-run");
    const done = await place.json<Built>("build");
    const counts = done.apps.map(({ seconds: _, ...rest }) => rest);
    expect(promised.apps).toMatchObject(counts);
    expect(counts).toMatchObject([{ key: SHOP, deleted: 9 }]);
  });

  test("with --dry-run, says where the list begins anew because of a file that was changed after it was built", async () => {
    const page = `${SHOP_FOLDER}/authors/page/1.json`;
    await place.call("build");
    const { types, app, entries } = shopWithout(1);
    const authors = entries.authors?.map((author) => ({ ...author, data: { name: "Grace" } })) ?? [];
    await place.import({ types, app, entries: { ...entries, authors } });
    writeFileSync(join(out(), page), "{}");
    const { stdout } = await place.call("build --dry-run");
    const reason = `${page} was changed or removed after it was built`;
    const [before = "", after = "", ...others] = stdout.split(
      `${reason}: everything is built, and the list begins anew.\n`,
    );
    expect(others).toEqual([]);
    const gone = `delete ${SHOP} posts/entry/${idOf(1)}.json\n`;
    expect([before.split(gone).length, after.split(gone).length]).toEqual([2, 2]);
    expect(after).toContain(`(full: ${reason})`);
  });

  test("with --dry-run, does not create the output folder", async () => {
    expect((await place.call("build --dry-run")).code).toBe(0);
    expect(readdirSync(place.folder)).not.toContain("out");
  });

  test("with --json, reports the mode, the reason and the file counts of each app", async () => {
    const report = await place.json<Built>("build");
    const bytes = [...tree().values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    expect(report).toEqual({
      dry_run: false,
      apps: [
        {
          key: SHOP,
          mode: "full",
          reason: "it was not built before",
          added: SHOP_FILES.length,
          changed: 0,
          written: SHOP_FILES.length,
          unchanged: 0,
          deleted: 0,
          bytes,
          seconds: expect.any(Number),
        },
      ],
      seconds: expect.any(Number),
    });
  });

  test("prints the number of written, unchanged and deleted files", async () => {
    const first = await place.run("build");
    expect(first.stdout).toMatch(new RegExp(`^Shop: wrote ${SHOP_FILES.length} files, 0 unchanged, 0 deleted, `));
    expect((await place.run("build")).stdout).toMatch(/^Shop: wrote 0 files, \d+ unchanged, 0 deleted, /);
  });

  test("writes into the folder that --out names", async () => {
    await place.call("build --out some/where");
    expect(paths(readTree(join(place.folder, "some/where")))).toEqual(inShop(SHOP_FILES));
    expect(readdirSync(place.folder)).not.toContain("out");
    rmSync(join(place.folder, "some"), { recursive: true });
  });

  test("with --full, repairs a file that was changed by hand", async () => {
    await place.call("build");
    const before = tree();
    writeFileSync(inOut("posts/page/1.json"), "broken");
    expect((await place.call("build --full")).code).toBe(0);
    expect(tree()).toEqual(before);
  });

  test("with --full, deletes foreign files and folders in the folder of an app", async () => {
    await place.call("build");
    const before = tree();
    const leftovers = ["posts/page/1.json.tmp", "posts/page/99.json", "notes.txt", "old/deep/down/x.json", "posts/.x"];
    leftovers.push(`posts/filter/tags/h-${"0".repeat(64)}.json`);
    for (const path of leftovers) {
      mkdirSync(dirname(inOut(path)), { recursive: true });
      writeFileSync(inOut(path), "left");
    }
    const { apps } = await place.json<Built>("build --full");
    expect(apps).toMatchObject([{ written: 0, deleted: leftovers.length }]);
    expect(tree()).toEqual(before);
    expect(readdirSync(inOut(""))).not.toContain("old");
  });

  test("with --full, replaces a folder that stands in place of a file, and a file in place of a folder", async () => {
    await place.call("build");
    const before = tree();
    rmSync(inOut("posts/page/1.json"));
    mkdirSync(inOut("posts/page/1.json"));
    expect((await place.call("build --full")).stderr).toBe("");
    expect(tree()).toEqual(before);
    rmSync(inOut("posts"), { recursive: true });
    writeFileSync(inOut("posts"), "a file");
    expect((await place.call("build --full")).stderr).toBe("");
    expect(tree()).toEqual(before);
  });

  test("fails, names the other process and writes nothing when another build holds the lock", async () => {
    const lock = join(out(), ".precast", "build.lock");
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, `${process.pid}\n`);
    const { code, stdout, stderr } = await place.run("build");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(new RegExp(`^Another build \\(process ${process.pid}\\).*\\n$`));
    expect(paths(tree())).toEqual([]);
    expect(readFileSync(lock, "utf8")).toBe(`${process.pid}\n`);
  });

  test("ignores the lock of a build whose process is dead", async () => {
    const { stdout: dead } = await place.spawn("/bin/sh", ["-c", "echo $$"]);
    const lock = join(out(), ".precast", "build.lock");
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, dead);
    expect(await place.run("build")).toMatchObject({ code: 0, stderr: "" });
    expect(paths(tree())).toEqual(inShop(SHOP_FILES));
    expect(readdirSync(join(out(), ".precast"))).toEqual(["changes.json", "history.json", "x-53686f70.json"]);
  });

  test("ignores a lock that holds its own process id, as a build that died in a container leaves it", async () => {
    mkdirSync(join(out(), ".precast"), { recursive: true });
    const script = `echo $$ > out/.precast/build.lock; exec "$0" "$1" build`;
    const ran = await place.spawn("/bin/sh", ["-c", script, process.execPath, MAIN]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
  });

  test.each(["", "{", '"text"'])(
    "builds the same tree again when the state of the last build cannot be read: %j",
    async (broken) => {
      await place.call("build");
      const before = tree();
      writeFileSync(join(out(), ".precast", "x-53686f70.json"), broken);
      expect(await place.call("build")).toMatchObject({ code: 0, stderr: "" });
      expect(tree()).toEqual(before);
      expect(await place.json("status")).toMatchObject({ apps: [{ tree: { files: SHOP_FILES.length } }] });
    },
  );

  test.each(["file", "file/x"])(
    "fails when a file stands where the output folder should be: --out %s",
    async (path) => {
      writeFileSync(join(place.folder, "file"), "");
      const { code, stdout, stderr } = await place.call(`build --out ${path}`);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/^.*\bfile\b.*--out.*\n$/);
    },
  );

  test("fails and says how to import content when the database has no app", async () => {
    await store.database.execute("DELETE FROM precast.apps");
    for (const line of ["build", "build --json", "build --dry-run"]) {
      const { code, stdout, stderr } = await place.call(line);
      expect([line, code, stdout]).toEqual([line, 1, ""]);
      expect(stderr).toContain("precast import <folder>");
    }
  });

  test("leaves the tree of another database alone while its own has no app, and then replaces it", async () => {
    await place.call("build");
    const before = tree();
    const empty = await openStore("postgres");
    const refused = await place.call("build", { DATABASE_URL: empty.url ?? "" });
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toMatch(
      /^The database has no app, but the tree in out contains Shop from another database\. .*DATABASE_URL.*\n$/,
    );
    expect(tree()).toEqual(before);
    await loadBundles(empty, [smallApp("other", ["A"])]);
    expect(await place.call("build", { DATABASE_URL: empty.url ?? "" })).toMatchObject({ code: 0 });
    expect(paths(tree()).filter((path) => path.startsWith(SHOP_FOLDER))).toEqual([]);
    expect(paths(tree())).toContain("s-other/v1/_schemas.json");
    await empty.close();
  });

  test("shows a reader the old or the new content of a file, never a part of it", async () => {
    await place.call("build");
    const [page] = BYTES.filter(([path]) => path === "posts/page/1.json").map(([, bytes]) => bytes);
    const edited = await changeTitle("Uno");
    const building = place.run("build");
    const seen = new Set<string>();
    let done = false;
    building.finally(() => {
      done = true;
    });
    while (!done) {
      seen.add(readFileSync(inOut("posts/page/1.json"), "utf8"));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await building).code).toBe(0);
    expect([...seen].filter((text) => text !== page && text !== edited(page ?? ""))).toEqual([]);
  });

  async function changeTitle(title: string): Promise<(text: string) => string> {
    await place.import(
      shopWith((posts) =>
        posts.map((post) => (post.id === idOf(1) ? { ...post, data: { ...post.data, title } } : post)),
      ),
    );
    return (text) => text.replace('"title":"One"', `"title":"${title}"`);
  }

  test("warns that nobody has set the address of media which an app has", async () => {
    const unset = { PRECAST_MEDIA_BASE_URL: "" };
    const { code, stderr } = await place.call("build", unset);
    expect([code, stderr]).toEqual([
      0,
      `${SHOP}: posts.cover has values, but no address of media is set, so these answers lead to http://localhost:3000. Set media_base_url of the app, or --media-base-url (PRECAST_MEDIA_BASE_URL), and build again.\n`,
    ]);
    await place.import({ ...shop(), app: { ...shop().app, media_base_url: "https://media.test" } });
    expect(await place.call("build", unset)).toMatchObject({ code: 0, stderr: "" });
    await place.import(shopWith((posts) => posts.map((post) => ({ ...post, data: { ...post.data, cover: "" } }))));
    expect(await place.call("build", unset)).toMatchObject({ code: 0, stderr: "" });
  });

  test("uses --media-base-url for an app that sets no media address", async () => {
    await place.call("build --media-base-url https://cdn.test/");
    expect(readFileSync(inOut("posts/page/1.json"), "utf8")).toContain(
      '"cover_url":"https://cdn.test/Shop/cms/media/c%201.png"',
    );
  });

  test("writes two apps whose keys differ only in case into separate folders", async () => {
    await place.import(smallApp("shop", ["lower"]));
    await place.call("build");
    expect(readdirSync(out()).sort()).toEqual([".precast", "s-shop", "x-53686f70"]);
    expect(readFileSync(inOut("authors/page/1.json"), "utf8")).not.toContain("lower");
  });
});

describe("the same content gives the same tree, byte for byte", () => {
  const SAMPLES = fc.sample(arbitraryBundles(), { seed: 7, numRuns: 3 });
  const all = (bundles: readonly Bundle[]): Bundle[] => [...bundles, shop()];
  const stores: Store[] = [];

  afterAll(async () => {
    for (const store of stores) await store.close();
  });

  async function treeOf(engine: Engine, imports: readonly (readonly Bundle[])[]): Promise<Map<string, string>> {
    const store = await openStore(engine);
    stores.push(store);
    for (const bundles of imports) await loadBundles(store, bundles);
    await buildSite(store);
    return readTree(join(store.folder, "out"));
  }

  test.each(SAMPLES.map((bundles, index) => [index + 1, all(bundles)] as const))(
    "on both databases, in reverse import order and after reverted edits (sample %i)",
    async (_, bundles) => {
      const tree = await treeOf("postgres", [bundles]);
      expect(tree.size).toBeGreaterThan(100);
      const others = {
        embedded: await treeOf("embedded", [bundles]),
        reversed: await treeOf("postgres", [[...bundles].reverse().map(reversed)]),
        edited: await treeOf("postgres", [bundles, bundles.map(edited), bundles]),
      };
      for (const [how, other] of Object.entries(others)) {
        expect([how, paths(other)]).toEqual([how, paths(tree)]);
        expect([how, differing(tree, other)]).toEqual([how, []]);
      }
    },
  );

  /** The same content, with its types and entries in reverse order. */
  function reversed(bundle: Bundle): Bundle {
    const entries = Object.entries(bundle.entries).map(([slug, some]) => [slug, [...some].reverse()]);
    return { ...bundle, types: [...bundle.types].reverse(), entries: Object.fromEntries(entries) };
  }

  /** Names and page sizes of types changed, every other entry a draft, the last type gone. */
  function edited(bundle: Bundle): Bundle {
    const types = bundle.types.slice(0, -1).map((type) => ({ ...type, name: `${type.name}!`, per_page: 7 }));
    const entries = types.map(({ slug }) => [
      slug,
      (bundle.entries[slug] ?? []).map((one, index) => (index % 2 === 0 ? { ...one, status: "draft" } : one)),
    ]);
    return { ...bundle, types, entries: Object.fromEntries(entries) };
  }
});
