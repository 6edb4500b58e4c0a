/** `precast export` and `precast copy`: content comes out as it went in, and goes from one app to another. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { idOf, openPlace, type Place, shop } from "../support/cli.ts";
import { REAL_BUNDLES } from "../support/content.ts";
import { openStore, type Store } from "../support/site.ts";

let stores: Store[];
let first: Place;
let second: Place;

beforeAll(async () => {
  stores = [await openStore("postgres"), await openStore("postgres")];
  [first, second] = stores.map(({ url }) => openPlace({ DATABASE_URL: url ?? "" })) as [Place, Place];
});
afterAll(async () => {
  for (const place of [first, second]) await place.close();
  for (const store of stores) await store.close();
});

/** All files below a folder, by their names. */
function readFolder(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const found = files.map((file) => join(file.parentPath, file.name)).filter((path) => !path.includes("/.precast/"));
  return Object.fromEntries(found.map((path) => [path.slice(folder.length), readFileSync(path, "utf8")]));
}

test.each(["cli/demo", ...REAL_BUNDLES].map((folder) => resolve(folder)))(
  "%s, exported and imported elsewhere, gives the same tree and the same export",
  async (folder) => {
    const { app } = await first.json<{ app: string }>(`import ${folder}`);
    expect((await first.call(`export exported-${app} --app ${app}`)).code).toBe(0);
    const exported = join(first.folder, `exported-${app}`);
    expect(await second.json(`import ${exported}`)).toMatchObject({ app, warnings: [] });
    const again = await second.json<{ entries: object }>(`export exported-${app} --app ${app}`);
    expect(again).toMatchObject({ app, media: 0 });
    expect(readFolder(join(second.folder, `exported-${app}`))).toEqual(readFolder(exported));
    for (const place of [first, second]) expect((await place.call(`build --app ${app}`)).code).toBe(0);
    const tree = readFolder(join(first.folder, "out"));
    expect(Object.keys(tree).length).toBeGreaterThan(20);
    expect(readFolder(join(second.folder, "out"))).toEqual(tree);
  },
);

describe("what SQL wrote", () => {
  beforeAll(async () => {
    await first.import(shop());
    await stores[0]?.database.execute(
      `UPDATE precast.entries SET status = 'draft', data = data || '{"title": "9007199254740993 \\u00e9"}' WHERE id = '${idOf(2)}' AND data ? 'title'`,
    );
  });

  test("is exported with its drafts, and an import of it changes nothing", async () => {
    expect(await first.json("export shop --app Shop")).toMatchObject({ app: "Shop" });
    const lines = readFileSync(join(first.folder, "shop/entries/posts.ndjson"), "utf8");
    expect(lines).toContain('"status":"draft"');
    const report = await first.json<Record<string, object>>("import shop --prune");
    expect(report.entries).toMatchObject({ created: 0, updated: 0, deleted: 0 });
    expect(report.types).toMatchObject({ created: 0, updated: 0, deleted: 0 });
    expect(report.fields).toMatchObject({ created: 0, updated: 0, deleted: 0 });
  });

  test("an export replaces an older one of the app, and nothing else", async () => {
    writeFileSync(join(first.folder, "shop/content_types/old.json"), "{}");
    expect((await first.call("export shop --app Shop")).code).toBe(0);
    expect(readdirSync(join(first.folder, "shop/content_types"))).not.toContain("old.json");
    writeFileSync(join(first.folder, "notes.txt"), "mine");
    const { code, stderr } = await first.call(["export", first.folder, "--app", "Shop"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("holds something else than a bundle of Shop")]);
    expect(readFileSync(join(first.folder, "notes.txt"), "utf8")).toBe("mine");
  });

  test("is copied into another app, with the differences in words", async () => {
    const dry = await first.call("copy Shop production --dry-run");
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringContaining("production: dry run, nothing copied")]);
    expect((await first.call("status --json")).stdout).not.toContain('"production"');
    expect((await first.call("copy Shop production")).code).toBe(0);
    expect((await first.call("copy Shop production")).stdout).toContain("Shop and production have the same entries.");
    await stores[0]?.database.execute(
      `UPDATE precast.entries SET data = data || '{"title": "Anew"}' WHERE id = '${idOf(1)}' AND content_type_id =
         (SELECT type.id FROM precast.content_types AS type JOIN precast.apps ON apps.id = app_id WHERE key = 'Shop' AND slug = 'posts');
       DELETE FROM precast.entries WHERE id = '${idOf(3)}' AND content_type_id =
         (SELECT type.id FROM precast.content_types AS type JOIN precast.apps ON apps.id = app_id WHERE key = 'Shop' AND slug = 'posts')`,
    );
    const { stdout } = await first.call("copy Shop production --prune");
    expect(stdout).toContain("posts: 1 changed\n  ~ Anew");
    expect(stdout).toMatch(/ {2}~ Anew \(\S+\): title\n/);
    expect(stdout).toContain("posts: 1 only in production, deleted\n  - ");
    expect((await first.call("copy Shop production")).stdout).toContain("have the same entries");
  });

  test.each([
    ["copy Shop Shop", "An app cannot be copied into itself: name two apps.\n"],
    ["copy nobody production", /^No app has the key nobody/],
    ["copy Shop production --type nothing", /^There is no content type nothing; the types are /],
    [
      "copy Shop production --type posts --prune",
      "--prune would delete the other types: leave out --type, or --prune.\n",
    ],
    ["export bundle --app nobody", /nobody/],
  ])("%s fails and says what would be right", async (line, message) => {
    const { code, stderr } = await first.call(line);
    expect([code, stderr]).toEqual([1, typeof message === "string" ? message : expect.stringMatching(message)]);
  });
});
