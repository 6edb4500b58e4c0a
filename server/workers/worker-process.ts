/** Starts one worker process of a server and reports what becomes of it. */
import cluster from "node:cluster";
import type { WorkerMessage } from "./worker.ts";

export type WorkerProcess = {
  /** Asks the worker to stop. Resolves when it has ended. */
  readonly stop: () => Promise<void>;
  readonly kill: () => void;
};

export type WorkerEnd = {
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
export type WorkerEvents = {
  readonly onListening: (url: string) => void;
  /** Called once. */
  readonly onEnd: (end: WorkerEnd) => void;
};

export function startWorker({ onListening, onEnd }: WorkerEvents): WorkerProcess {
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
