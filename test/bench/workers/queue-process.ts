/**
 * What the queue costs beside a publication, in one process: runs the jobs of all apps without publishing anything, and then
 * publishes the same apps without a queue, as many at a time.
 */
import { join } from "node:path";
import { openDatabase } from "../../../cli/database.ts";
import { openTarget } from "../../../cli/deploy/target.ts";
import { isLargePublication, publishApp } from "../../../cli/work/publication.ts";
import { dropTarget, registerTarget } from "../../../cli/work/queue.ts";
import { countConnections, work } from "../../../cli/work/worker.ts";
import { runConcurrently } from "../../../shared/async.ts";
import { openPlainPool } from "../../../shared/database/postgres/pool.ts";
import { withClient } from "../client.ts";
import { startStore } from "../deploy/store.ts";
import { editApps } from "./edits.ts";
import type { QueueCost, Taken } from "./queue.ts";

const { url, folder, apps, jobs } = JSON.parse(process.argv[2] ?? "") as {
  readonly url: string;
  readonly folder: string;
  readonly apps: readonly string[];
  readonly jobs: number;
};

const store = await startStore();
const database = await openDatabase({ url, dataDir: folder, queryTimeout: null, connections: jobs + 3 });
const pool = openPlainPool(url, countConnections({ apps: jobs, largeApps: 1 }), "precast bench");
const now = () => new Date();
const target = openTarget(
  "s3://content/direct",
  {
    ...{ endpoint: store.env.AWS_ENDPOINT_URL ?? null, region: store.env.AWS_REGION ?? null, pathStyle: true },
    ...{ accessKeyId: store.env.AWS_ACCESS_KEY_ID ?? null, secretAccessKey: store.env.AWS_SECRET_ACCESS_KEY ?? null },
    ...{ sessionToken: null, concurrency: 16, retries: 5, timeout: 30, out: join(folder, "out") },
  },
  { timeout: 30, retries: 5, now },
);
const options = {
  ...{ database, target, folder: join(folder, "kept"), mediaBaseUrl: null, maxSize: 1_000, now, onWarning: () => {} },
  ...{ concurrency: 16, cacheControl: "max-age=60", cdnCacheControl: "max-age=60", allowLocalMedia: true },
  throwIfStopped: () => {},
};

try {
  const publishAll = () =>
    time(apps.length, () =>
      runConcurrently(apps, jobs, async (app) => {
        await publishApp(app, options);
      }),
    );
  const queue = await timeQueue();
  const full = await publishAll();
  await withClient(url, (client) => editApps(client, null));
  const incremental = await publishAll();
  const again = await timeQueue();
  process.stdout.write(JSON.stringify({ queue: [queue, again], full, incremental } satisfies QueueCost));
} finally {
  await pool.end();
  await database.close();
  await store.stop();
}

async function time(count: number, run: () => Promise<unknown>): Promise<Taken> {
  const [start, before] = [performance.now(), process.cpuUsage()];
  await run();
  const { user, system } = process.cpuUsage(before);
  return { count, seconds: (performance.now() - start) / 1_000, cpu: (user + system) / 1e6 };
}

/** From the first job to the last: taking it, looking whether the app is large, its locks and its end. */
async function timeQueue(): Promise<Taken> {
  const name = "s3://content/queue";
  const stopping = new AbortController();
  const { signal: stop } = stopping;
  const registration = await registerTarget({ database, pool, target: name, settings: "{}", say: () => {}, stop });
  if (registration === null) throw new Error("stopped");
  let begin: { start: number; cpu: NodeJS.CpuUsage } | null = null;
  let taken: Taken | null = null;
  let count = 0;
  const { rows } = await pool.query<{ count: number }>("SELECT count(*)::integer AS count FROM graphile_worker.jobs");
  const total = rows[0]?.count ?? 0;
  const finish = () => {
    const { start, cpu } = begin as NonNullable<typeof begin>;
    const { user, system } = process.cpuUsage(cpu);
    taken = { count: count - 1, seconds: (performance.now() - start) / 1_000, cpu: (user + system) / 1e6 };
    stopping.abort();
  };
  await work({
    ...{ pool, registration, apps: jobs, largeApps: 1, warn: () => {}, stop },
    isLarge: (app) => isLargePublication(app, options),
    publish: async () => {
      begin ??= { start: performance.now(), cpu: process.cpuUsage() };
      if (++count === total) finish();
    },
  });
  await dropTarget(database, name);
  return taken as unknown as Taken;
}
