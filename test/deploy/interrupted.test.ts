/** Deploys that are killed or stopped midway: whichever tree is deployed next, the store then equals it exactly. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_CACHE_POLICY } from "../../shared/api/answer.ts";
import { MAIN, openPlace, type Place, readTree, smallApp } from "../support/cli.ts";
import { deployInProcess, differencesOf, filesOf, internalFilesOf, noteOf } from "../support/deployed.ts";
import { type S3, type S3Object, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

const KILLER = pathToFileURL(join(import.meta.dirname, "../support/kill-at.mjs")).href;
const TARGET = "s3://content/api";
/** Default headers of the command. */
const HEADERS = { cacheControl: DEFAULT_CACHE_POLICY.browsers, cdnCacheControl: DEFAULT_CACHE_POLICY.cdns };
/** Between the two trees, files are added, replaced and deleted; one app is added and another removed. */
const TREES = ["old", "new"] as const;

let store: Store;
let place: Place;
const out = (tree: string) => join(place.folder, tree);

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "", PRECAST_ALLOW_OLDER: "true" });
  await place.import(smallApp("shop", ["Ada", "Bob", "Cid"]));
  await place.import(smallApp("going", []));
  await place.build("old");
  await place.import(smallApp("shop", ["Ada", "Eve"]));
  await place.import(smallApp("coming", []));
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'going'");
  await place.build("new");
});
afterAll(async () => {
  await place.close();
  await store.close();
});

/** Does the job for each, two at a time. */
async function pairwise<T>(all: readonly T[], job: (one: T, lane: number) => Promise<void>): Promise<void> {
  const rest = all[Symbol.iterator]();
  const work = async (lane: number) => {
    for (let next = rest.next(); !next.done; next = rest.next()) await job(next.value, lane);
  };
  await Promise.all([work(0), work(1)]);
}

describe("a deploy to a bucket", () => {
  let lanes: S3[];
  let before: Map<string, S3Object>;

  beforeAll(async () => {
    lanes = [await startS3(), await startS3()];
    const [first] = lanes as [S3];
    await place.json(`deploy ${TARGET} --out old`, first.env);
    before = new Map(first.objects);
  });
  afterAll(async () => {
    for (const s3 of lanes) await s3.close();
  });

  function reset(s3: S3): void {
    s3.objects.clear();
    for (const [key, object] of before) s3.objects.set(key, object);
    s3.requests.length = 0;
    s3.trouble = () => undefined;
  }

  /**
   * Kills the deploy of the new tree at this request: before the store carries it out, or after that (`done`). Returns
   * whether the process was killed before it ended.
   */
  async function killAt(s3: S3, number: number, done: boolean): Promise<boolean> {
    reset(s3);
    const { pid, end } = place.start(`deploy ${TARGET} --out new --concurrency 2`, s3.env);
    s3.trouble = (request) => {
      if (request.number < number) return undefined;
      if (request.number === number) process.kill(pid, "SIGKILL");
      return done && request.number === number ? "cut when done" : "cut";
    };
    const { code } = await end();
    s3.trouble = () => undefined;
    return code === null;
  }

  async function problemsAfter(s3: S3, tree: string): Promise<string[]> {
    await deployInProcess(s3, out(tree), HEADERS);
    const again = await deployInProcess(s3, out(tree), { ...HEADERS, dryRun: true });
    return [
      ...differencesOf(filesOf(s3), out(tree)),
      ...internalFilesOf(s3).flatMap((key) => (key.includes("journal") ? [`left: ${key}`] : [])),
      ...(again.written + again.deleted === 0 ? [] : [`not done: ${again.written} ${again.deleted}`]),
    ];
  }

  test("makes the bucket equal to its tree after one that was killed at a file or an object in .precast/", async () => {
    const [first] = lanes as [S3];
    reset(first);
    await place.json(`deploy ${TARGET} --out new --concurrency 2`, first.env);
    const points = first.requests
      .filter(({ key, method, number }) => (key.includes("/.precast/s-shop") && method !== "GET") || number % 4 === 0)
      .map(({ number }) => number);
    expect(points.length).toBeGreaterThan(20);
    const problems: Record<string, string[]> = {};
    let killed = 0;
    await pairwise(points, async (number, lane) => {
      const s3 = lanes[lane] as S3;
      const index = points.indexOf(number);
      const [done, tree] = [index % 2 === 0, TREES[(index >> 1) % 2] as string];
      if (await killAt(s3, number, done)) killed += 1;
      const found = await problemsAfter(s3, tree);
      if (found.length > 0) problems[`${number} ${done ? "done" : "not done"}, then ${tree}`] = found;
    });
    expect(problems).toEqual({});
    // With two requests in flight, one deploy may send its last request without reaching its kill point.
    expect(killed).toBeGreaterThanOrEqual(points.length - 1);
  });

  test("releases its lock on SIGTERM, and fails with an error that says how far it got", async () => {
    const [s3] = lanes as [S3];
    reset(s3);
    const { pid, end } = place.start(`deploy ${TARGET} --out new --concurrency 1`, s3.env);
    let entries = 0;
    s3.trouble = ({ method, key }) => {
      if (method === "PUT" && !key.includes(".precast") && ++entries === 3) process.kill(pid, "SIGTERM");
      return undefined;
    };
    const { code, stderr } = await end();
    // Several apps are under way at once: it says that of the first one that is stopped, which may be the one that is deleted.
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The deploy was stopped by a signal\.\n(\d+ of \d+ files of \w+ were uploaded, and nothing was deleted|All 0 files of going were uploaded; \d+ of \d+ were deleted)\. Run .*\n$/,
      ),
    ]);
    expect(internalFilesOf(s3).filter((key) => /journal|lock/.test(key))).toContainEqual(noteOf("journal.json"));
    expect(await problemsAfter(s3, "old")).toEqual([]);
  });
});

test("a deploy makes a folder equal to its tree after one that was killed at a call that changes files", async () => {
  const target = (folder: string) => pathToFileURL(folder).href;
  const base = join(place.folder, "base");
  await place.json(`deploy ${target(base)} --out old`);
  const scene = () => {
    const folder = join(mkdtempSync(join(place.folder, "scene-")), "web");
    cpSync(base, folder, { recursive: true });
    return folder;
  };
  const deploy = (folder: string, env: Record<string, string>) =>
    place.spawn(process.execPath, [MAIN, "deploy", target(folder), "--out", "new"], {
      NODE_OPTIONS: `--import=${KILLER}`,
      ...env,
    });
  const log = join(place.folder, "calls");
  await deploy(scene(), { PRECAST_TEST_COUNT: log });
  const calls = readFileSync(log, "utf8").trim().split("\n").length;
  expect(calls).toBeGreaterThan(30);
  const points = Array.from({ length: 16 }, (_, index) => 1 + Math.floor((index * calls) / 16));
  const problems: Record<number, string[]> = {};
  await pairwise(points, async (point) => {
    const folder = scene();
    const { code } = await deploy(folder, { PRECAST_TEST_KILL: `main:${point}` });
    const tree = TREES[point % 2] as string;
    await place.json(`deploy ${target(folder)} --out ${tree}`);
    const found = [...(code === null ? [] : [`exit ${code}`]), ...differencesOf(readTree(folder), out(tree))];
    if (found.length > 0) problems[point] = found;
    rmSync(folder, { recursive: true });
  });
  expect(problems).toEqual({});
});
