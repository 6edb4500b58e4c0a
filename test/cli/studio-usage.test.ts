/** The studio's view on usage: the numbers of `precast usage`, a forecast of the month, and what it refuses. */
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { forecastMonth, type Usage } from "../../cli/studio/usage.ts";
import { BROWSER, expectAccessible, openBrowser, openPage, startStudio } from "../support/browser.ts";
import { openPlace, type Place } from "../support/cli.ts";
import { openStore, type Store } from "../support/site.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));
const DAY = 86_400_000;
const TODAY = new Date().toISOString().slice(0, 10);
const daysAgo = (days: number) => new Date(Date.parse(TODAY) - days * DAY).toISOString().slice(0, 10);

let store: Store;
let place: Place;
let url: string;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.call(["import", DEMO]);
  const types = ["cities", "journeys", "countries", ...Array.from({ length: 8 }, (_, index) => `old_${index}`), ""];
  const rows = types.flatMap((type, index) => [
    `('atlas', '${daysAgo(index)}', 'list', 200, ${100 - index}, 'per_page=20', '${type}', '')`,
    `('atlas', '${daysAgo(index + 1)}', 'search', 200, ${7 + index}, '', '${type}', 'name')`,
    `('atlas', '${daysAgo(40)}', 'populate', 200, 1000, '', '${type}', '')`,
  ]);
  await store.database.execute(`INSERT INTO precast.usage (app_key, day, shape, status, count, saving, type, fields)
    VALUES ${rows.join()}, ('other', '${TODAY}', 'list', 200, 5000, '', '', '')`);
  url = await startStudio(place, "--plan 500");
});
afterAll(async () => {
  await place.close();
  await store.close();
});

type Report = { readonly total: number; readonly days: object; readonly savings: readonly object[] };

async function read(query: string): Promise<{ readonly status: number; readonly value: Usage }> {
  const response = await fetch(new URL(`data/usage?${query}`, url));
  return { status: response.status, value: (await response.json()) as Usage };
}

describe("the data of the view on usage", () => {
  test.each([
    ["", 29],
    [`&since=${daysAgo(60)}`, 60],
    [`&since=${daysAgo(3)}&until=${daysAgo(1)}`, 3],
  ])("has the numbers of `precast usage` for %j", async (range, first) => {
    const until = /until=(.*)/.exec(range)?.[1] ?? TODAY;
    const { value } = await read(`app=atlas${range}`);
    const days = `--app atlas --since ${daysAgo(first)} --until ${until}`;
    const report = await place.json<Report>(`usage ${days}`);
    expect(value).toMatchObject({ since: daysAgo(first), until, total: report.total, days: report.days, plan: 500 });
    expect(value.savings).toEqual(report.savings.map((saving) => ({ ...saving, app: undefined })));
    const sum = (counts: Usage["shapes"]) => counts.reduce((total, { count }) => total + count, 0);
    expect([sum(value.shapes), sum(value.types)]).toEqual([report.total, report.total]);
    const byType = await place.json<{ readonly rows: readonly object[] }>(`usage --by type ${days}`);
    expect(value.types.map(({ name, ...rest }) => ({ ...rest, type: name, app: "atlas" }))).toEqual(byType.rows);
  });

  test.each([
    ["app=atlas&since=yesterday", "since must be a date such as 2026-01-20."],
    ["app=atlas&since=2026-02-02&until=2026-02-01", "The first day, 2026-02-02, is later than the last, 2026-02-01."],
    ["app=nobody", "No app has the key nobody. Apps in the database: atlas."],
    ["", "The parameter app is missing."],
  ])("is refused for %j", async (query, error) => {
    expect(await read(query)).toEqual({ status: 400, value: { error } });
  });
});

test.each([
  ["2026-11-28", [["2026-11-01", 300]], { counted: 300, mean: 0, daysLeft: 2, forecast: 300 }],
  [
    "2026-11-28",
    [
      ["2026-11-27", 70],
      ["2026-11-21", 70],
      ["2026-11-20", 700],
    ],
    { counted: 840, mean: 20, forecast: 880 },
  ],
  [
    "2026-11-28",
    [
      ["2026-11-28", 70],
      ["2026-11-29", 5],
    ],
    { counted: 75, mean: 0, forecast: 75 },
  ],
  [
    "2026-03-02",
    [
      ["2026-02-28", 700],
      ["2026-03-02", 5],
    ],
    { counted: 5, mean: 100, daysLeft: 29, forecast: 2905 },
  ],
  ["2024-02-01", [], { name: "2024-02", counted: 0, mean: 0, daysLeft: 28, forecast: 0 }],
  ["2026-12-31", [["2026-12-30", 7]], { counted: 7, mean: 1, daysLeft: 0, forecast: 7 }],
] as const)("on %s, after %j, the month is expected to have %j", (today, rows, expected) => {
  expect(
    forecastMonth(
      rows.map(([day, count]) => ({ day, count })),
      today,
    ),
  ).toMatchObject(expected);
});

describe.skipIf(BROWSER === null)("the view on usage", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  const open = async (hash: string, size?: { width: number; height: number }) => {
    const watched = await openPage(browser, size);
    await watched.page.goto(`${url}${hash}`);
    await watched.page.getByText("counted requests").waitFor();
    return watched;
  };

  test("asks no other machine, and is accessible in both widths and colours, with its table open", async () => {
    for (const width of [1280, 390])
      for (const colorScheme of ["light", "dark"] as const) {
        const { page, foreign, errors } = await open("#usage?app=atlas&by=type", { width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.getByText("The same as a table").click();
        await expectAccessible(page);
        expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
        expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
        await page.close();
      }
  });

  test("shows each day by shape or by type, in a table as well, and the smallest types together", async () => {
    const { page } = await open("#usage?app=atlas");
    await page.getByText("The same as a table").click();
    const table = page.getByRole("region", { name: "Counted requests by day and" });
    const head = () => table.locator("th").allInnerTexts();
    expect(await head()).toEqual(["Day", "list", "search", "Total"]);
    expect(await table.locator("tbody tr").last().locator("td").allInnerTexts()).toEqual([TODAY, "100", "0", "100"]);
    await page.getByRole("button", { name: "type", exact: true }).click();
    expect(await head()).toEqual([
      "Day",
      expect.any(String),
      ...Array(6).fill(expect.any(String)),
      "5 others",
      "Total",
    ]);
    expect(page.url()).toContain("by=type");
    await page.reload();
    await page.getByText("The same as a table").click();
    expect(await head()).toContain("5 others");
    await page.close();
  });

  test("shows the numbers of the day that is pointed at", async () => {
    const { page } = await open("#usage?app=atlas");
    const bars = page.locator(".u-over");
    const { width = 0, height = 0 } = (await bars.boundingBox()) ?? {};
    await bars.hover({ position: { x: width - 5, y: height / 2 } });
    await page.getByText(`on ${TODAY}: 100`).waitFor();
    await page.getByRole("heading", { name: "Usage" }).hover();
    await page.getByText("in all").waitFor();
    await page.close();
  });

  test("shows the days that are asked for, and says what is wrong with them", async () => {
    const { page } = await open("#usage?app=atlas");
    const { value } = await read(`app=atlas&since=${daysAgo(2)}`);
    await page.getByLabel("Since").fill(daysAgo(2));
    await page.getByText(`${daysAgo(2)} to ${TODAY}`).waitFor();
    expect(await page.getByRole("status").innerText()).toContain(
      `${value.total.toLocaleString("en")} counted requests`,
    );
    await page.getByLabel("Until").fill(daysAgo(3));
    await page.getByText("is later than the last").waitFor();
    await page.close();
  });

  test("says how many the month will have, beside the plan that is given or typed", async () => {
    const { page } = await open("#usage?app=atlas");
    const { month } = (await read("app=atlas")).value;
    const forecast = page.getByRole("region", { name: "Forecast" });
    const text = await forecast.innerText();
    expect(text).toContain(`${month.forecast.toLocaleString("en")} expected`);
    expect(text).toContain(`${((month.forecast / 500) * 100).toFixed(1)} % of the plan`);
    await page.getByLabel("Plan").fill(String(month.forecast * 2));
    await page.getByLabel("Plan").press("Enter");
    await forecast.getByText("50.0 % of the plan").waitFor();
    await page.close();
  });

  test("says what could have been free, and how", async () => {
    const { page } = await open("#usage?app=atlas");
    const rows = page.getByRole("region", { name: "How they could have been free" }).locator("tbody tr");
    expect(await rows.locator("td").allInnerTexts()).toEqual([
      "drop per_page=20, which is the default",
      "1,134",
      expect.stringMatching(/^\d+\.\d %$/),
    ]);
    await page.close();
  });
});
