/** Runs the workers of a server: processes that answer on one port, replaced when they die, and stopped together. */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import type { Listening } from "./http/listen.ts";
import type { WorkerMessage } from "./worker.ts";

export type WorkersOptions = {
  readonly count: number;
  readonly host: string;
  readonly port: number;
  /** Milliseconds that the workers have to stop; after that they are killed. */
  readonly stopTimeout: number;
  /** Resolves when the server is told to stop. From then on no worker is waited for or replaced. */
  readonly stopped: Promise<void>;
  readonly warn: (text: string) => void;
};

export class WorkersError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WorkersError";
  }
}

/** Milliseconds. The death of a worker that lived longer is not caused by the way it was started. */
const LONG_LIFE = 5_000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
/** After this many deaths in a row, opening fails if no worker has listened, or else no longer waits for the rest. */
const MAX_DEATHS = 5;

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
  const living = new Set<Worker>();
  const pauses = new Set<NodeJS.Timeout>();
  let stopping = false;

  async function stop(): Promise<void> {
    stopping = true;
    for (const pause of pauses) clearTimeout(pause);
    const late = setTimeout(() => {
      for (const worker of living) worker.process.kill("SIGKILL");
    }, stopTimeout);
    await Promise.all([...living].map(end));
    clearTimeout(late);
  }

  function end(worker: Worker): Promise<void> {
    // Not events.once, which would reject when a message to the dying worker fails.
    const ended = new Promise<void>((resolve) => void worker.once("exit", () => resolve()));
    // A worker that has not come up yet has no handler for SIGTERM, so the signal ends it.
    worker.process.kill("SIGTERM");
    return ended;
  }

  const url = await new Promise<string | null>((resolve, reject) => {
    const listening = new Set<Worker>();
    let listeningUrl = "";
    /** Number of deaths in a row, each within LONG_LIFE of the worker's start. */
    let deaths = 0;

    function start(): void {
      const worker = cluster.fork();
      const startedAt = performance.now();
      let failure: string | null = null;
      living.add(worker);
      worker.on("error", ({ message }: Error) => {
        // The system has refused to start a process, and there is no `exit` then. A message to a dying worker fails
        // with this event too: the handler of `exit` does the rest.
        if (worker.process.pid === undefined) onEnd(message);
      });
      worker.on("message", (message: WorkerMessage) => {
        if (message.kind === "failed") failure = message.why;
        // All other messages belong to the metrics.
        if (message.kind === "listening") {
          listening.add(worker);
          listeningUrl = message.url;
          if (listening.size >= count) resolve(listeningUrl);
        }
      });
      worker.once("exit", (code, signal) => onEnd(signal ?? `exit code ${code}`));

      function onEnd(cause: string): void {
        living.delete(worker);
        listening.delete(worker);
        if (stopping) return;
        deaths = performance.now() - startedAt < LONG_LIFE ? deaths + 1 : 0;
        const how = failure ?? cause;
        if (listeningUrl === "" && (failure !== null || deaths >= MAX_DEATHS)) {
          reject(new WorkersError(failure ?? giveUpMessage(how)));
          return;
        }
        // At least one worker has listened, so the server runs, and this worker is still replaced.
        if (deaths >= MAX_DEATHS) resolve(listeningUrl);
        const { pid } = worker.process;
        replace(
          pid === undefined
            ? `A server process could not be started (${how}). The start is tried again.`
            : `Server process ${pid} ended (${how}) and is replaced.`,
        );
      }
    }

    function replace(news: string): void {
      warn(news);
      const pause = setTimeout(
        () => {
          pauses.delete(pause);
          start();
        },
        deaths <= 1 ? 0 : Math.min(FIRST_PAUSE * 2 ** (deaths - 2), LONGEST_PAUSE),
      );
      pauses.add(pause);
    }

    // A signal to the whole process group also ends workers that have not come up yet: they are not waited for, and
    // their end is not a failure.
    void stopped.then(() => {
      stopping = true;
      resolve(null);
    });
    for (let number = 0; number < count; number++) start();
  }).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  if (url !== null) return { url, stop };
  await stop();
  return null;
}

function giveUpMessage(how: string): string {
  return `No server process could be started: ${MAX_DEATHS} ended immediately, the last with ${how}. Use --workers 1 to see the cause.`;
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
