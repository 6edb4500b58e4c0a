/** The studio's view on the tree: every file is counted in its part, and what the last builds wrote is shown. */
import { cpSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { measureParts, type Tree, type TreePart } from "../../cli/studio/tree.ts";
import { readTreeState } from "../../shared/tree.ts";
import { BROWSER, expectAccessible, openBrowser, openPage, startStudio } from "../support/browser.ts";
import { openPlace, type Place, SHOP, shop, shopWithout, smallApp } from "../support/cli.ts";
import { openStore, type Store } from "../support/site.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));

let store: Store;
let place: Place;
let url: string;
const out = () => join(place.folder, "out");

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.call(["import", DEMO]);
  await place.import(shop());
  await place.call("build");
  await place.import(smallApp("unbuilt", ["A"]));
  url = await startStudio(place);
});
afterAll(async () => {
  await place.close();
  await store.close();
});

async function read<T>(view: string, app: string): Promise<T> {
  return (await (await fetch(new URL(`data/${view}?app=${app}`, url))).json()) as T;
}

const sum = (parts: readonly TreePart[], measure: "files" | "bytes") =>
  parts.reduce((total, part) => total + part[measure], 0);

/** Counts the files of a tree's folder by names that a test can see: `posts/filter/category`, `posts/entry`. */
function countFiles(folder: string): Map<string, { files: number; bytes: number }> {
  const counts = new Map<string, { files: number; bytes: number }>();
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const status = statSync(join(folder, path));
    if (status.isDirectory()) continue;
    const name = path.replace(/\/sort\/-?/, "/sort/").replace(/(\/page|\/entry|\/filter\/[^/]+)\/.*/, "$1");
    const before = counts.get(name) ?? { files: 0, bytes: 0 };
    counts.set(name, { files: before.files + 1, bytes: before.bytes + status.size });
  }
  return counts;
}

function namePart({ type, kind, field }: TreePart): string {
  if (kind === "catalog") return "_schemas.json";
  if (kind === "schema") return `_schemas/${type}.json`;
  return [type, kind, ...(field === null ? [] : [field])].join("/") + (kind === "sort" ? ".json" : "");
}

describe("the data of the view on the tree", () => {
  test.each([
    ["atlas", "s-atlas"],
    [SHOP, "x-53686f70"],
  ])("counts all files of %s by type, kind and field, as they are on the disk", async (app, folder) => {
    const parts = await read<readonly TreePart[]>("parts", app);
    expect(new Map(parts.map((part) => [namePart(part), { files: part.files, bytes: part.bytes }]))).toEqual(
      countFiles(join(out(), folder, "v1")),
    );
    const state = readTreeState(out(), app);
    expect([sum(parts, "files"), sum(parts, "bytes")]).toEqual([state?.files, state?.bytes]);
  });

  test("has what `precast status` says, and what the last builds wrote", async () => {
    const { status, behind, history } = await read<Tree>("tree", "atlas");
    const { apps } = await place.json<{ readonly apps: readonly { key: string; tree: object }[] }>("status");
    expect(status).toEqual(apps.find(({ key }) => key === "atlas")?.tree);
    expect(behind).toBe("up to date");
    expect(history).toMatchObject([{ app: "atlas", mode: "full", written: status?.files, deleted: 0 }]);
  });

  test("is that of the new tree after a build", async () => {
    const before = await read<readonly TreePart[]>("parts", SHOP);
    await place.import(shopWithout(1));
    expect((await read<Tree>("tree", SHOP)).behind).toBe("1 entry changed since");
    expect(await read("parts", SHOP)).toEqual(before);
    await place.call(`build --app ${SHOP}`);
    expect(await read("parts", SHOP)).not.toEqual(before);
    const { behind, history } = await read<Tree>("tree", SHOP);
    expect([behind, history.map(({ mode }) => mode)]).toEqual(["up to date", ["incremental", "full"]]);
  });

  test("is empty for an app that is not built", async () => {
    expect(await read("tree", "unbuilt")).toEqual({ status: null, behind: "", history: [] });
    expect(await read("parts", "unbuilt")).toEqual([]);
  });

  test("leaves out what no build has written, and has what exists only where the tree was deployed", async () => {
    const copy = join(place.folder, "copy");
    cpSync(out(), copy, { recursive: true });
    const [file, size] = ["s-atlas/v1/cities/page/1.json", statSync(join(out(), "s-atlas/v1/cities/page/1.json")).size];
    const parts = await measureParts(copy, "atlas");
    rmSync(join(copy, file));
    writeFileSync(join(copy, ".precast", "elsewhere.json"), JSON.stringify([[file, { sha256: "0".repeat(64), size }]]));
    mkdirSync(join(copy, "s-atlas/v1/cities/notes"));
    for (const name of ["cities/notes/1.json", "README"]) writeFileSync(join(copy, "s-atlas/v1", name), "{}");
    expect(await measureParts(copy, "atlas")).toEqual(parts);
  });
});

describe.skipIf(BROWSER === null)("the view on the tree", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  const open = async (app: string, size?: { width: number; height: number }) => {
    const watched = await openPage(browser, size);
    await watched.page.goto(`${url}#tree?app=${app}`);
    await watched.page.getByRole("heading", { name: "The last builds" }).waitFor();
    return watched;
  };

  test("asks no other machine, and is accessible in both widths and colours, at each level", async () => {
    for (const width of [1280, 390])
      for (const colorScheme of ["light", "dark"] as const) {
        const { page, foreign, errors } = await open("atlas", { width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.getByRole("list", { name: "Kinds" }).waitFor();
        await expectAccessible(page);
        expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
        await page.getByRole("button", { name: /^cities \d/ }).click();
        await expectAccessible(page);
        expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
        await page.close();
      }
  });

  test("shows the share of each kind, by files and by size, and the parts of a part, with the keyboard alone", async () => {
    const { page } = await open("atlas");
    const parts = await read<readonly TreePart[]>("parts", "atlas");
    const kinds = page.getByRole("list", { name: "Kinds" });
    await kinds.waitFor();
    for (const measure of ["files", "bytes"] as const) {
      const filters = parts.filter(({ kind }) => kind === "filter");
      const share = ((sum(filters, measure) / sum(parts, measure)) * 100).toFixed(1);
      expect(await kinds.innerText()).toContain(`filters ${share} %`);
      await page.getByRole("button", { name: "bytes", exact: true }).click();
    }
    const swatch = kinds.locator(".swatch.is-entry");
    const trail = page.getByRole("navigation", { name: "Shown part" });
    for (const name of ["cities", "filters"]) {
      await page.getByRole("button", { name: new RegExp(`^${name} \\d`) }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("region", { name: `Parts of ${name}` }).waitFor();
    }
    expect(await trail.getByRole("button").allInnerTexts()).toEqual(["atlas", "cities", "filters"]);
    expect(await page.evaluate("document.activeElement.textContent")).toBe("filters");
    await trail.getByRole("button", { name: "cities" }).click();
    const colour = "(element) => getComputedStyle(element).backgroundColor";
    const entries = page.locator(".map .area", { hasText: /^entries/ });
    expect(await entries.evaluate(`(${colour})`)).toBe(await swatch.evaluate(`(${colour})`));
    await page.getByRole("region", { name: "Parts of cities" }).getByRole("button", { name: "filters" }).click();
    const fields = parts.filter(({ type, kind }) => type === "cities" && kind === "filter");
    const rows = page.getByRole("region", { name: "Parts of filters" }).locator("tbody tr");
    expect(await rows.locator("td:first-child").allInnerTexts()).toEqual(
      fields.sort((a, b) => b.bytes - a.bytes).map(({ field }) => field),
    );
    await trail.getByRole("button", { name: "atlas" }).click();
    await page.getByRole("region", { name: "Parts of atlas" }).getByRole("button", { name: "journeys" }).click();
    expect(await trail.getByRole("button").allInnerTexts()).toEqual(["atlas", "journeys"]);
    await page.close();
  });

  test("draws areas in proportion to files, none outside of the map and none over another", async () => {
    const { page } = await open("atlas");
    await page.getByRole("list", { name: "Kinds" }).waitFor();
    const map = await page.getByRole("list", { name: "atlas: its parts by files" }).boundingBox();
    const boxes = await Promise.all((await page.locator(".map .box").all()).map((box) => box.boundingBox()));
    const areas = boxes.map((box) => (box === null ? 0 : box.width * box.height));
    const whole = (map?.width ?? 0) * (map?.height ?? 0);
    const parts = await read<readonly TreePart[]>("parts", "atlas");
    const types = new Map<string | null, number>();
    for (const { type, files } of parts) types.set(type, (types.get(type) ?? 0) + files);
    const shares = [...types.values()].sort((a, b) => b - a).map((files) => files / sum(parts, "files"));
    for (const [index, share] of shares.entries()) expect((areas[index] ?? 0) / whole).toBeCloseTo(share, 1);
    expect(areas.reduce((total, area) => total + area, 0)).toBeLessThanOrEqual(whole + 1);
    await page.close();
  });

  test("says that there is no tree", async () => {
    const { page } = await open("unbuilt");
    await page.getByText("The app unbuilt has no tree").waitFor();
    await page.getByText("None is recorded yet").waitFor();
    await page.close();
  });
});
