/**
 * Random histories of 200 apps and four workers: writers publish at once, processes are killed, the store and the database
 * fail in every way that they know. Then the target is what one full build gives, byte for byte, and the queue is empty.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isOlder } from "../../cli/deploy/age.ts";
import { countQueue, readQueue, retryApps } from "../../cli/work/queue.ts";
import { sql } from "../../shared/sql/query.ts";
import { readStateAt, type TreeState } from "../../shared/tree.ts";
import { openPlace, type Place, type RunningCommand } from "../support/cli.ts";
import { differencesOf, filesOf, internalFilesAfter, internalFilesOf } from "../support/deployed.ts";
import { type Dice, openDice } from "../support/dice.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { type S3, type S3Request, startS3, type Trouble } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";
import { createApp, nameApps, writeAtOnce } from "../support/writers.ts";

const HISTORIES = 20;
const APPS = nameApps(200);
const WORKERS = 4;
/** `TEST_SEED` repeats the decisions of a run that failed, though not how fast each process was. */
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 1e9));
/** Requests during which the store fails in a history, at most. */
const REQUESTS = 400;
/** Milliseconds in which the queue has to be empty, once nothing fails any more, on a machine that is busy with other tests. */
const DEADLINE = 150_000;

let server: TestServer;
let store: Store;
let place: Place;
let s3: S3;
let workers: Workers;
/** Each state of an app that has replaced a later one. */
let regressions: string[];

beforeAll(async () => {
  server = await startPostgres();
  store = await openStore("postgres", { connections: 12 }, server.url("postgres"));
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  s3 = await startS3();
  regressions = watchStates();
  const dice = openDice(SEED);
  await store.database.execute(APPS.map((app) => createApp(app, dice)).join(""));
  workers = startWorkers();
  await workers.ready();
});
afterAll(async () => {
  workers?.quit();
  await place?.close();
  await s3?.close();
  await store?.close();
  await server?.remove();
});

// The processes.

type Workers = {
  /** Resolves when all take jobs. */
  readonly ready: () => Promise<unknown>;
  /** Kills one without a warning; another one starts in its place. */
  readonly kill: (index: number) => void;
  /** What has gone wrong in them, and what they have printed. */
  readonly problems: string[];
  readonly describe: () => string;
  readonly quit: () => void;
};

/** One that ends is started again, as an operator's system does. */
function startWorkers(): Workers {
  const running: RunningCommand[] = [];
  const problems: string[] = [];
  let isOver = false;
  const start = (index: number) => {
    const line = `work --target s3://content/api --data-dir worker${index} --apps-per-process ${index % 2 === 0 ? 2 : 4}`;
    const worker = place.start(`${line} --retries 2 --timeout 1`, s3.env);
    running[index] = worker;
    let isReady = false;
    worker.printed(/Publishing to/).then(
      () => {
        isReady = true;
      },
      () => {},
    );
    worker.printed(/(?!)/).catch((error: Error) => {
      if (isOver) return;
      // Before it has begun to work, it may end because the store or the database is away.
      if (isReady && !error.message.includes('"code":null')) problems.push(error.message);
      start(index);
    });
  };
  for (let index = 0; index < WORKERS; index++) start(index);
  return {
    ready: () => Promise.all(running.map((worker) => worker.printed(/Publishing to/))),
    kill: (index) => void running[index]?.stop("SIGKILL"),
    problems,
    describe: () => running.map((worker) => worker.output().stderr.split("\n").slice(-15).join("\n")).join("\n---\n"),
    quit: () => {
      isOver = true;
    },
  };
}

// The store.

/** How often the store fails: of this many requests one, and whether it also fails altogether for a while. */
type Weather = { readonly rate: number; readonly outages: boolean };

const ERROR = (code: string) => `<Error><Code>${code}</Code></Error>`;

/** Decides at random what goes wrong with a request. `later` resolves when some more requests have come. */
function chooseTrouble(dice: Dice, { rate }: Weather, later: () => Promise<void>): Trouble | undefined {
  if (!dice.chance(rate)) return undefined;
  return dice.pick<() => Trouble>([
    () => ({ status: 503, body: ERROR("SlowDown") }),
    () => ({ status: 500, body: ERROR("InternalError") }),
    () => ({ status: 500, body: ERROR("InternalError"), isDone: true }),
    () => ({ status: 409, body: ERROR("OperationAborted") }),
    () => ({ status: 412, body: ERROR("PreconditionFailed") }),
    () => ({ status: 412, body: ERROR("PreconditionFailed"), isDone: true }),
    () => "cut",
    () => "cut when done",
    () => ({ after: later(), isDone: true }),
    () => (dice.chance(0.2) ? "silence" : "cut"),
    () => (dice.chance(0.2) ? { after: new Promise(() => {}), isDone: true } : "cut when done"),
    () => (body) => body.slice(0, body.length / 2),
  ])();
}

/** Lets the store fail until the function that it returns is called. */
function startWeather(dice: Dice, weather: Weather, onRequest: () => void) {
  let waiting: (() => void)[] = [];
  let outage = 0;
  const later = () => new Promise<void>((resolve) => void waiting.push(resolve));
  const resolveAll = () => {
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  s3.trouble = (_: S3Request) => {
    onRequest();
    if (waiting.length > 3) resolveAll();
    if (weather.outages && outage === 0 && dice.chance(0.005)) outage = 80;
    if (outage > 0) {
      outage--;
      return dice.pick<Trouble>(["cut", { status: 503, body: ERROR("ServiceUnavailable") }]);
    }
    return chooseTrouble(dice, weather, later);
  };
  return () => {
    s3.trouble = () => undefined;
    resolveAll();
  };
}

function watchStates(): string[] {
  const problems: string[] = [];
  const latest = new Map<string, TreeState>();
  s3.watch = (key, bytes) => {
    const path = key.slice("api/".length);
    const state = /^\.precast\/[^/]+\.json$/.test(path) ? readStateAt(path, bytes.toString("utf8")) : null;
    if (state === null) return;
    const before = latest.get(path);
    if (before !== undefined && isOlder(state, before))
      problems.push(`${path} went from ${before.snapshot} to ${state.snapshot}`);
    latest.set(path, state);
  };
  return problems;
}

// The end of a history.

async function countJobs(): Promise<number> {
  const [row] = await store.database.query(sql("SELECT count(*)::text FROM graphile_worker._private_jobs"));
  return Number(row?.[0]);
}

/** Fails with what is in the queue, and with what the workers have said. */
async function untilQueue(isMet: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE;
  while (!(await isMet())) {
    if (Date.now() > deadline) {
      const queue = JSON.stringify(await readQueue(store.database, 10), null, 1);
      throw new Error(`Of ${await countJobs()} jobs in the queue: ${queue}\n${workers.describe()}`);
    }
    await sleep(20);
  }
}

/** Failed publications are tried at once: their pauses would last minutes. */
async function untilVisible(): Promise<void> {
  await retryApps(store.database, null);
  await untilQueue(async () => (await countJobs()) === 0);
  expect(await countQueue(store.database)).toEqual({ waiting: 0, running: 0, failed: 0, oldest: null });
}

/** `out` is updated where there is a tree already. */
async function expectExact(out = "full"): Promise<void> {
  await place.build(out);
  expect(differencesOf(filesOf(s3), join(place.folder, out))).toEqual([]);
  const apps = await store.database.query(sql("SELECT key FROM precast.apps"));
  // The lock of a dead process stays until the next publication of the app.
  const internal = internalFilesOf(s3).filter((path) => !path.endsWith("/deploy.lock"));
  expect(internal).toEqual(internalFilesAfter(apps.map(([key]) => key ?? "")));
}

/** What happens beside the writers: each when a random number of requests have reached the store. */
function planEvents(dice: Dice, index: number): { readonly after: number; readonly happen: () => unknown }[] {
  const kills = Array.from({ length: 1 + (index % 2) }, () => () => workers.kill(dice.number(WORKERS)));
  const cut = `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
WHERE application_name LIKE 'precast%' AND pid <> pg_backend_pid() AND datname = current_database()
ORDER BY hashtext(pid::text || '${dice.number(1e6)}') LIMIT ${1 + dice.number(12)}) AS some`;
  const cuts = index % 3 === 1 ? [() => store.database.execute(cut).catch(() => {})] : [];
  const restarts = index % 10 === 7 ? [() => restartDatabase(dice)] : [];
  return [...kills, ...cuts, ...restarts].map((happen) => ({ after: dice.number(REQUESTS / 2), happen }));
}

async function restartDatabase(dice: Dice): Promise<void> {
  await server.stop(dice.pick(["fast", "immediate"]));
  await server.start();
}

test(
  `four workers publish 200 apps when they start (seed ${SEED})`,
  async () => {
    await untilVisible();
    await expectExact();
  },
  2 * DEADLINE,
);

test.each(Array.from({ length: HISTORIES }, (_, index) => index))(
  `history %i of seed ${SEED}`,
  async (index) => {
    const dice = openDice(SEED + index + 1);
    const apps = Array.from({ length: 40 }, () => dice.pick(APPS));
    let events = planEvents(dice, index);
    const happening: unknown[] = [];
    let requests = 0;
    const happen = (until: number) => {
      happening.push(...events.filter(({ after }) => after < until).map(({ happen }) => happen()));
      events = events.filter(({ after }) => after >= until);
    };
    const weather = { rate: dice.pick([0, 0.02, 0.1]), outages: index % 4 === 2 };
    const clearUp = startWeather(dice, weather, () => happen(++requests));
    const committed = await writeAtOnce({ database: store.database, dice, apps, writers: 4, transactions: 12 });
    expect(committed).toBeGreaterThan(0);
    await untilQueue(async () => {
      const counts = await countQueue(store.database).catch(() => null);
      return requests > REQUESTS || (counts !== null && counts.waiting + counts.running === 0);
    });
    happen(REQUESTS);
    await Promise.all(happening);
    clearUp();
    await untilVisible();
    await expectExact(index === HISTORIES - 1 ? "anew" : "full");
    expect(regressions).toEqual([]);
    expect(workers.problems).toEqual([]);
  },
  2 * DEADLINE,
);
