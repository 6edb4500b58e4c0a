/**
 * Random histories of content. After each step a runner without a local tree builds from the deployed one and deploys:
 * the target then equals the tree of a full build byte for byte, and most builds are incremental.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTree } from "../../cli/builder/build.ts";
import { deployTree } from "../../cli/deploy/deploy.ts";
import { restoreTree } from "../../cli/deploy/restore.ts";
import { openTarget } from "../../cli/deploy/target.ts";
import { readTree } from "../support/cli.ts";
import { differencesOf } from "../support/deployed.ts";
import { arbitraryEdit, arbitraryStart, type Edit, readKnown } from "../support/edits.ts";
import { openStore, type Store } from "../support/site.ts";

const MEDIA = "https://media.test";
const RETRY_POLICY = { timeout: 5, retries: 0, now: () => new Date() };
const HEADERS = { cacheControl: "max-age=60", cdnCacheControl: "max-age=60" };
const PLAIN = { endpoint: null, region: null, pathStyle: false, accessKeyId: null, secretAccessKey: null };

let store: Store;
beforeAll(async () => {
  store = await openStore("postgres");
});
afterAll(() => store.close());

/** Applies the edits, each in its own transaction. Those that the database refuses are skipped. */
async function edit(some: readonly Edit[]): Promise<void> {
  for (const one of some) {
    await store.database
      .transaction("write", async (session) => {
        const script = one.write(await readKnown(session));
        if (script !== "") await session.execute(script);
      })
      .catch((error: { code?: string }) => {
        if (!["55P03", "40P01", "23505", "23514"].includes(error.code ?? "")) throw error;
      });
  }
}

async function build(out: string, target: ReturnType<typeof openTarget> | null) {
  const { database } = store;
  const restored = target === null ? null : await restoreTree(target.store, { out, concurrency: 4, database });
  const remote = restored?.kind === "restored" ? restored.remote : undefined;
  const options = {
    out,
    apps: null,
    full: false,
    dryRun: false,
    mediaBaseUrl: MEDIA,
    now: RETRY_POLICY.now,
    remote,
  };
  return buildTree(store.database, options);
}

/** Builds in an empty folder, deploys, and deletes the folder. Returns the build mode of each app. */
async function run(web: string): Promise<string[]> {
  const out = join(mkdtempSync(join(store.folder, "runner-")), "out");
  const settings = { ...RETRY_POLICY, ...PLAIN, sessionToken: null, concurrency: 4, out };
  const target = openTarget(pathToFileURL(web).href, settings, RETRY_POLICY);
  const reports = await build(out, target);
  const options = {
    out,
    dryRun: false,
    force: false,
    allowOlder: false,
    allowLocalMedia: false,
    maxDelete: 1e6,
    concurrency: 4,
    throwIfStopped: () => {},
  };
  await deployTree(target, { ...options, ...HEADERS });
  rmSync(out, { recursive: true });
  return reports.map(({ mode }) => mode);
}

test("runners without a local tree deploy the tree of a full build, and build most apps incrementally", async () => {
  const modes: string[] = [];
  const rounds = fc.array(fc.array(arbitraryEdit(), { minLength: 1, maxLength: 3 }), { minLength: 5, maxLength: 8 });
  const property = fc.asyncProperty(arbitraryStart(), rounds, async (start, edits) => {
    const folder = mkdtempSync(join(store.folder, "history-"));
    const [web, whole] = [join(folder, "web"), join(folder, "whole")];
    await store.database.execute("DELETE FROM precast.apps");
    await store.database.transaction("write", (session) => session.execute(start.script));
    for (const some of [[], ...edits]) {
      await edit(some);
      const known = await readKnown(store.database);
      if (known.length === 0) return;
      modes.push(...(await run(web)));
      rmSync(whole, { recursive: true, force: true });
      await build(whole, null);
      expect(differencesOf(readTree(web), whole)).toEqual([]);
    }
    rmSync(folder, { recursive: true });
  });
  await fc.assert(property, { numRuns: 12, interruptAfterTimeLimit: 25_000 });
  const incremental = modes.filter((mode) => mode === "incremental").length;
  expect(incremental * 2).toBeGreaterThan(modes.length);
}, 120_000);
