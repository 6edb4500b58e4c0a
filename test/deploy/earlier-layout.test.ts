/** A store that an earlier version of Precast has deployed, with one manifest and one journal for all apps, is taken over. */
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openPlace, type Place, smallApp } from "../support/cli.ts";
import {
  deployInProcess,
  differencesOf,
  filesOf,
  internalFilesAfter,
  internalFilesOf,
  noteOf,
} from "../support/deployed.ts";
import { type S3, type S3Object, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

const MARKER = "api/.precast/manifest.json";
const JOURNAL = "api/.precast/journal.json";
const LOCK = "api/.precast/deploy.lock";
const APPS = ["going", "shop"];

let store: Store;
let place: Place;
let s3: S3;
/** What an earlier version has left of the tree `old`. */
let earlier: Map<string, S3Object>;
const out = (tree: string) => join(place.folder, tree);

const object = (text: string): S3Object => ({
  bytes: Buffer.from(text),
  etag: '"1"',
  modified: new Date(),
  headers: {},
});

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  s3 = await startS3();
  await place.import(smallApp("shop", ["Ada", "Bob"]));
  await place.import(smallApp("going", []));
  await place.build("old");
  await place.import(smallApp("shop", ["Ada", "Eve"]));
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'going'");
  await place.build("new");
  await deployInProcess(s3, out("old"));
  earlier = asEarlier(s3.objects);
});
afterAll(async () => {
  await s3.close();
  await place.close();
  await store.close();
});
beforeEach(() => {
  s3.objects.clear();
  for (const [key, stored] of earlier) s3.objects.set(key, stored);
  s3.requests.length = 0;
  s3.trouble = () => undefined;
});

function asEarlier(objects: ReadonlyMap<string, S3Object>): Map<string, S3Object> {
  const manifests = APPS.map((app) => JSON.parse(String(objects.get(noteOf("manifest.json", app))?.bytes)));
  const { app: _, ...head } = manifests[0];
  const files = Object.fromEntries(manifests.flatMap(({ files }) => Object.entries(files)));
  const media = '{"format":1,"files":{}}\n';
  return new Map([
    ...[...objects].filter(([key]) => !/\.precast\/s-\w+\//.test(key)),
    [MARKER, object(`${JSON.stringify({ ...head, format: 1, apps: APPS, files })}\n`)],
    ["api/.precast/media.json", object(media)],
  ]);
}

/** The journal of an earlier version that was to deploy `paths`, of which it had uploaded some. */
function leaveJournal(paths: readonly string[], uploaded: number): void {
  const { files, format, ...head } = JSON.parse(String(earlier.get(MARKER)?.bytes));
  const writes = Object.fromEntries(paths.map((path) => [path, files[path]]));
  const rest = { deploy: "x", writes, uploaded, removes: [], purging: false, purges: [] };
  s3.objects.set(JOURNAL, object(JSON.stringify({ ...head, format, generation: head.generation + 1, ...rest })));
}

const writtenFiles = () =>
  s3.requests.filter(({ method, key }) => method !== "GET" && !key.includes("/.precast/")).map(({ key }) => key);

test("no file that is there is uploaded again, apps that are gone are deleted, and only the new layout is left", async () => {
  expect(await deployInProcess(s3, out("old"), { dryRun: true })).toMatchObject({ written: 0, deleted: 0 });
  expect(s3.requests.map(({ method }) => method)).not.toContain("PUT");
  expect(await deployInProcess(s3, out("old"))).toMatchObject({ written: 0, deleted: 0 });
  expect(writtenFiles()).toEqual([]);
  expect(internalFilesOf(s3)).toEqual(internalFilesAfter(APPS));
  const { written, unchanged, deleted } = await deployInProcess(s3, out("new"));
  expect([written, unchanged, deleted].every((count) => count > 0)).toBe(true);
  expect(differencesOf(filesOf(s3), out("new"))).toEqual([]);
  expect(internalFilesOf(s3)).toEqual(internalFilesAfter(["shop"]));
});

test("an earlier version does not read it any more", async () => {
  await deployInProcess(s3, out("old"));
  expect(JSON.parse(String(s3.objects.get(MARKER)?.bytes))).toEqual({ format: 2 });
});

test("a deploy of the earlier version that was interrupted is completed: only its uncertain files are uploaded", async () => {
  const paths = [...filesOf(s3).keys()].filter((path) => path.startsWith("s-shop/")).slice(0, 6);
  leaveJournal(paths, 4);
  for (const path of paths.slice(4)) s3.objects.set(`api/${path}`, object("{}"));
  expect(await deployInProcess(s3, out("old"))).toMatchObject({ written: 2, deleted: 0 });
  expect(differencesOf(filesOf(s3), out("old"))).toEqual([]);
  expect(internalFilesOf(s3)).toEqual(internalFilesAfter(APPS));
});

test("a build continues from it with --state", async () => {
  const { restored } = await place.json<{ restored: { files: number; reason: string | null } }>(
    "build --out fresh --state s3://content/api",
    s3.env,
  );
  expect(restored.reason).toBe(null);
  expect(restored.files).toBeGreaterThan(0);
});

describe("a takeover", () => {
  test("waits for a deploy of the earlier version that is under way", async () => {
    const owner = { id: "x", host: "elsewhere", machine: "m", pid: 7, since: "", expires_after: 120 };
    s3.objects.set(LOCK, object(JSON.stringify(owner)));
    await expect(deployInProcess(s3, out("new"))).rejects.toThrow(/elsewhere, process 7\) holds the lock of s3:/);
    expect(writtenFiles()).toEqual([]);
  });

  test("that is cut off at any request is done by the next deploy", async () => {
    leaveJournal([...filesOf(s3).keys()].slice(0, 3), 1);
    const before = new Map(s3.objects);
    await deployInProcess(s3, out("new"));
    const notes = s3.requests.filter(({ method, key }) => method !== "GET" && key.includes("/.precast/"));
    const problems: string[] = [];
    for (const { number: last } of notes) {
      s3.objects.clear();
      for (const [key, stored] of before) s3.objects.set(key, stored);
      s3.requests.length = 0;
      s3.trouble = ({ number }) =>
        number < last ? undefined : number === last && last % 2 === 0 ? "cut when done" : "cut";
      await deployInProcess(s3, out("new"), {}, undefined, 0).catch(() => {});
      s3.trouble = () => undefined;
      for (const key of s3.objects.keys()) if (key.endsWith("/deploy.lock")) s3.objects.delete(key);
      await deployInProcess(s3, out("new"));
      // Nobody reads the earlier journal any more.
      const expected = [...internalFilesAfter(["shop"]), JOURNAL];
      const left = internalFilesOf(s3).filter((key) => !expected.includes(key));
      for (const problem of [...differencesOf(filesOf(s3), out("new")), ...left]) problems.push(`${last}: ${problem}`);
    }
    expect(notes.length).toBeGreaterThan(10);
    expect(problems).toEqual([]);
  });
});
