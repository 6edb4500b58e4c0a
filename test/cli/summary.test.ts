/** `--summary` of build and deploy: a table in Markdown, appended to a file as GitHub Actions has one for each step. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Cdn, startCdn } from "../support/cdn.ts";
import {
  openEmbeddedPlace,
  type Place,
  readTree,
  SHOP,
  SHOP_FOLDER,
  shop,
  shopWithout,
  smallApp,
} from "../support/cli.ts";

let place: Place;
let cdn: Cdn;
let file: string;
beforeAll(async () => {
  place = await openEmbeddedPlace();
  cdn = await startCdn(() => ({ status: 200 }));
});
afterAll(async () => {
  await cdn.close();
  await place.close();
});

let count = 0;
beforeEach(() => {
  file = join(place.folder, `summary-${++count}.md`);
});

async function run(line: string): Promise<void> {
  const { code, stderr } = await place.call(`${line} --summary ${file}`);
  expect([code, stderr]).toEqual([0, ""]);
}

/** The tables of a text, as headings with rows of cells. */
function readTables(text: string): { title: string; rows: string[][] }[] {
  return text
    .split(/^### /m)
    .slice(1)
    .map((part) => {
      const [title = "", empty, ...lines] = part.trimEnd().split("\n");
      expect(empty).toBe("");
      const cellsOf = (line: string) => line.slice(2, -2).split(/(?<!\\) \| /);
      const [head, , ...rows] = lines.map(cellsOf);
      for (const row of rows) expect([row, row.length]).toEqual([row, head?.length]);
      return { title, rows: [head as string[], ...rows] };
    });
}

test("a build appends a row for each app: what it wrote and why, and how large the tree is", async () => {
  await place.import(shop());
  await place.import(smallApp("a_b", ["Ada", "Bob"]));
  writeFileSync(file, "# A step\n\nIts text");
  await run("build");
  const before = filesOf(SHOP_FOLDER);
  await place.import(shopWithout(1));
  await run("build --dry-run");
  await run("build");
  const after = filesOf(SHOP_FOLDER);
  const text = readFileSync(file, "utf8");
  expect(text).toMatch(/^# A step\n\nIts text\n### Precast build\n\n\| App \| Written \|.*\|\n\| --- \| ---: \|/);
  const [first, preview, second, ...more] = readTables(text);
  expect(more).toEqual([]);
  expect(first).toEqual({
    title: "Precast build",
    rows: [
      ["App", "Written", "Deleted", "Files", "Size", "Why", "Time"],
      [SHOP, String(before.size), "0", String(before.size), SIZE, "full: it was not built before", SECONDS],
      ["a_b", small(), "0", small(), SIZE, "full: it was not built before", SECONDS],
    ],
  });
  const written = [...after].filter(([path, body]) => before.get(path) !== body).length;
  const deleted = [...before.keys()].filter((path) => !after.has(path)).length;
  expect(deleted).toBeGreaterThan(0);
  const counts = [written, deleted, after.size].map(String);
  expect(second?.rows.slice(1)).toEqual([
    [SHOP, ...counts, SIZE, SINCE, SECONDS],
    ["a_b", "0", "0", small(), SIZE, SINCE, SECONDS],
  ]);
  expect(preview?.title).toBe("Precast build (dry run)");
  expect(preview?.rows[1]?.slice(0, 4)).toEqual([SHOP, ...counts]);
});

function filesOf(folder: string): Map<string, string> {
  return readTree(join(place.folder, "out", folder));
}

const small = () => String(filesOf("s-a_b/v1").size);

const SECONDS = expect.stringMatching(/^[\d.]+ s$/);
const SIZE = expect.stringMatching(/^[\d.]+ kB$/);
const SINCE = expect.stringMatching(/^incremental: since /);

test("a deploy appends what it uploaded, deleted and purged, to a target of any name", async () => {
  await place.import(shop());
  await place.call("build");
  const target = join(place.folder, "a|b <i>*c*");
  mkdirSync(target);
  const deploy = ["deploy", `file://${target}`, "--max-delete", "100", "--summary", file];
  expect((await place.call([...deploy, "--dry-run"])).code).toBe(0);
  expect((await place.call(deploy)).code).toBe(0);
  await place.import(shopWithout(1));
  await place.call("build");
  expect((await place.call([...deploy, "--purge", `${cdn.url}{path}`])).code).toBe(0);
  const [preview, first, second] = readTables(readFileSync(file, "utf8"));
  const head = ["Target", "Uploaded", "Deleted", "Unchanged", "Size", "Purged", "Time"];
  const name = expect.stringMatching(/a\\\|b( |%20)(\\<i\\>|%3Ci%3E)\\\*c\\\*$/);
  expect(preview?.title).toBe("Precast deploy (dry run)");
  expect(first).toEqual({ title: "Precast deploy", rows: [head, [name, COUNT, "0", "0", SIZE, "nothing", SECONDS]] });
  expect(preview?.rows[1]?.slice(0, 4)).toEqual(first?.rows[1]?.slice(0, 4));
  const purged = `${cdn.requests.length} requests`;
  expect(cdn.requests.length).toBeGreaterThan(5);
  expect(second?.rows[1]).toEqual([name, COUNT, COUNT, COUNT, SIZE, purged, SECONDS]);
});

const COUNT = expect.stringMatching(/^[1-9]\d*$/);

test("a file that cannot be written is refused before anything is done", async () => {
  for (const line of ["build --out elsewhere", `deploy file://${place.folder}/deployed`]) {
    const { code, stdout, stderr } = await place.call(`${line} --summary ${place.folder}`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(place.folder);
  }
  expect(["elsewhere", "deployed"].filter((name) => existsSync(join(place.folder, name)))).toEqual([]);
});

test("the folder of the file is made", async () => {
  const deep = join(place.folder, "deep", "summary.md");
  expect((await place.call(`build --summary ${deep}`)).code).toBe(0);
  expect(readTables(readFileSync(deep, "utf8")).length).toBe(1);
});
