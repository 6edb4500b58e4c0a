/** `precast report`: one HTML file with the numbers of usage and trees, which asks for nothing and runs nothing foreign. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BROWSER, expectAccessible, openBrowser, openPage } from "../support/browser.ts";
import { openPlace, type Place, readTree, smallApp } from "../support/cli.ts";
import { openStore, type Store } from "../support/site.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));
const DAY = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString().slice(0, 10);
/** What would end a script, begin another, end a line of one, or be taken for HTML. */
const NASTY = "</script><script>alert(1)</script><!-- & \u2028\"'";

let store: Store;
let place: Place;
const file = () => join(place.folder, "report.html");

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.call(["import", DEMO]);
  await place.import({ ...smallApp("nasty", ["A"]), app: { key: "nasty", name: NASTY } });
  await place.call("build --app atlas");
  const rows = Array.from(
    { length: 10 },
    (_, day) => `('atlas', '${daysAgo(day)}', 'list', 200, ${100 + day}, 'per_page=20', 'cities', ''),
      ('atlas', '${daysAgo(day)}', 'search', 200, 7, '', 'journeys', '')`,
  );
  await store.database.execute(`INSERT INTO precast.usage (app_key, day, shape, status, count, saving, type, fields)
    VALUES ${rows.join()}, ('nasty', '${daysAgo(0)}', 'list', 200, 1, '</script>${"\u2028"}', '</script>', '')`);
});
afterAll(async () => {
  await place.close();
  await store.close();
});

describe("precast report", () => {
  test("writes one file below 600 kB, and says how large it is and of which apps", async () => {
    const { code, stdout, stderr } = await place.run("report --html report.html");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^Wrote report\.html, \d+\.\d kB: atlas, nasty\n$/);
    expect(statSync(file()).size).toBeLessThan(600_000);
    const { stdout: json } = await place.run("report --html report.html --app atlas --json");
    expect(JSON.parse(json)).toEqual({ file: "report.html", bytes: statSync(file()).size, apps: ["atlas"] });
  });

  test.each([
    ["report", "--html is missing (or PRECAST_REPORT_FILE in the environment)"],
    ["report --html x.html --app nobody", "No app has the key nobody. Apps in the database: atlas, nasty."],
    ["report --html x.html --plan 0", "--plan must be a whole number from 1 to 1000000000000"],
    ["report --html x.html --since 2026-02-02 --until 2026-02-01", "The first day, 2026-02-02, is later than the last"],
  ])("%s fails and says what is wrong", async (line, error) => {
    const { code, stdout, stderr } = await place.run(line);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(error);
    expect(() => statSync(join(place.folder, "x.html"))).toThrow(/ENOENT/);
  });

  test("refuses a report that would be too large", async () => {
    for (let number = 0; number < 6_000; number++) {
      const folder = join(place.folder, `large/s-nasty/v1/authors/filter/${"field_".repeat(9)}${number}`);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "s-1.json"), "{}");
    }
    const { code, stderr } = await place.run("report --html x.html --out large");
    expect(code).toBe(1);
    expect(stderr).toMatch(/more than the 600\.0 kB that it may have: choose one app with --app/);
  });
});

describe.skipIf(BROWSER === null)("a report in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  /** Opens a report from the disk, and notes whatever it asks for. */
  async function open(line: string, size?: { width: number; height: number }) {
    expect(await place.run(`report --html report.html ${line}`)).toMatchObject({ code: 0 });
    const { page, errors } = await openPage(browser, size);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("dialog", (dialog) => {
      asked.push(dialog.message());
      return dialog.dismiss();
    });
    await page.goto(pathToFileURL(file()).href);
    await page.getByRole("heading", { name: "The last builds" }).waitFor();
    return { page, errors, asked };
  }

  test("shows the numbers of `precast usage` and of the tree on the disk, and asks for nothing", async () => {
    const { page, errors, asked } = await open(`--app atlas --plan 5000 --since ${daysAgo(8)}`);
    const text = await page.locator("body").innerText();
    const usage = await place.json<{ total: number; savings: readonly { count: number }[] }>(
      `usage --app atlas --since ${daysAgo(8)}`,
    );
    expect(text).toContain(`${usage.total} counted requests, ${daysAgo(8)} to ${daysAgo(0)} (UTC)`);
    expect(text).toContain(`${usage.savings[0]?.count} requests`);
    expect(text).toMatch(/\d+\.\d % of the plan/);
    const files = [...readTree(join(place.folder, "out"))];
    expect(text).toContain(`${files.length.toLocaleString("en")} files`);
    const filters = files.filter(([path]) => path.includes("/filter/")).length;
    expect(text).toContain(`filters ${((filters / files.length) * 100).toFixed(1)} %`);
    await page.getByRole("button", { name: /^cities \d/ }).click();
    await page.getByRole("region", { name: "Parts of cities" }).getByRole("button", { name: "filters" }).click();
    await page.getByRole("region", { name: "Parts of filters" }).waitFor();
    expect({ errors, asked }).toEqual({ errors: [], asked: [pathToFileURL(file()).href] });
    await page.close();
  });

  test("is accessible in both widths and colours", async () => {
    for (const [width, colorScheme] of [
      [1280, "light"],
      [390, "dark"],
    ] as const) {
      const { page } = await open("--app atlas --plan 100", { width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await expectAccessible(page);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
      await page.close();
    }
  });

  test("shows each app, and runs nothing that a name or a count holds", async () => {
    const { page, errors, asked } = await open("");
    await page.getByLabel("App").selectOption({ index: 1 });
    await page.getByRole("heading", { name: `${NASTY} (nasty)` }).waitFor();
    await page.getByText("The app nasty has no tree").waitFor();
    await page.getByRole("button", { name: "type", exact: true }).click();
    await page.getByRole("listitem").filter({ hasText: "</script> 1" }).waitFor();
    expect({ errors, asked }).toEqual({ errors: [], asked: [pathToFileURL(file()).href] });
    await page.evaluate(
      `document.head.append(Object.assign(document.createElement("script"), { text: "window.ran = 1" }))`,
    );
    expect(await page.evaluate("window.ran")).toBeUndefined();
    await page.close();
  });

  test("has the same numbers as plain tables where no script runs", async () => {
    await place.run("report --html report.html");
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.setContent(readFileSync(file(), "utf8"));
    const text = await page.locator("noscript").innerText();
    const { total } = await place.json<{ total: number }>(`usage --app atlas --since ${daysAgo(29)}`);
    expect(text).toContain(`${total.toLocaleString("en")} counted requests`);
    expect(text).toContain(`${daysAgo(1)}\t108`);
    expect(text).toContain("drop per_page=20, which is the default\t1,045");
    expect(text).toContain(`${readTree(join(place.folder, "out")).size.toLocaleString("en")} files`);
    expect(text).toContain("full: it was not built before");
    expect(text).toContain(NASTY.slice(0, NASTY.indexOf("&")));
    await context.close();
  });
});
