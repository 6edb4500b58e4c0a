/** A build does not block the event loop of its process (a server's, for one), however much it writes or deletes. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Builder, openBuilder } from "../support/builder.ts";
import { runBuild } from "../support/history.ts";
import { idOf, POSTS, SHOP } from "../support/posts.ts";
import { MEDIA } from "../support/site.ts";

const MANY = 4_000;
const MORE = `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT id, gen_random_uuid(), 'published', '2026-03-01T00:00Z', jsonb_build_object('title', n::text)
FROM precast.content_types, generate_series(1, ${MANY}) AS n WHERE slug = 'posts';`;

let builder: Builder;
let out: string;

beforeAll(async () => {
  builder = await openBuilder();
  out = join(builder.place.folder, "out");
});
afterAll(() => builder.close());

/**
 * Builds while another task looks at a folder in each turn of the event loop: how many different counts of files that
 * task saw, and in how many turns the build reported deleted files.
 */
async function watched(folder: string): Promise<{ readonly seen: number; readonly told: number }> {
  const seen = new Set<number>();
  const told = new Set<number>();
  let [turn, ended] = [0, false];
  const look = () => {
    turn += 1;
    seen.add(existsSync(join(out, folder)) ? readdirSync(join(out, folder)).length : 0);
    if (!ended) setImmediate(look);
  };
  look();
  const options = { out, apps: null, full: false, dryRun: false, mediaBaseUrl: MEDIA, now: () => new Date() };
  await runBuild(builder.store.database, {
    ...options,
    onChange: ({ change }) => void (change === "gone" && told.add(turn)),
  }).finally(() => {
    ended = true;
  });
  look();
  return { seen: seen.size, told: told.size };
}

const ENTRIES = "s-shop/v1/posts/entry";

test("the event loop keeps turning while a build puts new entries in place", async () => {
  await builder.reset(SHOP);
  await watched(ENTRIES);
  await builder.write(MORE);
  expect((await watched(ENTRIES)).seen).toBeGreaterThan(3);
});

test.each([
  ["entries", `DELETE FROM precast.entries WHERE ${POSTS} AND id <> '${idOf(1)}'`],
  ["a type", "DELETE FROM precast.content_types WHERE slug = 'posts'"],
  ["an app", "DELETE FROM precast.apps"],
])("the event loop keeps turning while a build deletes the files of %s", async (_, removal) => {
  await builder.reset(`${SHOP} ${MORE}`);
  await watched(ENTRIES);
  await builder.write(removal);
  const { seen, told } = await watched(ENTRIES);
  expect(seen).toBeGreaterThan(3);
  expect(told).toBeGreaterThan(1);
});

test("the event loop keeps turning while a build deletes the trash of a build that died", async () => {
  await builder.reset(SHOP);
  const left = ".precast/trash/left";
  mkdirSync(join(out, left), { recursive: true });
  for (let file = 0; file < 3 * MANY; file++) writeFileSync(join(out, left, String(file)), "");
  expect((await watched(left)).seen).toBeGreaterThan(3);
});
