/** Opens the studio's page in a real browser, and asks for its data as pages of strangers would. */
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BROWSER, expectAccessible, openBrowser, openPage } from "../support/browser.ts";
import { openEmbeddedPlace, type Place } from "../support/cli.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));

let place: Place;
let url: string;

beforeAll(async () => {
  place = await openEmbeddedPlace();
  await place.call(["import", DEMO]);
  await place.build();
  const studio = place.start("studio --port 0");
  await studio.printed(/Precast studio: \S+\n/);
  url = /studio: (\S+)/.exec(studio.output().stdout)?.[1] ?? "";
});
afterAll(() => place.close());

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

describe.skipIf(BROWSER === null)("the studio's page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test("shows the health of the demo, asks no other machine, and is accessible in both widths and colours", async () => {
    for (const width of [1280, 390])
      for (const colorScheme of ["light", "dark"] as const) {
        const { page, foreign, errors } = await openPage(browser, { width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.goto(`${url}#health`);
        await page.getByText("Ready", { exact: true }).waitFor();
        await expectAccessible(page);
        expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
        await page.close();
      }
  });
});
