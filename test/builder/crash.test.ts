/** A build that is killed, at many points: readers never see a broken tree, and the next build makes the exact tree. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  changesBetween,
  readChanges,
  readFiles,
  type TreeFiles,
  touchProblems,
  treeProblems,
} from "../support/build-problems.ts";
import { type Builder, openBuilder } from "../support/builder.ts";
import { type CommandResult, MAIN, type Place } from "../support/cli.ts";
import { runBuild } from "../support/history.ts";
import { idOf, newPost, POSTS, post, SHOP } from "../support/posts.ts";
import { MEDIA, openApiServer, type Store } from "../support/site.ts";

const KILLER = pathToFileURL(join(import.meta.dirname, "../support/kill-at.mjs")).href;
const KEYS = ["going", "shop"];
/** At how many calls of each kind a scene's build is killed: fewest where the tree has not been touched yet. */
const POINTS = { own: 4, tree: 6, staging: 2 };

const GOING = `INSERT INTO precast.apps (key) VALUES ('going');
INSERT INTO precast.content_types (app_id, slug) SELECT id, 'posts-gone' FROM precast.apps WHERE key = 'going';`;
/** Adds posts (three pages) and a type; deletes a post, a type and an app; edits posts, also to other filter values. */
const BATCH = `${[7, 8, 9, 10, 11, 12].map(newPost).join("")}
DELETE FROM precast.entries WHERE ${post(4)};
UPDATE precast.entries SET data = data || '{"category": "odd"}' WHERE ${POSTS} AND data ->> 'category' = 'even';
UPDATE precast.entries SET data = data || '{"title": "edited"}' WHERE ${post(1)};
DELETE FROM precast.content_types WHERE slug = 'pages';
INSERT INTO precast.content_types (app_id, slug) SELECT id, 'news' FROM precast.apps WHERE key = 'shop';
DELETE FROM precast.apps WHERE key = 'going';`;
/** Deletes all posts but one, which leaves one page, and the type that the first batch added. */
const SECOND_BATCH = `DELETE FROM precast.entries WHERE ${POSTS} AND id <> '${idOf(1)}';
DELETE FROM precast.content_types WHERE slug = 'news';`;

describe("kill -9", () => {
  let store: Store;
  let place: Place;
  let builder: Builder;
  let write: Builder["write"];

  beforeAll(async () => {
    builder = await openBuilder();
    ({ store, place, write } = builder);
  });
  afterAll(() => builder.close());

  type Scene = {
    /** The content that the tree was built from; null when there is no tree. */
    readonly built: string | null;
    /** Changes after the first batch and after `leave`. */
    readonly changes: string;
    readonly line: string;
    /** Puts the folder into the state in which an earlier, killed build leaves it. */
    readonly leave?: (folder: string) => Promise<void>;
  };

  async function killed(folder: string, line: string, point: string): Promise<CommandResult> {
    const env = { NODE_OPTIONS: `--import=${KILLER}`, PRECAST_TEST_KILL: point };
    return place.spawn(process.execPath, [MAIN, ...line.split(" "), "--out", folder], env);
  }

  /** The calls with which a build of this folder changes files, by thread and number. */
  async function callsOf(folder: string, line: string): Promise<Call[]> {
    const copy = copyOf(folder);
    const log = join(copy, "..", "calls");
    const env = { NODE_OPTIONS: `--import=${KILLER}`, PRECAST_TEST_COUNT: log };
    const { code, stderr } = await place.spawn(process.execPath, [MAIN, ...line.split(" "), "--out", copy], env);
    expect([code, stderr]).toEqual([0, ""]);
    return readCalls(readFileSync(log, "utf8"));
  }

  function copyOf(folder: string): string {
    const copy = join(mkdtempSync(join(store.folder, "crash-")), "out");
    if (existsSync(folder)) cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
    return copy;
  }

  async function buildInto(out: string, full = false) {
    const options = { out, apps: null, full, dryRun: false, mediaBaseUrl: MEDIA, now: () => new Date() };
    return runBuild(store.database, options);
  }

  async function scratch(): Promise<TreeFiles> {
    const out = join(mkdtempSync(join(store.folder, "scratch-")), "out");
    await buildInto(out);
    return readFiles(out);
  }

  /** Sets the scene, kills its build at many points, and returns the problems found after each. */
  async function play({
    built,
    changes,
    line,
    leave,
  }: Scene): Promise<{ points: number; killed: number; problems: string[] }> {
    const folder = join(mkdtempSync(join(store.folder, "scene-")), "out");
    await write("DELETE FROM precast.apps");
    const states: TreeFiles[] = [];
    if (built !== null) {
      await write(built);
      await buildInto(folder);
    }
    states.push(readFiles(folder));
    await write(built === null ? SHOP : BATCH);
    await leave?.(folder);
    states.push(await scratch());
    if (changes !== "") {
      await write(changes);
      states.push(await scratch());
    }
    const points = choosePoints(await callsOf(folder, line));
    const results = await pairwise(points, (point) => playPoint(folder, line, point, states, built !== null));
    return {
      points: points.length,
      killed: results.filter((result) => result.killed).length,
      problems: grouped(points, results),
    };
  }

  async function playPoint(
    folder: string,
    line: string,
    point: string,
    states: readonly TreeFiles[],
    hadTree: boolean,
  ): Promise<{ killed: boolean; problems: string[] }> {
    const out = copyOf(folder);
    const { code, stderr } = await killed(out, line, point);
    const left = readFiles(out);
    const problems = [
      ...(code === null || code === 0 ? [] : [`the build failed: ${stderr}`]),
      ...brokenFiles(left, states),
      ...brokenLinks(left),
      ...(hadTree ? await deafness(out, left) : []),
    ];
    // A process takes long to start: after most points, the next build runs in this process.
    const isOneOf = (some: number) => Number(point.split(":")[1]) % some === 0;
    if (isOneOf(8)) {
      const next = await place.run(`build --out ${out}`);
      if (next.code !== 0 || next.stderr !== "") problems.push(`the next build exits ${next.code}: ${next.stderr}`);
    } else await buildInto(out);
    const after = readFiles(out);
    problems.push(...treeProblems(states.at(-1) as TreeFiles, after, out));
    problems.push(...touchProblems(left, after));
    if (code === null) problems.push(...unpurged(states[0] as TreeFiles, after, out));
    if (isOneOf(5)) problems.push(...(await settled(out)));
    rmSync(join(out, ".."), { recursive: true });
    return { killed: code === null, problems };
  }

  /** One more build must find nothing to do. */
  async function settled(out: string): Promise<string[]> {
    const reports = await buildInto(out);
    return reports
      .filter(({ written, deleted }) => written + deleted > 0)
      .map(({ key }) => `${key} is built once more`);
  }

  /** Requests, answered before the build, to which a server on the folder no longer answers with 200. */
  async function deafness(out: string, left: TreeFiles): Promise<string[]> {
    const folder = join(out, "..", "server");
    mkdirSync(folder);
    const api = await openApiServer({ ...store, folder }, out);
    try {
      const targets = ["/api/v1/_schemas", "/api/v1/posts", "/api/v1/posts?page=2", "/api/v1/posts?sort=title"];
      const problems: string[] = [];
      for (const target of targets) {
        const { status, json } = await api.get(target, { appKey: "shop" });
        if (status !== 200) problems.push(`the server answers ${status} to ${target}`);
        for (const { id } of target.includes("posts") && status === 200 ? json.data : []) {
          const one = await api.get(`/api/v1/posts/${id}`, { appKey: "shop" });
          if (one.status !== 200) problems.push(`${target} leads to ${id}, and the server answers ${one.status} to it`);
        }
      }
      if (left.size === 0) problems.push("the tree is gone");
      return [...problems, ...api.errors.map(String)];
    } finally {
      await api.close();
    }
  }

  test.each<[string, Scene]>([
    ["a first build", { built: null, changes: "", line: "build" }],
    ["an incremental build", { built: `${SHOP} ${GOING}`, changes: "", line: "build" }],
    ["a full build", { built: `${SHOP} ${GOING}`, changes: "", line: "build --full" }],
    [
      "a build that completes an unfinished build",
      { built: `${SHOP} ${GOING}`, changes: "", line: "build", leave: (folder) => leaveUnfinished(folder, 0.7) },
    ],
    [
      "a build that completes an unfinished build after more changes",
      {
        built: `${SHOP} ${GOING}`,
        changes: SECOND_BATCH,
        line: "build",
        leave: (folder) => leaveUnfinished(folder, 0.8),
      },
    ],
  ])("%s can be killed at many points: files stay whole, and the next build makes the tree exact", async (_, scene) => {
    const { points, killed, problems } = await play(scene);
    expect(problems).toEqual([]);
    expect(points).toBeGreaterThan(10);
    expect(killed).toBeGreaterThan(points * 0.6);
  });

  async function leaveUnfinished(folder: string, part: number): Promise<void> {
    const calls = await callsOf(folder, "build");
    const { code } = await killed(folder, "build", (calls[Math.floor(calls.length * part)] as Call).point);
    expect(code).toBe(null);
  }
});

/** A call that changes files: in the tree, directly in `.precast` (locks, commit points, states), or deeper in it. */
type Call = { readonly point: string; readonly where: keyof typeof POINTS };

function readCalls(log: string): Call[] {
  const counts = { main: 0, worker: 0 };
  const lines = log.split("\n").filter((line) => line !== "");
  return lines.map((line) => {
    const thread = line.startsWith("main") ? "main" : "worker";
    const where = /\/\.precast(\/[^/]+)?$/.test(line) ? "own" : line.includes("/.precast/") ? "staging" : "tree";
    return { point: `${thread}:${++counts[thread]}`, where };
  });
}

function choosePoints(calls: readonly Call[]): string[] {
  return (["own", "tree", "staging"] as const).flatMap((where) => {
    const some = calls.filter((call) => call.where === where);
    return spread(some, POINTS[where]).map(({ point }) => point);
  });
}

/** The first, the last, and those between at even distances. */
function spread<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  return Array.from({ length: most }, (_, index) => all[Math.round((index * (all.length - 1)) / (most - 1))] as T);
}

/** Each problem once, with the points at which the build was killed before it was seen. */
function grouped(points: readonly string[], results: readonly { readonly problems: readonly string[] }[]): string[] {
  const seen = new Map<string, string[]>();
  for (const [index, { problems }] of results.entries()) {
    for (const problem of problems) seen.set(problem, [...(seen.get(problem) ?? []), points[index] as string]);
  }
  return [...seen].map(([problem, behind]) => `${problem} (killed at ${behind.join(", ")})`);
}

/** Runs two at a time; the results have the order of their inputs. */
async function pairwise<T, R>(all: readonly T[], run: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = all.entries();
  const work = async () => {
    for (const [index, one] of queue) results[index] = await run(one);
  };
  await Promise.all([work(), work()]);
  return results;
}

/** Files that have neither their old nor their new content. */
function brokenFiles(left: TreeFiles, states: readonly TreeFiles[]): string[] {
  return [...left]
    .filter(([path]) => path.endsWith(".json"))
    .filter(([path, { bytes }]) => !states.some((state) => state.get(path)?.bytes === bytes))
    .map(([path, { bytes }]) => `${path} is neither old nor new: ${bytes.slice(0, 200)}`);
}

type List = {
  readonly data: readonly { readonly id: string; readonly slug: string }[];
  readonly meta: { last_page: number };
};

/** Links in lists and catalogs to files that do not exist. */
function brokenLinks(left: TreeFiles): string[] {
  const problems: string[] = [];
  const need = (from: string, path: string) => {
    if (!left.has(path)) problems.push(`${from} leads to ${path}, which is not there`);
  };
  for (const [path, { bytes }] of left) {
    const [app, version, type, kind, name] = path.split("/");
    if (!path.endsWith(".json") || kind === "entry" || (type === "_schemas" && kind !== undefined)) continue;
    const root = `${app}/${version}`;
    const { data, meta } = JSON.parse(Buffer.from(bytes, "latin1").toString("utf8")) as List;
    if (type === "_schemas.json") {
      for (const { slug } of data)
        for (const part of [`_schemas/${slug}`, `${slug}/page/1`]) need(path, `${root}/${part}.json`);
      continue;
    }
    for (const { id } of data) need(path, `${root}/${type}/entry/${id}.json`);
    if (kind !== "page" || name !== "1.json") continue;
    for (let page = 2; page <= meta.last_page; page++) need(path, `${root}/${type}/page/${page}.json`);
  }
  return problems;
}

/** Files that have changed since before the killed build, and that changes.json of the last build does not name. */
function unpurged(before: TreeFiles, after: TreeFiles, out: string): string[] {
  const named = new Set(readChanges(out)?.changes.map(({ file }) => file));
  const missing = changesBetween(before, after, KEYS).filter(({ file }) => !named.has(file));
  return missing.slice(0, 3).map(({ change, file }) => `changes.json does not name ${file}, which is ${change}`);
}
