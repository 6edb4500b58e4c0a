/** Opens the studio's page in a real browser, and asks for its data as pages of strangers would. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BROWSER, expectAccessible, openBrowser, openPage, startStudio } from "../support/browser.ts";
import { idOf, openEmbeddedPlace, type Place, readTree, SHOP, shop } from "../support/cli.ts";
import { REAL_BUNDLES } from "../support/content.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));

const PIXEL = Buffer.from("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=", "base64");

/** Where the media of the apps are. */
let media: Server;
let place: Place;
let url: string;

beforeAll(async () => {
  media = createServer((_, answer) => answer.setHeader("Content-Type", "image/gif").end(PIXEL)).listen(0, "127.0.0.1");
  await once(media, "listening");
  const { port } = media.address() as AddressInfo;
  place = await openEmbeddedPlace({ PRECAST_MEDIA_BASE_URL: `http://127.0.0.1:${port}` });
  await place.import(shop());
  await place.call(["import", DEMO]);
  await place.build();
  url = await startStudio(place);
});
afterAll(async () => {
  await place.close();
  media.close();
});

/** The status of an answer to a request with these headers. */
function ask(path: string, headers: Record<string, string> = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(path, url), { headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.on("error", reject).end();
  });
}

describe("the studio's port", () => {
  test("answers its own page, and no page of a stranger", async () => {
    const { port } = new URL(url);
    expect(await ask("/")).toBe(200);
    expect(await ask("/data/apps")).toBe(200);
    expect(await ask("/data/apps", { "Sec-Fetch-Site": "same-origin" })).toBe(200);
    expect(await ask("/data/apps", { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors" })).toBe(403);
    expect(await ask("/data/apps", { Host: `evil.example:${port}` })).toBe(403);
    expect(await ask("/data/apps", { Host: `localhost:${port}` })).toBe(200);
    expect(await ask("/nothing")).toBe(404);
    expect(await ask("/data/../../../../etc/passwd")).toBe(404);
  });
});

describe("below the admin port", () => {
  const serve = async (line: string) => {
    const server = await place.serve(`--admin-port 0 ${line}`);
    await server.printed(/Health and metrics: \S+\n/);
    return { server, admin: /Health and metrics: (\S+)/.exec(server.output().stdout)?.[1] ?? "" };
  };

  test("a server with --studio has the page, the data and the files, and keeps its other paths", async () => {
    const { server, admin } = await serve("--studio");
    const get = async (path: string) => {
      const answer = await fetch(`${admin}${path}`);
      return { status: answer.status, url: answer.url.slice(admin.length), text: await answer.text() };
    };
    expect(await get("/studio")).toMatchObject({
      status: 200,
      url: "/studio/",
      text: expect.stringContaining("<title>Precast studio"),
    });
    expect(await get("/studio/page.js")).toMatchObject({ status: 200 });
    expect(JSON.parse((await get("/studio/data/apps")).text)).toMatchObject([{ key: SHOP }, { key: "atlas" }]);
    expect(await get("/studio/data/nothing")).toMatchObject({ status: 404 });
    expect(await get("/healthz")).toMatchObject({ status: 200 });
    expect(await get("/data/apps")).toMatchObject({ status: 404 });
    await server.stop();
  });

  test("a server without --studio has none, and --studio needs the port", async () => {
    const { server, admin } = await serve("");
    expect((await fetch(`${admin}/studio/`)).status).toBe(404);
    await server.stop();
    const { code, stderr } = await place.call("serve --studio");
    expect([code, stderr]).toEqual([1, "--studio has no effect without --admin-port\n"]);
  });
});

/** As the menu names them. */
const VIEWS = ["Explorer", "Content", "Usage", "Tree", "Health", "Reference"];

describe.skipIf(BROWSER === null)("the studio's page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  const open = async (hash: string, size?: { width: number; height: number }) => {
    const watched = await openPage(browser, size);
    await watched.page.goto(`${url}${hash}`);
    return watched;
  };

  test.each([
    ["#health?app=atlas", "Ready"],
    ["#content?app=atlas", "Edited"],
    [`#content?app=${SHOP}&type=posts&id=${idOf(1)}`, "Files of the tree"],
  ])("%s asks no other machine, and is accessible in both widths and colours", async (hash, shown) => {
    for (const width of [1280, 390])
      for (const colorScheme of ["light", "dark"] as const) {
        const { page, foreign, errors } = await open(hash, { width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.getByText(shown, { exact: true }).first().waitFor();
        await expectAccessible(page);
        expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
        expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
        await page.close();
      }
  });

  test("the app is chosen at the top, and views by the menu with the keyboard", async () => {
    const { page } = await open("");
    await page.getByLabel("App").selectOption(SHOP);
    await page.getByRole("link", { name: "Content", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "authors (unpublished)" }).waitFor();
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Content");
    expect(await page.title()).toBe("Content · Shop · Precast studio");
    await page.close();
  });

  test("content shows drafts, marked, and finds entries by title, status and id", async () => {
    const { page } = await open(`#content?app=${SHOP}`);
    const rows = () => page.getByRole("table").locator("tbody tr").allInnerTexts();
    await page.getByText("4 entries").waitFor();
    expect((await rows()).filter((row) => row.includes("draft"))).toHaveLength(1);
    await page.getByLabel("Status").selectOption("draft");
    await page.getByText("1 entry").waitFor();
    expect(await rows()).toEqual([expect.stringMatching(/draft/)]);
    await page.goto(`${url}#content?app=${SHOP}&type=posts&search=${idOf(2).toUpperCase()}`);
    await page.getByText("1 entry").waitFor();
    await page.goto(`${url}#content?app=${SHOP}&type=posts&search=nothing of the kind`);
    await page.getByText("0 entries").waitFor();
    await page.close();
  });

  test("an entry shows what it refers to, its images, and exactly the files of the tree that hold it", async () => {
    const tree = [...readTree(join(place.folder, "out"))];
    for (const number of [1, 2, 3]) {
      const { page } = await open(`#content?app=${SHOP}&type=posts&id=${idOf(number)}`);
      const files = page.getByRole("region", { name: "Files of the tree" });
      await files.getByRole("link").first().waitFor();
      const holding = tree.filter(
        ([path, body]) => path.includes("/posts/") && body.includes(`"id":"${idOf(number)}"`),
      );
      expect((await files.locator("li > div").allInnerTexts()).sort()).toEqual(holding.map(([path]) => path).sort());
      await page.close();
    }
    const { page } = await open(`#content?app=${SHOP}&type=posts&id=${idOf(1)}`);
    const image = page.locator("img");
    await image.waitFor();
    expect(await page.evaluate("document.images[0].decode().then(() => document.images[0].naturalWidth)")).toBe(1);
    await page.getByRole("link", { name: "Ada" }).click();
    await page.getByRole("heading", { name: "Ada" }).waitFor();
    await page.close();
  });

  test("a draft stands in no file, and the page says so", async () => {
    const { page } = await open(`#content?app=${SHOP}&type=authors&id=${idOf(2)}`);
    await page.getByText("A draft: no answer of the API shows it.").waitFor();
    await page.getByText("None: drafts are not built.").waitFor();
    await page.close();
  });

  test.each([1280, 390])("the reference shows the app's operations, also at a width of %i", async (width) => {
    const { page, foreign, errors } = await open("#reference?app=atlas", { width, height: 900 });
    const frame = page.frameLocator("iframe");
    await frame.getByText("/cities", { exact: true }).first().click();
    await frame.getByText("filter[climate]", { exact: true }).first().waitFor();
    await expectAccessible(page);
    expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
    await page.close();
  });

  test("what does not exist is said", async () => {
    const { page } = await open(`#content?app=${SHOP}&type=posts&id=${idOf(99)}`);
    await page.getByText(`No entry of the type posts has the id ${idOf(99)}.`).waitFor();
    await page.close();
  });

  test.skipIf(REAL_BUNDLES.length === 0)(
    `each view shows real content${REAL_BUNDLES.length === 0 ? " (no TEST_BUNDLES)" : ""}`,
    async () => {
      for (const folder of REAL_BUNDLES) {
        expect((await place.call(["import", folder])).code).toBe(0);
        const { key } = JSON.parse(readFileSync(join(folder, "app.json"), "utf8"));
        expect((await place.call(`build --app ${key}`)).code).toBe(0);
        for (const view of VIEWS) {
          const { page, foreign, errors } = await open(`#${view.toLowerCase()}?app=${key}`);
          await page.getByRole("heading", { name: view, exact: true }).waitFor();
          await page.waitForLoadState("networkidle");
          expect(await page.getByRole("status").filter({ hasText: "Loading" }).count()).toBe(0);
          await expectAccessible(page);
          expect({ view, foreign, errors }).toEqual({ view, foreign: [], errors: [] });
          await page.close();
        }
      }
    },
    600_000,
  );
});
