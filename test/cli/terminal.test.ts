/** What people see at a terminal: each command's output at 80 and 200 columns is that of a file in `golden`. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openProgress } from "../../cli/progress.ts";
import { openPlace, type Place, SHOP, shop } from "../support/cli.ts";
import { runInProcess } from "../support/in-process.ts";
import { openStore, type Store } from "../support/site.ts";

let store: Store;
let place: Place;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "", PRECAST_MEDIA_BASE_URL: "https://media.test" });
  await place.import(shop());
  await place.build();
  await store.database.execute(`INSERT INTO precast.usage (app_key, day, shape, status, count, saving) VALUES
    ('${SHOP}', '2026-01-01', 'list', 200, 1200, 'per_page=20'), ('${SHOP}', '2026-01-03', 'search', 504, 100, ''),
    ('other', '2026-01-02', 'populate', 404, 7, 'populate')`);
});
afterAll(async () => {
  await place.close();
  await store.close();
});

/** Colours and cursor movements. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they are made of
const ESCAPES = /\x1b\[[0-9;?]*[A-Za-z]/g;

/** What differs from run to run becomes 0: times, and pages that the database reads. */
function steady(text: string): string {
  return text
    .replace(ESCAPES, "")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "2026-01-01T00:00:00.000Z")
    .replace(/[\d.]+( m?s\b)/g, "0$1")
    .replace(/[\d,]+( pages? from| from disk)/g, "0$1");
}

const COMMANDS: readonly (readonly [string, readonly string[]])[] = [
  ["help", ["--help"]],
  ["edge-help", ["edge", "--help"]],
  ["status", ["status"]],
  ["usage", ["usage"]],
  ["build", ["build"]],
  ["explain-free", ["explain", "/posts?filter[category]=News&utm_source=x"]],
  ["explain-counted", ["explain", "/posts?filter[category]=News&per_page=2&sort=-price"]],
  ["explain-refused", ["explain", "/posts?filter[categori]=News"]],
];

describe.each([80, 200])("at %i columns", (columns) => {
  test.each(COMMANDS)("%s", async (name, args) => {
    const { stdout, stderr } = await runInProcess(
      {
        folder: place.folder,
        env: { DATABASE_URL: store.url ?? "", PRECAST_MEDIA_BASE_URL: "https://media.test" },
        columns,
      },
      args,
    );
    expect(stderr).toBe("");
    await expect(steady(stdout)).toMatchFileSnapshot(`golden/${name}-${columns}.txt`);
    // Lines that the program itself draws fit; sentences, SQL and addresses wrap.
    const drawn = stdout
      .replace(ESCAPES, "")
      .split("\n")
      .filter((line) => /[│┌└█]/.test(line));
    expect(drawn.filter((line) => line.length > columns)).toEqual([]);
  });

  test.each(["files", "entries"] as const)("the bar for %s", async (unit) => {
    let shown = "";
    const progress = openProgress({ isTTY: true, columns, write: (text) => (shown += text) }, unit);
    progress.update({ done: 203_519, total: 203_519, bytes: 513_000_000 });
    progress.stop();
    const frames = shown
      .replace(ESCAPES, "\r")
      .split("\r")
      .filter((frame) => frame.includes("%"));
    const last = frames.at(-1) ?? "";
    expect(last.length).toBeLessThan(columns);
    expect(last.replace(/\d+( \w+\/s)/, "0$1")).toMatch(
      /^[█░]+ 100% \| 203519\/203519 \w+( \| 513\.0 MB)? \| 0 \w+\/s \| \w+ left$/,
    );
  });
});
