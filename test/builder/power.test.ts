/** Lists of a build damaged by a power failure: the next build still makes the exact tree, and says why it is full. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { leftoverProblems, readChanges, readFiles, treeProblems } from "../support/build-problems.ts";
import { type Builder, openBuilder } from "../support/builder.ts";
import { MAIN, type Place } from "../support/cli.ts";
import { newPost, POSTS, post, SHOP } from "../support/posts.ts";

const KILLER = pathToFileURL(join(import.meta.dirname, "../support/kill-at.mjs")).href;
const OTHERS = `INSERT INTO precast.apps (key) VALUES ('going'), ('Other');
INSERT INTO precast.content_types (app_id, slug) SELECT id, 'notes' FROM precast.apps WHERE key IN ('going', 'Other');`;
/** Files are added, changed and deleted, and an app is deleted. */
const CHANGES = `${newPost(7)} ${newPost(8)} ${newPost(9)}
DELETE FROM precast.entries WHERE ${post(4)};
UPDATE precast.entries SET data = data || '{"category": "odd"}' WHERE ${POSTS} AND data ->> 'category' = 'even';
DELETE FROM precast.content_types WHERE slug = 'pages';
DELETE FROM precast.apps WHERE key = 'going';`;

/** What may be left of a list that was being written. */
const CUTS: Record<string, (text: string) => string> = {
  "is empty": () => "",
  "ends in its first line": (text) => text.slice(0, 9),
  "ends in a change": (text) => text.slice(0, Math.floor(text.length / 2)),
  "ends behind a change": (text) => text.slice(0, text.indexOf("\n", text.length / 2)),
  "has a hole": (text) => text.replace(/\n\{"change":[^\n]*\n/, (line) => "\0".repeat(line.length)),
};

let place: Place;
let write: Builder["write"];
let builder: Builder;
let out: string;
const own = (...names: string[]) => join(out, ".precast", ...names);

beforeAll(async () => {
  builder = await openBuilder();
  ({ place, write } = builder);
});
afterAll(() => builder.close());
beforeEach(async () => {
  out = join(place.folder, "out");
  await builder.reset(`${SHOP} ${OTHERS}`);
  await build();
  await write(CHANGES);
});

async function build(line = ""): Promise<string> {
  const { code, stdout, stderr } = await place.run(`build ${line}`);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

/** Differences from the tree of a full build into a new folder, and leftovers that such a build does not have. */
async function problems(): Promise<string[]> {
  const fresh = join(mkdtempSync(join(place.folder, "fresh-")), "out");
  await build(`--full --out ${fresh}`);
  const after = readFiles(out);
  return [...treeProblems(readFiles(fresh), after, out), ...leftoverProblems(out, ["shop", "Other"])];
}

/** Kills a build when this part of its files is in place. */
async function leaveUnfinished(part: number): Promise<void> {
  const copy = join(mkdtempSync(join(place.folder, "copy-")), "out");
  cpSync(out, copy, { recursive: true, preserveTimestamps: true });
  const run = (folder: string, env: Record<string, string>) =>
    place.spawn(process.execPath, [MAIN, "build", "--out", folder], { NODE_OPTIONS: `--import=${KILLER}`, ...env });
  await run(copy, { PRECAST_TEST_COUNT: join(copy, "..", "calls") });
  const calls = readFileSync(join(copy, "..", "calls"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("main"));
  const inTree = [...calls.keys()].filter((call) => !/\/\.precast(\/|$)/.test(calls[call] as string));
  const call = inTree[Math.floor(inTree.length * part)] as number;
  expect((await run(out, { PRECAST_TEST_KILL: `main:${call + 1}` })).code).toBe(null);
  expect(existsSync(own("ready", "changes.json"))).toBe(true);
}

function cut(list: string, how: (text: string) => string): void {
  writeFileSync(list, how(readFileSync(list, "utf8")));
}

/** Leaves the lock of a process that no longer exists. */
function leaveLock(): void {
  writeFileSync(own("build.lock"), `${spawnSync("true").pid}\n`);
}

describe("the list of changes of a build that died while it put files in place", () => {
  const WHY = "full: the list of changes of an interrupted build cannot be read";

  test.each(Object.keys(CUTS))("%s: the next build builds all apps in full", async (how) => {
    await leaveUnfinished(0.4);
    cut(own("ready", "changes.json"), CUTS[how] as (text: string) => string);
    expect(await place.run("build --dry-run")).toMatchObject({ code: 0, stdout: expect.stringContaining(WHY) });
    const said = await build();
    expect(said).toMatch(new RegExp(`^shop: .*${WHY}\\)$`, "m"));
    expect(said).toMatch(new RegExp(`^Other: .*${WHY}\\)$`, "m"));
    expect(await problems()).toEqual([]);
    expect(await build()).toMatch(/^shop: wrote 0 files, .*incremental: since/m);
  });

  test("ends in a change: an app left out of the next build is not deployed before it is built in full", async () => {
    await leaveUnfinished(0.9);
    cut(own("ready", "changes.json"), CUTS["ends in a change"] as (text: string) => string);
    expect(await build("--app Other")).toContain(WHY);
    const target = pathToFileURL(join(place.folder, "web")).href;
    expect(await place.run(`deploy ${target}`)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Not every app in out has a finished build\. Run `precast build` first\.\n$/),
    });
    expect(await build()).toMatch(/^shop: .*full: the state of its last build cannot be read\)$/m);
    expect(await problems()).toEqual([]);
  });

  test("is empty: a build from a database without apps fails and deletes no tree", async () => {
    await leaveUnfinished(0.4);
    cut(own("ready", "changes.json"), () => "");
    await write("DELETE FROM precast.apps");
    const { code, stderr } = await place.run("build");
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^The database has no app, but the tree in out contains .*shop/),
    ]);
    expect(existsSync(join(out, "s-shop"))).toBe(true);
  });

  test("lacks its end: the next build reports the changes that it still names", async () => {
    await leaveUnfinished(0.9);
    cut(own("ready", "changes.json"), (text) => text.slice(0, text.lastIndexOf('],"tags"')));
    const before = readFileSync(own("ready", "changes.json"), "utf8").match(/"file":"[^"]+"/g) ?? [];
    await build();
    const told = new Set(readChanges(out)?.changes.map(({ file }) => `"file":"${file}"`));
    expect(before.length).toBeGreaterThan(10);
    expect(before.filter((file) => !told.has(file))).toEqual([]);
  });
});

test("the next build reports what can be read of a truncated changes.json that was not yet processed", async () => {
  await build();
  const whole = readChanges(out)?.changes.length ?? 0;
  cut(own("changes.json"), CUTS["ends in a change"] as (text: string) => string);
  leaveLock();
  expect(await build()).toMatch(/^shop: wrote 0 files, .*incremental: since/m);
  const told = readChanges(out)?.changes.length;
  expect(told).toBeGreaterThan(whole / 3);
  expect(told).toBeLessThan(whole);
  expect(await problems()).toEqual([]);
});

describe("the list of files that exist only where the tree was deployed", () => {
  const WHY = "full: the list of its files that exist only at the deploy target cannot be read";
  const target = () => pathToFileURL(join(place.folder, "deployed")).href;

  /** Begins a tree from the deployed one. */
  beforeEach(async () => {
    rmSync(join(place.folder, "deployed"), { recursive: true, force: true });
    await build();
    expect((await place.run(`deploy ${target()}`)).code).toBe(0);
    rmSync(out, { recursive: true });
    await build(`--state ${target()}`);
  });

  test.each([
    ["is empty", ""],
    ["ends early", '[["s-shop/v1/_sch'],
  ])("%s: deploy refuses, verify finds differences, and the next build builds all apps in full", async (_, text) => {
    writeFileSync(own("elsewhere.json"), text);
    expect(await place.run(`deploy ${target()}`)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/`precast build`/),
    });
    expect((await place.run("verify")).code).toBe(2);
    expect(await place.run("build --dry-run")).toMatchObject({ code: 0, stdout: expect.stringContaining(WHY) });
    const said = await build();
    expect(said).toMatch(new RegExp(`^shop: .*${WHY}\\)$`, "m"));
    expect(said).toMatch(new RegExp(`^Other: .*${WHY}\\)$`, "m"));
    expect(await problems()).toEqual([]);
    expect(readdirSync(join(out, "s-shop", "v1")).sort()).toContain("posts");
  });

  test("is empty: a build with --state begins the tree from the deployed one again", async () => {
    writeFileSync(own("elsewhere.json"), "");
    expect(await build(`--state ${target()}`)).toMatch(/continued from the deployed tree/);
    expect((await place.run("verify")).code).toBe(0);
    await build("--full");
    expect(await problems()).toEqual([]);
  });
});
