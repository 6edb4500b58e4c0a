/** Writes batches of answers: the first few in this thread, all others in several worker threads. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { limitHeap } from "./heap.ts";
import { type Batch, type WriteResults, writeBatch } from "./write.ts";
import type { WriterReply } from "./writer-thread.ts";

export type Writers = {
  /** Resolves when the batch is written; batches end in any order. Its buffer is then free for `buffer` to return. */
  readonly write: (batch: Batch) => Promise<WriteResults>;
  /** A free or new buffer of at least `size` bytes. */
  readonly buffer: (size: number) => Uint8Array<ArrayBuffer>;
  readonly close: () => Promise<void>;
};

/** Number of batches that are written in this thread: a build with no more is done before a thread has started. */
const MAIN_THREAD_BATCHES = 2;
/** Number of batches from which low memory use matters more than speed. */
const LARGE_BUILD = 100;
const MAX_THREADS = 4;

export function openWriters(): Writers {
  const existingFolders = new Set<string>();
  const spare: Uint8Array<ArrayBuffer>[] = [];
  let threads: Thread[] = [];
  let batches = 0;

  const write = async (batch: Batch) => {
    if (++batches <= MAIN_THREAD_BATCHES) {
      const written = writeBatch(batch, existingFolders);
      spare.push(batch.bytes);
      return written;
    }
    if (threads.length === 0) threads = startThreads();
    if (batches === LARGE_BUILD) limitHeap();
    const thread = threads.reduce((least, other) => (other.backlog() < least.backlog() ? other : least));
    const reply = await thread.run(batch);
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
  readonly run: (batch: Batch) => Promise<WriterReply>;
  /** Number of batches that it has not written yet. */
  readonly backlog: () => number;
  readonly end: () => Promise<unknown>;
};

function startThreads(): Thread[] {
  return Array.from({ length: Math.min(MAX_THREADS, Math.max(2, availableParallelism())) }, startThread);
}

/** A thread inherits no TypeScript loader: when tests run the sources, the thread is the compiled one. */
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
  worker.on("exit", (code) => failAll(new Error(`a writer thread exited with code ${code}`)));
  const run = (batch: Batch) =>
    new Promise<WriterReply>((resolve, reject) => {
      // If the thread has ended while it was idle, no reply would ever come.
      if (fault !== null) throw fault;
      waiting.push({ resolve, reject });
      worker.postMessage(batch, [batch.bytes.buffer]);
    });
  return { run, backlog: () => waiting.length, end: () => worker.terminate() };
}
