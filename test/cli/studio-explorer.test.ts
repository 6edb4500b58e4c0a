/** The explorer of the studio: requests are put together, priced and sent in a real browser, beside the real server. */
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExploredAnswer } from "../../cli/studio/explore.ts";
import { BROWSER, expectAccessible, openBrowser, openPage, startStudio } from "../support/browser.ts";
import { idOf, openEmbeddedPlace, type Place, type RunningServer } from "../support/cli.ts";
import type { Bundle } from "../support/model-bundle.ts";
import { until } from "../support/until.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));
const ATLAS = { appKey: "atlas" };

/** Longer lists than the demo has, of larger entries. */
const STOCK: Bundle = {
  app: { key: "stock", name: "Stock" },
  types: [
    {
      slug: "goods",
      name: "Goods",
      description: "",
      icon: "",
      per_page: 100,
      fields: ["title", "serial"].map((name) => ({
        ...{ name, type: name === "serial" ? "number" : "text", label: name, required: false, searchable: true },
        ...(name === "serial" ? { searchable: false } : {}),
      })),
      filterable_fields: ["title"],
      sortable_fields: [],
    },
  ],
  entries: {
    goods: Array.from({ length: 250 }, (_, index) => ({
      id: idOf(index),
      status: "published" as const,
      published_at: "2026-01-20T15:30:00Z",
      created_at: "2026-01-20T15:30:00Z",
      updated_at: "2026-01-20T15:30:00Z",
      data: { title: `Good ${index} ${"x".repeat(5_000)}`, serial: 1e21 },
    })),
  },
};

let place: Place;
let server: RunningServer;
let studio: string;

beforeAll(async () => {
  place = await openEmbeddedPlace();
  await place.call(["import", DEMO]);
  await place.import(STOCK);
  await place.build();
  server = await place.serve();
  studio = `${await startStudio(place)}/`;
});
afterAll(() => place.close());

async function answerOf(target: string, app = "atlas"): Promise<ExploredAnswer> {
  const response = await fetch(`${studio}data/answer?${new URLSearchParams({ app, target })}`);
  expect(response.status).toBe(200);
  return (await response.json()) as ExploredAnswer;
}

const TARGETS = [
  "/api/v1/_schemas",
  "/api/v1/_schemas/cities",
  "/api/v1/cities",
  "/api/v1/cities?page=3",
  "/api/v1/cities?page=999",
  "/api/v1/cities?filter[climate]=highland",
  "/api/v1/cities?filter[climate]=none",
  "/api/v1/cities?filter[climate][like]=high",
  "/api/v1/cities?sort=-name&per_page=3&fields=name",
  "/api/v1/cities?filter[nope]=1",
  "/api/v1/cities?per_page=101",
  "/api/v1/cities/search?q=lighthouse",
  "/api/v1/cities/search?q=x",
  "/api/v1/journeys/334fd717-7e45-59e0-b78a-34d7538538cc?populate=stops",
  "/api/v1/journeys/334fd717-7e45-59e0-b78a-34d7538538cd?populate=stops",
  "/api/v1/journeys/334fd717-7e45-59e0-b78a-34d7538538cc",
  "/api/v1/nope",
  "/api/v1/a/b/c",
];

/** The headers that the API's answers are made with, and not their transport. */
const HEADERS = ["X-Request-Counted", "X-Request-Warning", "Cache-Status", "Cache-Control", "ETag", "Vary"];

test("what the studio answers is what the server answers, and only the server counts", async () => {
  let counted = 0;
  for (const target of TARGETS) {
    const expected = await server.get(target, ATLAS);
    const { status, body, headers } = await answerOf(target);
    expect([target, status, body]).toEqual([target, expected.status, expected.text]);
    for (const name of HEADERS)
      expect([target, name, headers[name]]).toEqual([target, name, expected.headers[name.toLowerCase()]]);
    if (headers["X-Request-Counted"] === "true") counted++;
  }
  expect(counted).toBe(7);
  await server.stop();
  expect((await place.json<{ total: number }>("usage")).total).toBe(counted);
  server = await place.serve();
});

test("an answer tells where it is from: a file of the tree, the database by an index or not, or what was kept", async () => {
  const fromTree = await answerOf("/api/v1/cities?sort=name");
  expect([fromTree.source, fromTree.query]).toEqual(["tree", null]);
  expect(fromTree.file).toEqual({ path: "out/s-atlas/v1/cities/sort/name.json", exists: true, has_tree: true });
  expect((await answerOf("/api/v1/cities?filter[climate]=none")).file).toMatchObject({ exists: false });
  const target = "/api/v1/cities?filter[name][starts_with]=Par&sort=name";
  const found = await answerOf(target);
  expect([found.source, found.file]).toEqual(["database", null]);
  expect(found.query).toMatchObject({
    byIndex: expect.any(Boolean),
    sentence: expect.stringMatching(/ index | entries/),
    sql: expect.stringMatching(/SELECT/),
    plan: expect.stringMatching(/^-> /),
    values: expect.stringContaining("atlas"),
  });
  expect((await answerOf(target)).source).toBe("kept");
  expect((await answerOf("/api/v1/cities?sort=nope")).source).toBe("none");
});

describe.skipIf(BROWSER === null)("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  async function open(request = "", app = "atlas", size?: { width: number; height: number }) {
    const watched = await openPage(browser, size);
    await watched.page.goto(`${studio}#explorer?${new URLSearchParams({ app, ...(request ? { request } : {}) })}`);
    await url(watched.page).waitFor();
    return watched;
  }
  const url = (page: Page) => page.getByRole("textbox", { name: "Request", exact: true });
  const select = (page: Page, name: string) => page.getByRole("combobox", { name, exact: true });
  const price = (page: Page) => page.getByRole("region", { name: "Price" }).getByRole("status");
  const answer = (page: Page) => page.locator("p[role=status]");

  /** Waits until the page says what `precast explain` says of the request. */
  async function expectPrice(page: Page, request: string) {
    expect(await url(page).inputValue()).toBe(request);
    const { rule, counted } = await explain(request);
    await price(page).getByText(rule, { exact: false }).waitFor();
    expect(await price(page).innerText()).toMatch(counted ? /^Counted/ : /^Free/);
  }
  type Explained = {
    counted: boolean;
    rule: string;
    refusal: { message: string } | null;
    nearest_free: { target: string } | null;
  };
  const explain = async (request: string) => {
    const { stdout } = await place.call(["explain", request, "--app", "atlas", "--json"]);
    return JSON.parse(stdout) as Explained;
  };

  test("a request is put together by clicking, and its price is what the server would say", async () => {
    const { page, foreign, errors } = await open();
    await expectPrice(page, "/api/v1/countries");
    await select(page, "Type").selectOption("cities");
    await expectPrice(page, "/api/v1/cities");
    await page.getByRole("button", { name: "Add a filter" }).click();
    await select(page, "Field").selectOption("elevation_m");
    await page.getByLabel("Value").fill("2000");
    await expectPrice(page, "/api/v1/cities?filter[elevation_m]=2000");
    await select(page, "Operator").selectOption("gte");
    await expectPrice(page, "/api/v1/cities?filter[elevation_m][gte]=2000");
    await select(page, "Sort").selectOption("-population");
    await page.getByLabel("Page", { exact: true }).fill("2");
    await page.getByLabel("Per page").fill("5");
    await page.getByText("Fields: as by default").click();
    await page.getByRole("checkbox", { name: "name", exact: true }).check();
    await page.getByRole("checkbox", { name: "published_at" }).check();
    await expectPrice(
      page,
      "/api/v1/cities?filter[elevation_m][gte]=2000&sort=-population&page=2&per_page=5&fields=name,published_at",
    );
    await page.getByRole("button", { name: "Remove the filter on elevation_m" }).click();
    await page.locator("fieldset > button:focus").getByText("Add a filter").waitFor();
    await select(page, "What").selectOption("search");
    await page.getByLabel("Search for (q)").fill("old port");
    await expectPrice(
      page,
      "/api/v1/cities/search?sort=-population&page=2&per_page=5&fields=name,published_at&q=old%20port",
    );
    await select(page, "What").selectOption("entry");
    await page.getByText("Populate: as by default").click();
    await page.getByRole("checkbox", { name: "country_id" }).check();
    await expectPrice(page, await url(page).inputValue());
    expect(await url(page).inputValue()).toMatch(/^\/api\/v1\/cities\/[0-9a-f-]{36}\?populate=country_id$/);
    await select(page, "What").selectOption("catalog");
    await expectPrice(page, "/api/v1/_schemas");
    expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
    await page.close();
  });

  test("the operators of a filter are those that its field has", async () => {
    const { page } = await open("/api/v1/cities?filter[capital]=true&filter[population]=1");
    const operators = (at: number) => select(page, "Operator").nth(at).locator("option").allInnerTexts();
    expect(await operators(0)).toEqual(["=", "≠", "contains", "starts with", "is one of", "is none of"]);
    expect(await operators(1)).toContain("≥");
    await page.close();
  });

  test("a request is typed, as a URL of any form, and the form follows", async () => {
    const { page } = await open();
    await url(page).fill(
      "https://api.example.com/api/v1/cities/search?q=Zürich&filter%5Bclimate%5D=alpine&page=2&utm=1",
    );
    expect(await select(page, "What").inputValue()).toBe("search");
    expect(await select(page, "Type").inputValue()).toBe("cities");
    expect(await page.getByLabel("Search for (q)").inputValue()).toBe("Zürich");
    expect(await select(page, "Field").inputValue()).toBe("climate");
    expect(await page.getByLabel("Value").inputValue()).toBe("alpine");
    expect(await page.getByLabel("Page", { exact: true }).inputValue()).toBe("2");
    expect(await price(page).innerText()).toContain("utm: no endpoint has it");
    await url(page).fill("journeys?sort=-title");
    expect(await select(page, "Sort").inputValue()).toBe("-title");
    await url(page).fill("/api/v1/a/b/c");
    await page.getByRole("button", { name: "Begin with a list" }).click();
    await expectPrice(page, "/api/v1/countries");
    await page.close();
  });

  test("the address keeps the request, and a link to it shows it", async () => {
    const { page } = await open("/api/v1/cities?page=2");
    await url(page).fill("/api/v1/cities?page=3");
    await page.reload();
    await url(page).waitFor();
    expect(await url(page).inputValue()).toBe("/api/v1/cities?page=3");
    await page.evaluate('location.hash = "#explorer?app=atlas&request=%2Fapi%2Fv1%2Fcities%3Fpage%3D2"');
    await until("the request of the address", async () => (await url(page).inputValue()) === "/api/v1/cities?page=2");
    await page.close();
  });

  test.each([
    ["The same answer:", "/api/v1/cities?filter[climate]=highland&sort=-population&per_page=25"],
    ["The nearest free request:", "/api/v1/cities?filter[climate]=highland&sort=name&page=2"],
    ["The nearest free request:", "/api/v1/cities?filter[population][gt]=1000&page=2"],
  ])("%s %s is taken with its button", async (said, request) => {
    const { page } = await open(request);
    await expectPrice(page, request);
    await page.getByText(said).waitFor();
    await page.getByRole("button", { name: "Take it" }).click();
    await expectPrice(page, (await explain(request)).nearest_free?.target ?? "");
    expect(await page.getByRole("button", { name: "Take it" }).count()).toBe(0);
    await page.close();
  });

  test("what is refused, ignored or warned of is said before it is sent, and the refusal is the answer", async () => {
    const request = "/api/v1/cities?sort=nmae&filter[population]=many&filter[name][like]=x";
    const { page } = await open(request);
    const said = await price(page).innerText();
    const { refusal } = await explain(request);
    expect(said).toContain(`400 INVALID_SORT ${refusal?.message}`);
    expect(said).toContain("filter[name][like] was ignored, use filter[name][contains]");
    expect(said).toContain('filter[population]: "many" is no number');
    await page.getByRole("button", { name: "Send" }).click();
    await answer(page).getByText("400").waitFor();
    await page.locator(".json").getByText('"INVALID_SORT"', { exact: true }).waitFor();
    await page.close();
  });

  test("an answer is sent for and read with the keyboard alone", async () => {
    const { page } = await open("/api/v1/cities?filter[climate]=highland");
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await url(page).focus();
    await press("End");
    await page.keyboard.type("&page=1");
    await press("Enter");
    await answer(page).getByText("200").waitFor();
    expect(await answer(page).innerText()).toMatch(/^200 Counted .* from the database$/);
    await press("Tab", "Tab", "Enter");
    expect(await url(page).inputValue()).toBe("/api/v1/cities?filter[climate]=highland");
    // The button is gone: the focus is where Enter sends what it has chosen.
    await press("Enter");
    await answer(page).getByText("from the tree").waitFor();
    // An entry of the list is unfolded, and its id followed.
    await page.locator(".json summary").nth(2).focus();
    await press("Enter");
    await page.locator(".json button.link").first().focus();
    await press("Enter");
    await page.getByText(/^GET \/api\/v1\/cities\/[0-9a-f-]{36}$/).waitFor();
    expect(await url(page).inputValue()).toMatch(/^\/api\/v1\/cities\/[0-9a-f-]{36}$/);
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Answer");
    await page.close();
  });

  test("the whole body is copied, and a page of a hundred large entries can be used at once", async () => {
    const { page, errors } = await open("/api/v1/goods", "stock");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await url(page).press("Enter");
    await page.locator(".json").getByText("[100 items]").waitFor();
    expect(await page.locator(".json summary").count()).toBe(103);
    await page.locator(".json summary").nth(101).click();
    await page
      .locator(".json")
      .getByText(/^"Good \d+ x{1900,}…$/)
      .waitFor();
    // JSON.parse would make it 1e+21, which is not what the API sends.
    await page.locator(".json").getByText("1000000000000000000000", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Copy" }).first().click();
    await page.getByText("Copied").waitFor();
    const { text } = await server.get("/api/v1/goods", { appKey: "stock" });
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(text);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("the request is shown as code in four languages, for the API at any address", async () => {
    const { page } = await open("/api/v1/cities?filter[climate]=highland");
    const code = page.getByRole("region", { name: "Call" }).locator("pre");
    await page.getByLabel("Address of the API").fill("https://api.example.com/");
    expect(await code.innerText()).toBe(
      "curl -g -H 'X-App-Key: atlas' 'https://api.example.com/api/v1/cities?filter[climate]=highland'",
    );
    await page.getByRole("button", { name: "TypeScript" }).click();
    expect(await code.innerText()).toContain('api.cities.list({ filter: { climate: "highland" } })');
    await page.getByRole("button", { name: "Swift" }).click();
    expect(await code.innerText()).toContain("URLSession");
    await page.getByRole("button", { name: "Kotlin" }).click();
    expect(await code.innerText()).toContain("HttpURLConnection");
    await page.close();
  });

  test("is accessible in both widths and colours, and never wider than the page", async () => {
    for (const width of [1280, 390])
      for (const colorScheme of ["light", "dark"] as const) {
        const request = "/api/v1/cities?filter[climate]=highland&filter[nope]=&sort=-population&per_page=25&x=1";
        const { page, foreign, errors } = await open(request, "atlas", { width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.getByRole("button", { name: "Send" }).click();
        await page.locator(".json summary").nth(2).click();
        await page.getByText("SQL", { exact: true }).click();
        await page.getByText("Fields: as by default").click();
        await expectAccessible(page);
        expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
        expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
        await page.close();
      }
  });
});
