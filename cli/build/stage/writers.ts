/** Writes loads of answers: a few in place, more in threads, several at once. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { limitHeap } from "./heap.ts";
import { type Load, type Written, writeLoad } from "./write.ts";
import type { WriterReply } from "./writer-thread.ts";

export type Writers = {
  /** Resolves when the load is written, with its buffer back for the next: in any order. */
  readonly write: (load: Load) => Promise<Written>;
  /** A buffer that is free again, of at least this size. */
  readonly buffer: (size: number) => Uint8Array<ArrayBuffer>;
  readonly close: () => Promise<void>;
};

/** A build of up to so many loads is done sooner than a thread starts. */
const IN_PLACE = 2;
/** From so many loads on memory counts more than speed. */
const LARGE = 100;
const MAX_THREADS = 4;

export function openWriters(): Writers {
  const made = new Set<string>();
  const spare: Uint8Array<ArrayBuffer>[] = [];
  let threads: Thread[] = [];
  let loads = 0;

  const write = async (load: Load) => {
    if (++loads <= IN_PLACE) {
      const written = writeLoad(load, made);
      spare.push(load.bytes);
      return written;
    }
    if (threads.length === 0) threads = startThreads();
    if (loads === LARGE) limitHeap();
    const thread = threads.reduce((least, other) => (other.open() < least.open() ? other : least));
    const reply = await thread.run(load);
    spare.push(reply.bytes);
    if ("error" in reply) throw Object.assign(new Error(reply.error.message), reply.error);
    return reply.written;
  };
  const buffer = (size: number) => {
    const fitting = spare.findIndex(({ length }) => length >= size);
    return spare.splice(fitting, fitting < 0 ? 0 : 1)[0] ?? new Uint8Array(size);
  };
  return { write, buffer, close: async () => void (await Promise.all(threads.map((thread) => thread.end()))) };
}

type Thread = {
  readonly run: (load: Load) => Promise<WriterReply>;
  /** How many loads it has not written yet. */
  readonly open: () => number;
  readonly end: () => Promise<unknown>;
};

function startThreads(): Thread[] {
  return Array.from({ length: Math.min(MAX_THREADS, Math.max(2, availableParallelism())) }, startThread);
}

/** A thread inherits no loader: when the sources run as they are, in tests, the compiled thread serves them. */
const THREAD = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/cli/build/stage/writer-thread.js" : "./writer-thread.js",
  import.meta.url,
);

function startThread(): Thread {
  const worker = new Worker(THREAD);
  const waiting: { resolve: (reply: WriterReply) => void; reject: (error: unknown) => void }[] = [];
  worker.on("message", (reply: WriterReply) => waiting.shift()?.resolve(reply));
  let fault: unknown = null;
  const failAll = (error: unknown) => {
    fault ??= error;
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on("error", failAll);
  worker.on("exit", (code) => failAll(new Error(`a writing thread ended with code ${code}`)));
  const run = (load: Load) =>
    new Promise<WriterReply>((resolve, reject) => {
      // It may have ended while it had nothing to write: nobody would answer.
      if (fault !== null) throw fault;
      waiting.push({ resolve, reject });
      worker.postMessage(load, [load.bytes.buffer]);
    });
  return { run, open: () => waiting.length, end: () => worker.terminate() };
}
