/** Runs the workers of a server: processes that answer on one port, replaced when they die, and stopped together. */
import cluster from "node:cluster";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
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

/**
 * Starts the workers. Resolves when all of them listen, or, after too many deaths, when at least one has listened; when
 * the server is told to stop before that, to null, once all workers have ended. Throws WorkersError when none can
 * listen.
 */
export async function openWorkers(options: WorkersOptions): Promise<Listening | null> {
  const { count, host, port, stopTimeout, stopped, warn } = options;
  // With SCHED_NONE, workers accept connections from the kernel's queue: one that no worker has accepted yet goes to
  // another worker when one dies. With Node's round robin, connections in transit to a worker that is killed stay open
  // and are never answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const bound = port === 0 ? await freePort(host) : port;
  cluster.setupPrimary({ args: [...process.argv.slice(2), "--port", String(bound)] });
  const crew = startCrew(count, warn);
  const stop = () => crew.stop(stopTimeout);
  // A signal to the whole process group also ends workers that have not come up yet: they are not waited for, and their
  // end is not a failure.
  const told = stopped.then(crew.replaceNoMore).then(() => null);
  const url = await Promise.race([crew.listening, told]).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  if (url !== null) return { url, stop };
  await stop();
  return null;
}

type Crew = {
  /** Resolves with the URL when enough workers listen. Rejects with WorkersError when none can. */
  readonly listening: Promise<string>;
  readonly replaceNoMore: () => void;
  /** Stops the workers, and kills those that have not ended after `timeout` milliseconds. */
  readonly stop: (timeout: number) => Promise<void>;
};

function startCrew(count: number, warn: (text: string) => void): Crew {
  const living = new Set<WorkerProcess>();
  const listeners = new Set<WorkerProcess>();
  const pauses = new Set<NodeJS.Timeout>();
  const deaths = openEarlyDeaths();
  const { promise: listening, resolve, reject } = deferred<string>();
  let isReplacing = true;
  /** The URL at which a worker has listened; null before that. */
  let url: string | null = null;

  function start(): void {
    const worker = startWorker({
      onListening: (at) => {
        url = at;
        listeners.add(worker);
        if (listeners.size >= count) resolve(at);
      },
      onEnd: (end) => {
        living.delete(worker);
        listeners.delete(worker);
        if (isReplacing) replace(end);
      },
    });
    living.add(worker);
  }

  function replace(end: WorkerEnd): void {
    deaths.note(end.age);
    if (url === null && (end.failure !== null || deaths.areTooMany())) {
      reject(new WorkersError(end.failure ?? giveUpMessage(end.cause)));
      return;
    }
    // At least one worker has listened, so the server runs, and this worker is still replaced.
    if (url !== null && deaths.areTooMany()) resolve(url);
    warn(describeEnd(end));
    const pause = setTimeout(() => {
      pauses.delete(pause);
      start();
    }, deaths.pause());
    pauses.add(pause);
  }

  function replaceNoMore(): void {
    isReplacing = false;
    for (const pause of pauses) clearTimeout(pause);
  }

  async function stop(timeout: number): Promise<void> {
    replaceNoMore();
    const late = setTimeout(() => {
      for (const worker of living) worker.kill();
    }, timeout);
    await Promise.all([...living].map((worker) => worker.stop()));
    clearTimeout(late);
  }

  for (let number = 0; number < count; number++) start();
  return { listening, replaceNoMore, stop };
}

function describeEnd({ pid, failure, cause }: WorkerEnd): string {
  const how = failure ?? cause;
  return pid === null
    ? `A server process could not be started (${how}). The start is tried again.`
    : `Server process ${pid} ended (${how}) and is replaced.`;
}

function giveUpMessage(how: string): string {
  return `No server process could be started: ${MAX_DEATHS} ended immediately, the last with ${how}. Use --workers 1 to see the cause.`;
}

/** A promise with the functions that settle it: Promise.withResolvers, which Node 20 lacks. */
function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<T>((...settle) => {
    [resolve, reject] = settle;
  });
  return { promise, resolve, reject };
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
  /** Asks the worker to stop. Resolves when it has ended. */
  readonly stop: () => Promise<void>;
  readonly kill: () => void;
};

type WorkerEnd = {
  /** Null when the system has refused to start the process. */
  readonly pid: number | null;
  /** Milliseconds since the start. */
  readonly age: number;
  /** Why the worker cannot serve, as it has said itself; null when it has said nothing. */
  readonly failure: string | null;
  /** The signal or exit code with which the process has ended, or the error that kept it from starting. */
  readonly cause: string;
};

/** Both functions are called later, never before startWorker has returned. */
type WorkerEvents = {
  readonly onListening: (url: string) => void;
  /** Called once. */
  readonly onEnd: (end: WorkerEnd) => void;
};

function startWorker({ onListening, onEnd }: WorkerEvents): WorkerProcess {
  const worker = cluster.fork();
  const startedAt = performance.now();
  let failure: string | null = null;
  const ended = new Promise<string>((resolve) => {
    // Not events.once, which would reject when a message to a dying worker fails: the event `error` reports that too.
    worker.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    worker.on("error", ({ message }: Error) => {
      // The system has refused to start a process, and there is no `exit` then.
      if (worker.process.pid === undefined) resolve(message);
    });
  });
  worker.on("message", (message: WorkerMessage) => {
    if (message.kind === "failed") failure = message.why;
    // All other messages belong to the metrics.
    if (message.kind === "listening") onListening(message.url);
  });
  const reported = ended.then((cause) => {
    onEnd({ pid: worker.process.pid ?? null, age: performance.now() - startedAt, failure, cause });
  });
  return {
    stop: () => {
      // A worker that has not come up yet has no handler for SIGTERM, so the signal ends it.
      worker.process.kill("SIGTERM");
      return reported;
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

// Counts workers that died young, one after another, and says how long to wait before the next one is started.

type EarlyDeaths = {
  /** Notes a death. `age` is the time since the worker was started, in milliseconds. */
  readonly note: (age: number) => void;
  readonly areTooMany: () => boolean;
  /** Milliseconds: none after the first death, then longer with each. */
  readonly pause: () => number;
};

/** Milliseconds. The death of a worker that lived longer is not caused by the way it was started. */
const LONG_LIFE = 5_000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
const MAX_DEATHS = 5;

function openEarlyDeaths(): EarlyDeaths {
  let inRow = 0;
  return {
    note: (age) => {
      inRow = age < LONG_LIFE ? inRow + 1 : 0;
    },
    areTooMany: () => inRow >= MAX_DEATHS,
    pause: () => (inRow <= 1 ? 0 : Math.min(FIRST_PAUSE * 2 ** (inRow - 2), LONGEST_PAUSE)),
  };
}
