/** One side of the `work` benchmark: workers, or one `build && deploy`, that publish the same apps and edits. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { segment } from "../../../shared/api/address.ts";
import { measureTimes } from "../measure.ts";
import { MAIN, runPrecast, type Source } from "../precast.ts";
import { percentile } from "../traffic.ts";
import { editApps } from "./edits.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { type BenchTarget, openTarget } from "./target.ts";

/** What it took to publish something. */
export type Phase = {
  readonly seconds: number;
  readonly publications: number;
  /** Seconds of CPU of all processes but the store and the database. */
  readonly cpu: number;
  readonly storeCpu: number | null;
  readonly requests: number | null;
  /** Connections to the database; null where they were not counted. */
  readonly connections: number | null;
  /** The most resident bytes of a worker; null where they were not measured. */
  readonly memory: number | null;
};

export type SideRun = {
  /** Everything for the first time. */
  readonly fill: Phase;
  /** Edits one by one, each after the last was visible: what they took, and milliseconds from the commit of each. */
  readonly edits: Phase;
  readonly latencies: readonly number[];
  /** After an edit of each app in one transaction. */
  readonly wave: Phase;
  /** Resident bytes of the largest worker when each tenth of the first fill was visible, after the edits and after the wave. */
  readonly memories: readonly number[];
  /** Paths at which the target differs from a full build; null where it was not compared. */
  readonly faults: readonly string[] | null;
};

export type Setting = {
  readonly url: string;
  readonly source: Source;
  readonly apps: readonly string[];
  /** Keys of the apps that are edited one by one. */
  readonly edited: readonly string[];
  readonly folder: string;
  /** The folder of targets that are folders; null for S3. */
  readonly targets: string | null;
  readonly appsPerProcess: number;
  readonly check: boolean;
  readonly say: (text: string) => void;
};

/** `workers` is 0 for `build && deploy`. `name` is that of the run, which nobody has had before. */
export async function runSide(setting: Setting, workers: number, name: string): Promise<SideRun> {
  const seen = openSeen(setting.apps);
  const target = await openTarget(name, setting.targets, seen.see);
  const [client, sampler] = [new Client({ connectionString: setting.url }), new Client(setting.url)];
  await Promise.all([client.connect(), sampler.connect()]);
  const parts = { setting, target, client, sampler, seen, folder: join(setting.folder, name) };
  try {
    const run = workers === 0 ? await runReference(parts) : await runWorkers(parts, workers);
    return { ...run, faults: setting.check ? await findFaults(parts) : null };
  } finally {
    await Promise.all([client.end(), sampler.end()]);
    await target.stop();
  }
}

type Parts = {
  readonly setting: Setting;
  readonly target: BenchTarget;
  readonly client: Client;
  readonly sampler: Client;
  readonly seen: Seen;
  readonly folder: string;
};

async function findFaults({ setting, target, folder }: Parts): Promise<readonly string[]> {
  setting.say("work: comparing with a full build");
  const out = join(folder, "full");
  await runPrecast(["build", ...setting.source, "--out", out], setting.folder);
  return target.compare(out);
}

// Workers.

async function runWorkers(parts: Parts, workers: number): Promise<Omit<SideRun, "faults">> {
  const { setting, target, client, sampler, seen, folder } = parts;
  const { source, appsPerProcess, say } = setting;
  const flags = [...source, "--target", target.url, "--apps-per-process", `${appsPerProcess}`];
  const memories: number[] = [];
  await target.count();
  const start = now();
  const all = seen.next();
  const fleet = startFleet({ workers, flags, env: target.env, folder, client: sampler });
  const phase = async (begin: number, ended: Promise<number>) =>
    measurePhase(begin, ended, fleet, target, () => settle(client));
  try {
    const parted = seen.parts(10, () => memories.push(fleet.memory()));
    const fill = await phase(start, all);
    parted.end();
    say(`work: ${setting.apps.length} apps in ${fill.seconds.toFixed(1)} s`);
    const latencies: number[] = [];
    const edits = await phase(
      now(),
      editOneByOne(parts, latencies, () => settle(client)),
    );
    memories.push(fleet.memory());
    say(`work: edits one by one, half of them visible in ${percentile(latencies, 0.5).toFixed(0)} ms`);
    const again = seen.next();
    const wave = await phase(await editApps(client, null), again);
    memories.push(fleet.memory());
    return { fill, edits, wave, latencies, memories };
  } finally {
    await fleet.stop();
    await runPrecast(["queue", "drop", ...source, "--target", target.url], setting.folder);
  }
}

/** `ended` resolves with the moment at which the last publication was visible. */
async function measurePhase(
  start: number,
  ended: Promise<number>,
  fleet: Fleet,
  target: BenchTarget,
  settled: () => Promise<void>,
): Promise<Phase> {
  const [usage, store] = [fleet.usage(), await target.count()];
  fleet.peaks();
  const end = await Promise.race([ended, fleet.failed]);
  await Promise.race([settled(), fleet.failed]);
  const [used, counted, peaks] = [fleet.usage(), await target.count(), fleet.peaks()];
  return {
    ...{ seconds: (end - start) / 1_000, publications: used.publications - usage.publications },
    ...{ cpu: used.cpu - usage.cpu, storeCpu: counted.cpu === null ? null : counted.cpu - (store.cpu ?? 0) },
    ...{ requests: counted.requests, ...peaks },
  };
}

const POLL = 5;

/** Resolves when the queue is empty. */
async function settle(client: Client): Promise<void> {
  const isEmpty = async () => (await client.query("SELECT FROM graphile_worker._private_jobs LIMIT 1")).rowCount === 0;
  while (!(await isEmpty())) await sleep(POLL);
}

async function editOneByOne(
  { setting, client, seen }: Parts,
  latencies: number[],
  publish: () => Promise<void>,
): Promise<number> {
  for (const app of setting.edited) {
    const visible = seen.nextOf(app);
    const committed = await editApps(client, app);
    // With workers, their own work: nothing is left of it when the next edit is made.
    await publish();
    latencies.push((await visible) - committed);
  }
  return now();
}

// The reference.

async function runReference(parts: Parts): Promise<Omit<SideRun, "faults">> {
  const { setting, target, client, seen, folder } = parts;
  const out = join(folder, "out");
  let cpu = 0;
  const run = async (args: readonly string[]) => {
    const ran = await measureTimes(process.execPath, [MAIN, ...args, "--quiet"], setting.folder, target.env);
    cpu += ran.cpu;
    return ran.seconds;
  };
  const publish = async () =>
    (await run(["build", ...setting.source, "--out", out])) +
    (await run(["deploy", target.url, "--out", out, "--max-delete", "1000000"]));
  const phase = async (publications: number, work: () => Promise<number>): Promise<Phase> => {
    cpu = 0;
    const before = await target.count();
    const seconds = await work();
    const { requests, cpu: after } = await target.count();
    const storeCpu = after === null ? null : after - (before.cpu ?? 0);
    return { seconds, publications, cpu, storeCpu, requests, connections: null, memory: null };
  };
  const { length } = setting.apps;
  const fill = await phase(length, publish);
  setting.say(`work: build and deploy in ${fill.seconds.toFixed(1)} s`);
  const latencies: number[] = [];
  const few = { ...parts, setting: { ...setting, edited: setting.edited.slice(0, MOST_EDITS) } };
  const edits = await phase(few.setting.edited.length, async () => {
    let seconds = 0;
    await editOneByOne({ ...few, seen }, latencies, async () => {
      seconds += await publish();
    });
    return seconds;
  });
  await editApps(client, null);
  const wave = await phase(length, publish);
  return { fill, edits, wave, latencies, memories: [] };
}

/** Edits one by one that are built and deployed: each takes seconds. */
const MOST_EDITS = 5;

// When apps become visible.

type Seen = ReturnType<typeof openSeen>;

function openSeen(apps: readonly string[]) {
  const keys = new Map(apps.map((key) => [segment(key), key]));
  const missing = new Set<string>();
  const waiting = new Map<string, (at: number) => void>();
  let onLast: (at: number) => void = () => {};
  let onEach = (_left: number) => {};
  return {
    see: (folder: string, at: number) => {
      const key = keys.get(folder);
      if (key === undefined) return;
      waiting.get(key)?.(at);
      waiting.delete(key);
      if (!missing.delete(key)) return;
      onEach(missing.size);
      if (missing.size === 0) onLast(at);
    },
    /** Resolves with the moment at which each app has become visible since. */
    next: () => {
      for (const key of apps) missing.add(key);
      return new Promise<number>((resolve) => {
        onLast = resolve;
      });
    },
    nextOf: (key: string) => new Promise<number>((resolve) => waiting.set(key, resolve)),
    /** Calls `tell` each time that another one of `parts` of all apps is visible. */
    parts: (parts: number, tell: () => void) => {
      let told = 0;
      onEach = (left) => {
        for (; apps.length - left >= ((told + 1) * apps.length) / parts; told++) tell();
      };
      return {
        end: () => {
          onEach = () => {};
        },
      };
    },
  };
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
