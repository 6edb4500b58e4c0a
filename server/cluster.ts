/** Runs the workers of a server: processes that answer on one port, replaced when they die, and stopped together. */
import cluster from "node:cluster";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { pause } from "../shared/async.ts";
import type { Listening } from "./http/listen.ts";

type WorkersOptions = {
  readonly count: number;
  readonly host: string;
  readonly port: number;
  /** Milliseconds that the workers have to stop; after that they are killed. */
  readonly stopTimeout: number;
  /** Resolves when the server is told to stop. From then on no worker is waited for or replaced. */
  readonly stopped: Promise<void>;
  readonly warn: (text: string) => void;
};

class WorkersError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WorkersError";
  }
}

/** Milliseconds before a worker that has died is replaced: one that always dies must not keep the machine busy. */
const REPLACEMENT_PAUSE = 1_000;

/**
 * Starts the workers. Resolves when all of them listen, or, when the server is told to stop before that, to null, once
 * all workers have ended. Throws WorkersError when one of them ends before that.
 */
export async function openWorkers(options: WorkersOptions): Promise<Listening | null> {
  const { count, host, port, stopTimeout, stopped, warn } = options;
  // With SCHED_NONE, workers accept connections from the kernel's queue: one that no worker has accepted yet goes to
  // another worker when one dies. With Node's round robin, connections in transit to a worker that is killed stay open
  // and are never answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const bound = port === 0 ? await freePort(host) : port;
  cluster.setupPrimary({ args: [...process.argv.slice(2), "--port", String(bound)] });
  const living = new Set<WorkerProcess>();
  const stopping = new AbortController();
  let isRunning = false;

  function start(): WorkerProcess {
    const worker = startWorker();
    living.add(worker);
    void worker.ended.then((end) => {
      living.delete(worker);
      if (isRunning) void replace(end);
    });
    return worker;
  }

  async function replace(end: WorkerEnd): Promise<void> {
    if (stopping.signal.aborted) return;
    warn(describeEnd(end));
    await pause(REPLACEMENT_PAUSE, stopping.signal);
    if (!stopping.signal.aborted) start();
  }

  async function stop(): Promise<void> {
    stopping.abort();
    const late = setTimeout(() => {
      for (const worker of living) worker.kill();
    }, stopTimeout);
    await Promise.all([...living].map((worker) => worker.stop()));
    clearTimeout(late);
  }

  // A signal to the whole process group also ends workers that have not come up yet: they are not waited for, and their
  // end is not a failure.
  const told = stopped.then(() => stopping.abort()).then(() => null);
  const workers = Array.from({ length: count }, start);
  const listening = Promise.all(workers.map((worker) => worker.listening)).then(([url = ""]) => url);
  const failed = Promise.race(workers.map((worker) => worker.ended)).then((end) => {
    throw new WorkersError(end.failure ?? failureMessage(end.cause));
  });
  const url = await Promise.race([told, listening, failed]).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  isRunning = true;
  if (url !== null) return { url, stop };
  await stop();
  return null;
}

function describeEnd({ pid, failure, cause }: WorkerEnd): string {
  const how = failure ?? cause;
  return pid === null
    ? `A server process could not be started (${how}). The start is tried again.`
    : `Server process ${pid} ended (${how}) and is replaced.`;
}

function failureMessage(how: string): string {
  return `No server process could be started: one ended immediately, with ${how}. Use --workers 1 to see the cause.`;
}

/** Chooses a free port. All workers are given the same one, also those that start when all others have died. */
async function freePort(host: string): Promise<number> {
  const server = createServer();
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

// Starts one worker process of a server and reports what becomes of it.

type WorkerProcess = {
  /** Resolves to the URL when the worker listens. */
  readonly listening: Promise<string>;
  readonly ended: Promise<WorkerEnd>;
  /** Asks the worker to stop. Resolves when it has ended. */
  readonly stop: () => Promise<unknown>;
  readonly kill: () => void;
};

type WorkerEnd = {
  /** Null when the system has refused to start the process. */
  readonly pid: number | null;
  /** Why the worker cannot serve, as it has said itself; null when it has said nothing. */
  readonly failure: string | null;
  /** The signal or exit code with which the process has ended, or the error that kept it from starting. */
  readonly cause: string;
};

function startWorker(): WorkerProcess {
  const worker = cluster.fork();
  let failure: string | null = null;
  const ended = new Promise<WorkerEnd>((resolve) => {
    const end = (cause: string) => resolve({ pid: worker.process.pid ?? null, failure, cause });
    // Not events.once, which would reject when a message to a dying worker fails: the event `error` reports that too.
    worker.once("exit", (code, signal) => end(signal ?? `exit code ${code}`));
    worker.on("error", ({ message }: Error) => {
      // The system has refused to start a process, and there is no `exit` then.
      if (worker.process.pid === undefined) end(message);
    });
  });
  const listening = new Promise<string>((resolve) => {
    worker.on("message", (message: WorkerMessage) => {
      if (message.kind === "failed") failure = message.why;
      // All other messages belong to the metrics.
      if (message.kind === "listening") resolve(message.url);
    });
  });
  return {
    listening,
    ended,
    stop: () => {
      // A worker that has not come up yet has no handler for SIGTERM, so the signal ends it.
      worker.process.kill("SIGTERM");
      return ended;
    },
    kill: () => void worker.process.kill("SIGKILL"),
  };
}

// Handles a worker's communication with its primary process.

type WorkerMessage =
  | { readonly kind: "listening"; readonly url: string }
  | { readonly kind: "failed"; readonly why: string };

export function isWorker(): boolean {
  return cluster.isWorker;
}

/** Resolves when the message has been sent, or cannot be sent any more. */
export function sendToPrimary(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => {
    cluster.worker?.send(message, undefined, () => resolve());
  });
}

/**
 * Resolves on SIGTERM, which the primary sends to stop a worker. A terminal or a service manager signals all processes
 * at once, so a second SIGTERM is ignored here, and SIGINT and SIGHUP are left to the primary.
 */
export function waitForStop(): Promise<void> {
  for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
  // A message to a primary that has died fails with this event, before its loss ends this process.
  cluster.worker?.on("error", () => {});
  return new Promise((resolve) => {
    process.on("SIGTERM", () => resolve());
  });
}

/**
 * Disconnects from the primary; the open channel would keep this process running. Until then, the loss of the primary
 * ends the worker at once.
 */
export function leavePrimary(): void {
  cluster.worker?.disconnect();
}
