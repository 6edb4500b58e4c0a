/**
 * Takes apps from the queue and publishes them, several at a time, until it is told to stop: usual ones in one lane, those that
 * take long in another, so that they hold up nobody. It frees the jobs of workers that have died.
 */
import { EventEmitter } from "node:events";
import { Logger, run, type TaskList, type WorkerEvents } from "graphile-worker";
import { openAttempts, pause, repeat } from "../../shared/async.ts";
import type { PlainPool } from "../../shared/database/postgres/pool.ts";
import { describeFailure } from "../errors.ts";
import { freeDeadJobs, type Locks, openLocks } from "./locks.ts";
import { nameJob, nameTasks, type Registration } from "./queue.ts";

export type WorkerOptions = {
  readonly pool: PlainPool;
  readonly registration: Registration;
  /** Apps that are published at the same time. */
  readonly apps: number;
  /** Apps that take long and are published at the same time, beside the others; 0 where other processes do that. */
  readonly largeApps: number;
  /** Publishes an app, of either lane. When it throws, that is tried again later. */
  readonly publish: (app: string, isLarge: boolean) => Promise<void>;
  /** Whether the next publication of an app takes long. */
  readonly isLarge: (app: string) => Promise<boolean>;
  /** Told of what went wrong beside the publications, and of what was freed. */
  readonly warn: (sentence: string) => void;
  readonly stop: AbortSignal;
};

/** Milliseconds. */
const POLL_INTERVAL = 2_000;
const CARE_INTERVAL = 1_000;
const RESTART_PAUSE = 1_000;
/** Seconds that a failed job waits at most before it is tried again, and one whose app another process has. */
const LONGEST_PAUSE = 300;
const PUT_OFF = 30;
/** As many as the library can count: a publication is never given up. */
const MOST_ATTEMPTS = 32_767;

/** Connections that a process needs: for jobs, to listen in each lane, for its locks and its care. */
export function countConnections({ apps, largeApps }: Pick<WorkerOptions, "apps" | "largeApps">): number {
  return apps + largeApps + 4;
}

/** Resolves when it was stopped and all that it had begun is done. */
export async function work(options: WorkerOptions): Promise<void> {
  const { pool, warn } = options;
  const locks = openLocks(pool);
  // While the database is away, it says so once.
  const attempt = openAttempts((error) => warn(`The queue could not be looked after: ${describeFailure(error)}`));
  const stopCare = repeat(
    CARE_INTERVAL,
    () => attempt("care", () => takeCare(options, locks)),
    () => {},
  );
  try {
    await Promise.all(makeLanes(options, locks).map((lane) => runLane(lane, options, locks)));
  } finally {
    await stopCare();
    await locks.close();
  }
}

type Lane = { readonly jobs: number; readonly tasks: TaskList };

function makeLanes(options: WorkerOptions, locks: Locks): Lane[] {
  const { pool, registration, apps, largeApps, isLarge } = options;
  const { usual, large } = nameTasks(registration);
  const makeTask = (name: string) => async (payload: unknown) => {
    const { app } = payload as { readonly app: string };
    if (name === usual && (await isLarge(app))) await addJob(pool, large, registration, app, 0);
    else await publishAlone(app, name, options, locks);
  };
  const lanes = [
    { jobs: apps, tasks: { [usual]: makeTask(usual) } },
    { jobs: largeApps, tasks: { [large]: makeTask(large) } },
  ];
  return lanes.filter(({ jobs }) => jobs > 0);
}

/** A job whose app another process has at this moment is put off, and that process wakes it at its end. */
async function publishAlone(app: string, task: string, options: WorkerOptions, locks: Locks): Promise<void> {
  const { pool, registration, publish } = options;
  const key = nameJob(registration, app);
  if (!(await locks.take(key))) {
    await addJob(pool, task, registration, app, PUT_OFF);
    // It may have ended between the two.
    if (await locks.take(key)) await end();
    return;
  }
  async function end(): Promise<void> {
    await locks.release(key);
    await wakeJob(pool, key).catch(() => {});
  }
  await publish(app, task === nameTasks(registration).large).finally(end);
}

async function addJob(pool: PlainPool, task: string, at: Registration, app: string, seconds: number): Promise<void> {
  await pool.query(
    `SELECT graphile_worker.add_job($1::text, json_build_object('app', $2::text), job_key => $3::text,
  run_at => now() + make_interval(secs => $4::integer), max_attempts => ${MOST_ATTEMPTS})`,
    [task, app, nameJob(at, app), seconds],
  );
}

async function wakeJob(pool: PlainPool, key: string): Promise<void> {
  await pool.query(
    `WITH woken AS MATERIALIZED (
  SELECT id FROM graphile_worker.reschedule_jobs((
    SELECT array_agg(id) FROM graphile_worker.jobs
    WHERE key = $1 AND locked_at IS NULL AND last_error IS NULL AND attempts = 0 AND run_at > now()), run_at => now()))
SELECT pg_notify('jobs:insert', '{"count":1}') FROM woken`,
    [key],
  );
}

/** What the library does when it loses its database in the wrong moment is to end a worker for good: then all begin anew. */
async function runLane({ jobs, tasks }: Lane, { pool, warn, stop }: WorkerOptions, locks: Locks): Promise<void> {
  while (!stop.aborted) {
    const events: WorkerEvents = new EventEmitter();
    const broken = new AbortController();
    const ended = AbortSignal.any([stop, broken.signal]);
    events.on("worker:create", ({ worker }) => locks.keep(worker.workerId));
    events.on("worker:stop", ({ worker }) => void locks.release(worker.workerId).catch(() => {}));
    events.on("worker:fatalError", ({ error }) => {
      warn(`A worker has lost its database and begins anew: ${describeFailure(error)}`);
      broken.abort();
    });
    try {
      const runner = await run({
        ...{ pgPool: pool, concurrency: jobs, taskList: tasks, events, pollInterval: POLL_INTERVAL },
        ...{ parsedCronItems: [], noHandleSignals: true, logger: SILENT },
      });
      runner.promise.catch(() => broken.abort());
      await until(ended);
      await runner.stop();
    } catch (error) {
      if (!stop.aborted && !broken.signal.aborted) warn(`The queue cannot be read: ${describeFailure(error)}`);
    }
    await pause(RESTART_PAUSE, stop);
  }
}

/** Its messages are those of events, and those of publications. */
const SILENT = new Logger(() => () => {});

function until(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Frees what the dead have left, shortens long pauses, and drops failed jobs that a later publication stands for. */
async function takeCare({ pool, registration, warn }: WorkerOptions, locks: Locks): Promise<void> {
  await locks.renew();
  const freed = await freeDeadJobs(pool);
  if (freed > 0) warn(`${freed} publications of a worker that has died begin anew.`);
  const { usual, large } = nameTasks(registration);
  const failing = "locked_at IS NULL AND last_error IS NOT NULL AND task_identifier IN ($1, $2)";
  await pool.query(
    `SELECT graphile_worker.reschedule_jobs(array_agg(id), run_at => now() + make_interval(secs => ${LONGEST_PAUSE}))
FROM graphile_worker.jobs WHERE ${failing} AND run_at > now() + make_interval(secs => ${LONGEST_PAUSE + 1})`,
    [usual, large],
  );
  await pool.query(
    `SELECT graphile_worker.complete_jobs(array_agg(id))
FROM graphile_worker.jobs WHERE key IS NULL AND locked_at IS NULL AND attempts >= max_attempts AND task_identifier IN ($1, $2)`,
    [usual, large],
  );
}
