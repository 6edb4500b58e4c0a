/** The history of builds: what the last ones wrote and why, beside the tree and never a part of it. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type BuildRecord, readHistory } from "../../cli/builder/history.ts";
import type { AppReport } from "../../cli/builder/report.ts";
import { openPlace, type Place, readTree, smallApp } from "../support/cli.ts";
import { openStore, type Store } from "../support/site.ts";

let store: Store;
let place: Place;
beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
});
afterAll(async () => {
  await place.close();
  await store.close();
});
beforeEach(async () => {
  rmSync(join(place.folder, "out"), { recursive: true, force: true });
  await store.database.execute("DELETE FROM precast.apps");
  await place.import(smallApp("one", ["A", "B"]));
});

const file = () => join(place.folder, "out", ".precast", "history.json");
const history = () => readHistory(join(place.folder, "out"));
const build = (more = "") => place.json<{ readonly apps: readonly AppReport[] }>(`build ${more}`);

/** What a build reports of an app, as the history has it. */
function linesOf(reports: readonly AppReport[]): object[] {
  return reports.map(({ key, added: _, changed: __, ...rest }) => ({ app: key, ...rest }));
}

function withoutTime(records: readonly BuildRecord[]): object[] {
  return records.map(({ built_at: _, ...rest }) => rest);
}

test("has each build that wrote something, the last first, with the numbers that it reported and why it was so", async () => {
  const first = await build();
  await place.import(smallApp("one", ["A", "B", "C"]));
  const second = await build();
  const third = await build("--full");
  await place.import(smallApp("two", ["A"]));
  const fourth = await build();
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'two'");
  const fifth = await build();
  const [gone, two] = [fifth.apps[1], fourth.apps[1]] as [AppReport, AppReport];
  expect(withoutTime(history())).toEqual(
    linesOf([gone, two, ...[third, second, first].map(({ apps }) => apps[0] as AppReport)]),
  );
  expect(history()).toMatchObject([
    { app: "two", mode: "removal", reason: "the app is no longer in the database", deleted: 10, bytes: 0 },
    { app: "two", mode: "full", reason: "it was not built before", written: 10 },
    { app: "one", mode: "full", reason: "requested by --full", written: 0, unchanged: 12 },
    { app: "one", mode: "incremental", written: 9, unchanged: 3 },
    { app: "one", mode: "full", reason: "it was not built before", written: 11 },
  ]);
  const times = history().map(({ built_at }) => built_at);
  expect(times).toEqual([...times].sort().reverse());
});

test("is not touched by a build that changes nothing, nor by a dry run, nor when a build fails", async () => {
  await build();
  const before = readFileSync(file(), "utf8");
  await build();
  await place.import(smallApp("one", ["A"]));
  await build("--dry-run");
  expect((await place.call("build --app nobody")).code).toBe(1);
  expect(readFileSync(file(), "utf8")).toBe(before);
});

test("keeps the last 20 builds of an app, and those of an app that is seldom built", async () => {
  await place.import(smallApp("seldom", ["A"]));
  await build();
  for (let number = 0; number < 22; number++) await build("--app one --full");
  const reasons = (app: string) => history().flatMap((record) => (record.app === app ? [record.reason] : []));
  expect(reasons("one")).toEqual(Array.from({ length: 20 }, () => "requested by --full"));
  expect(reasons("seldom")).toEqual(["it was not built before"]);
});

test.each(["", "{", "[1]", '[{"app":"one"}]'])("begins anew when it is damaged: %j", async (text) => {
  await build();
  writeFileSync(file(), text);
  expect(history()).toEqual([]);
  expect(await place.call("build --full")).toMatchObject({ code: 0, stderr: "" });
  expect(history()).toMatchObject([{ app: "one", reason: "requested by --full" }]);
});

test("replaces a folder in its place, and is no reason to fail", async () => {
  await build();
  rmSync(file());
  mkdirSync(join(file(), "folder"), { recursive: true });
  expect(await place.call("build --full")).toMatchObject({ code: 0, stderr: "" });
  expect(history()).toMatchObject([{ app: "one" }]);
});

test("is never deployed, verified or served, and leaves nothing else behind", async () => {
  await build();
  const out = readTree(join(place.folder, "out"));
  expect(await place.call("verify")).toMatchObject({ code: 0 });
  expect(await place.call(`deploy file://${join(place.folder, "copy")}`)).toMatchObject({ code: 0, stderr: "" });
  expect(readTree(join(place.folder, "copy"))).toEqual(out);
  expect(existsSync(join(place.folder, "copy", ".precast", "history.json"))).toBe(false);
  expect(readdirSync(join(place.folder, "out", ".precast")).sort()).toEqual([
    "changes.json",
    "history.json",
    "s-one.json",
  ]);
});
