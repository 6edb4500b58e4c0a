/** Media of a bundle: an import checks that they are there, and copies them to where they are shown and deployed from. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { BROWSER, openBrowser, openPage } from "../support/browser.ts";
import { idOf, openPlace, type Place, SHOP, shop, shopWith } from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import type { Bundle } from "../support/model-bundle.ts";
import { openStore, type Store } from "../support/site.ts";

let store: Store;
let place: Place;
beforeAll(async () => {
  store = await openStore("postgres");
});
beforeEach(async () => {
  await store.database.execute("DELETE FROM precast.apps");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await write({ "c 1.png": "one" });
});
afterEach(() => place.close());
afterAll(() => store.close());

/** Writes the bundle `shop` with these media; null is no folder of media. */
async function write(media: Record<string, string | Buffer> | null, bundle: Bundle = shop()): Promise<void> {
  rmSync(join(place.folder, "shop"), { recursive: true, force: true });
  mkdirSync(join(place.folder, "shop"));
  await writeBundle(join(place.folder, "shop"), bundle);
  if (media === null) return;
  mkdirSync(join(place.folder, "shop/media"));
  for (const [name, text] of Object.entries(media)) writeFileSync(join(place.folder, "shop/media", name), text);
}

const folder = () => join(place.folder, ".precast/media", SHOP, "cms/media");
const copies = () =>
  existsSync(folder())
    ? Object.fromEntries(readdirSync(folder()).map((name) => [name, readFileSync(join(folder(), name), "utf8")]))
    : null;
const apps = () => store.database.query(sql("SELECT key FROM precast.apps"));

type Report = { readonly media: object | null; readonly warnings: readonly string[]; readonly next: string | null };
const importShop = (line = "") => place.json<Report>(`import shop ${line}`);

describe("an import of a bundle with media", () => {
  test("copies them to where their addresses lead, and later only those that differ", async () => {
    expect((await importShop()).media).toEqual({ copied: 1, unchanged: 0, deleted: 0 });
    expect(copies()).toEqual({ "c 1.png": "one" });
    expect(readdirSync(join(place.folder, ".precast/media"))).toEqual([SHOP]);
    const before = statSync(join(folder(), "c 1.png"));
    writeFileSync(join(place.folder, "shop/media/d.png"), "two");
    // As after a checkout.
    utimesSync(join(place.folder, "shop/media/c 1.png"), 1, 1);
    expect((await importShop()).media).toEqual({ copied: 1, unchanged: 1, deleted: 0 });
    expect(statSync(join(folder(), "c 1.png")).ino).toBe(before.ino);
    writeFileSync(join(place.folder, "shop/media/c 1.png"), "eno");
    expect((await importShop()).media).toEqual({ copied: 1, unchanged: 1, deleted: 0 });
    expect(copies()).toEqual({ "c 1.png": "eno", "d.png": "two" });
  });

  test("deletes those that the bundle lacks with --prune alone, and never for a bundle without a folder of them", async () => {
    await importShop();
    await write({ "d.png": "two" });
    expect((await importShop()).media).toEqual({ copied: 1, unchanged: 0, deleted: 0 });
    expect(copies()).toEqual({ "c 1.png": "one", "d.png": "two" });
    expect((await importShop("--prune")).media).toEqual({ copied: 0, unchanged: 1, deleted: 1 });
    await write(null);
    expect((await importShop("--prune")).media).toBe(null);
    expect(copies()).toEqual({ "d.png": "two" });
  });

  test("copies and deletes nothing in a dry run, which counts the same", async () => {
    expect((await importShop("--dry-run")).media).toEqual({ copied: 1, unchanged: 0, deleted: 0 });
    expect(copies()).toBe(null);
    await importShop();
    await write({ "d.png": "two" });
    expect((await importShop("--dry-run --prune")).media).toEqual({ copied: 1, unchanged: 0, deleted: 1 });
    expect(copies()).toEqual({ "c 1.png": "one" });
  });

  test("copies nothing when the bundle is invalid", async () => {
    writeFileSync(join(place.folder, "shop/entries/posts.ndjson"), "{");
    expect(await place.call("import shop")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("posts.ndjson:1"),
    });
    expect(copies()).toBe(null);
  });

  test("says what it did, in one line", async () => {
    const { stdout } = await place.call("import shop");
    expect(stdout.split("\n")[0]).toMatch(/^Shop: entries 7 created.*; media 1 copied, 0 unchanged, 0 deleted$/);
  });
});

describe("a file that an entry names and the bundle lacks", () => {
  const LACKS = 'entries/posts.ndjson:1: field "cover" names "c 1.png", which media/ lacks';

  test("is a warning, with its line; an empty name is none, and a bundle without a folder has its media elsewhere", async () => {
    const covers = ["c 1.png", "", null, "c 1.png"];
    const bundle = shopWith((posts) =>
      posts.map((post, index) => ({ ...post, data: { ...post.data, cover: covers[index] } })),
    );
    await write({ "C 1.png": "other" }, bundle);
    expect((await importShop()).warnings).toEqual([`${LACKS} (on 2 lines: 1, 4)`]);
    await write(null, bundle);
    expect((await importShop()).warnings).toEqual([]);
  });

  test("is listed a hundred times at most", async () => {
    const [post] = shop().entries.posts ?? [];
    const posts = Array.from({ length: 130 }, (_, index) => ({
      ...(post as NonNullable<typeof post>),
      id: `abcdef00-0000-4000-8000-${String(index).padStart(12, "0")}`,
      data: { title: "a", cover: `${index}.png` },
    }));
    await write({}, { ...shop(), entries: { posts } });
    const { warnings } = await importShop();
    expect([warnings.length, warnings[0], warnings[100]]).toEqual([
      101,
      'entries/posts.ndjson:1: field "cover" names "0.png", which media/ lacks',
      "and 30 more",
    ]);
  });

  test("is a fault with --strict: exit code 2, and nothing is imported or copied", async () => {
    await write({ "d.png": "two" });
    for (const line of ["import shop --strict", "import shop --strict --dry-run"]) {
      const { code, stdout, stderr } = await place.call(line);
      expect([code, stderr]).toEqual([2, `${LACKS}\n`]);
      expect(stdout).toContain("nothing imported");
      expect(stdout).not.toContain("Next:");
    }
    expect([copies(), await apps()]).toEqual([null, []]);
    await write({ "c 1.png": "one" });
    expect((await importShop("--strict")).next).toBe("precast build");
    expect(copies()).toEqual({ "c 1.png": "one" });
  });

  test("is not the only fault with --strict: a relation whose target is no type is one as well", async () => {
    const { types, ...rest } = shop();
    await write(
      { "c 1.png": "one" },
      { ...rest, types: types.slice(0, 1), entries: { posts: rest.entries.posts ?? [] } },
    );
    const { code, stdout, stderr } = await place.call("import shop --strict");
    expect([code, stdout, stderr]).toEqual([
      2,
      expect.stringContaining("nothing imported, because of --strict"),
      expect.stringContaining('the target of "author_id" is "authors"'),
    ]);
    expect([copies(), await apps()]).toEqual([null, []]);
  });
});

describe("refused, before anything is imported, is", () => {
  const refusal = async () => {
    const { code, stdout, stderr } = await place.call("import shop");
    expect([code, stdout, copies()]).toEqual([1, "", null]);
    return stderr;
  };

  test("a folder among the media", async () => {
    mkdirSync(join(place.folder, "shop/media/2026"));
    expect(await refusal()).toBe("media/2026: is a folder, but must be a file\n");
  });

  test("a link out of the bundle, whether to a file or in place of the folder", async () => {
    writeFileSync(join(place.folder, "secret.txt"), "secret");
    symlinkSync("../../secret.txt", join(place.folder, "shop/media/a.txt"));
    expect(await refusal()).toMatch(/^media\/a\.txt: is a symbolic link that leads out of the bundle/);
    rmSync(join(place.folder, "shop/media"), { recursive: true });
    symlinkSync("..", join(place.folder, "shop/media"));
    expect(await refusal()).toMatch(/^media: is a symbolic link that leads out of the bundle/);
  });

  test("a folder of nearly that name, and a name that no address could have", async () => {
    mkdirSync(join(place.folder, "shop/Media"));
    writeFileSync(join(place.folder, "shop/media/a\\b.png"), "");
    expect((await refusal()).split("\n")).toEqual([
      "Media: is not part of a bundle; did you mean media?",
      "media/a\\b.png: must have a name without \\ and control characters",
      "",
    ]);
  });
});

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="5"><path d="M0 0h8v5H0z"/></svg>';

describe.skipIf(BROWSER === null)("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  /** The widths of all images, once they are there. */
  const WIDTHS = "Promise.all([...document.images].map((image) => image.decode().then(() => image.naturalWidth)))";

  test("images of bundles and of converted Markdown are seen from --media-port, and in the studio wherever they are deployed", async () => {
    const server = await place.serve("--media-port 0 --admin-port 0 --studio");
    await server.printed(/Media: \S+/);
    const [, admin = "", media = ""] = /metrics: (\S+)\nMedia: (\S+)/.exec(server.output().stdout) ?? [];
    const { page, errors } = await openPage(browser);
    /** The widths of the images of an entry, its cover first, as an app would show it. */
    const show = async (appKey: string, path: string) => {
      const { json } = await server.get(`/api/v1/${path}`, { appKey });
      await page.setContent(`<img src="${json.data.cover_url}">${json.data.body}`);
      return page.evaluate(WIDTHS);
    };
    const body = `<p>A drawing: <img src="${media}/${SHOP}/cms/media/e.svg"></p>`;
    const drawn = shopWith((posts) => posts.map((post) => ({ ...post, data: { ...post.data, body } })));
    await write({ "c 1.png": PIXEL, "e.svg": DRAWING }, { ...drawn, app: { ...drawn.app, media_base_url: media } });
    await importShop();
    expect(await show(SHOP, `posts/${idOf(1)}`)).toEqual([1, 8]);

    const blog = join(place.folder, "site/blog");
    mkdirSync(join(blog, "images"), { recursive: true });
    writeFileSync(join(blog, "hello.md"), "---\ntitle: Hello\ncover: ./cover.png\n---\n![Drawing](images/e.svg)\n");
    writeFileSync(join(blog, "cover.png"), PIXEL);
    writeFileSync(join(blog, "images/e.svg"), DRAWING);
    await place.json(`import site --from markdown --app site --strict --media-base-url ${media}`);
    const { json } = await server.get("/api/v1/blog", { appKey: "site" });
    expect([await show("site", `blog/${json.data[0].id}`), errors]).toEqual([[1, 8], []]);

    await write({ "c 1.png": PIXEL }, { ...drawn, app: { ...drawn.app, media_base_url: "https://media.test" } });
    await importShop();
    const studio = await openPage(browser);
    await studio.page.goto(`${admin}/studio/#content?app=${SHOP}&type=posts&id=${idOf(1)}`);
    await studio.page.getByRole("link", { name: `https://media.test/${SHOP}/cms/media/c%201.png` }).waitFor();
    expect(await studio.page.evaluate(WIDTHS)).toEqual([1]);
    expect([studio.foreign, studio.errors]).toEqual([[], []]);
    await Promise.all([page.close(), studio.page.close()]);
    expect(await server.stop()).toMatchObject({ code: 0 });
    await expect(fetch(media)).rejects.toThrow();
  });
});
