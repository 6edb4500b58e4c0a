/** The workers of a server: processes that answer on one port, replaced when they die, stopped together. */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import type { Listening } from "./http/listen.ts";
import type { Told } from "./worker.ts";

export type WorkersOptions = {
  readonly count: number;
  readonly host: string;
  readonly port: number;
  /** Milliseconds in which they have stopped, or are ended. */
  readonly limit: number;
  /** Resolves when the server is told to stop: from then on none is waited for, and none is replaced. */
  readonly stopped: Promise<void>;
  readonly warn: (text: string) => void;
};

export class WorkersError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WorkersError";
  }
}

/** A worker that lived so long did not die of how it was started. */
const LONG_LIFE = 5_000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
/** So many deaths in a row before the first worker has come up are no accident. */
const MOST_DEATHS = 5;

/**
 * Starts them and resolves when all of them listen, or with null, when all have ended, where the server is told to stop
 * before. Throws WorkersError when they cannot listen.
 */
export async function openWorkers(options: WorkersOptions): Promise<Listening | null> {
  const { count, host, port, limit, stopped, warn } = options;
  // The kernel's own queue: a connection that no worker has taken is left to the others when one dies. With node's
  // round robin the connections that are on their way to a worker that is killed stay open, and nobody answers them.
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
    }, limit);
    await Promise.all([...living].map(end));
    clearTimeout(late);
  }

  function end(worker: Worker): Promise<unknown> {
    const ended = once(worker, "exit");
    // One that has not come up yet has no answer to this but to end.
    worker.process.kill("SIGTERM");
    return ended;
  }

  const url = await new Promise<string | null>((resolve, reject) => {
    const up = new Set<Worker>();
    let told = "";
    /** In a row, each after a short life. */
    let deaths = 0;

    function start(): void {
      const worker = cluster.fork();
      const born = performance.now();
      let failure: string | null = null;
      living.add(worker);
      // What it is told while it dies.
      worker.on("error", () => {});
      worker.on("message", (message: Told) => {
        if (message.kind === "failed") failure = message.why;
        // What gathers metrics has messages of its own.
        if (message.kind === "listening") {
          up.add(worker);
          told = message.url;
          if (up.size >= count) resolve(told);
        }
      });
      worker.once("exit", (code, signal) => {
        living.delete(worker);
        up.delete(worker);
        if (stopping) return;
        deaths = performance.now() - born < LONG_LIFE ? deaths + 1 : 0;
        const how = failure ?? signal ?? `exit code ${code}`;
        if (told === "" && (failure !== null || deaths >= MOST_DEATHS)) {
          reject(new WorkersError(failure ?? givenUp(how)));
          return;
        }
        // Those that are up shall serve, whatever becomes of this one.
        if (deaths >= MOST_DEATHS) resolve(told);
        replace(`Server process ${worker.process.pid} ended (${how}) and is replaced.`);
      });
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

    // Who signals a group of processes ends those of them that have not come up yet.
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

function givenUp(how: string): string {
  return `No server process comes up: ${MOST_DEATHS} have ended at once, the last with ${how}. Try --workers 1 to see why.`;
}

/** All workers need to be told the same port, also those that come when all others have died. */
async function freePort(host: string): Promise<number> {
  const server = createServer();
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
