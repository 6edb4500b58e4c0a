/** Writes batches of answers: the first few in this thread, all others in several worker threads. */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { makeFolders, makeNewer, readUnlinked } from "../../shared/files.ts";

/** Number of batches that are written in this thread: a build with no more is done before a thread has started. */
const MAIN_THREAD_BATCHES = 2;
/** Number of batches from which low memory use matters more than speed. */
const LARGE_BUILD = 100;
const MAX_THREADS = 4;

export function openWriters() {
  const existingFolders = new Set<string>();
  const spare: Uint8Array<ArrayBuffer>[] = [];
  let threads: Thread[] = [];
  let batches = 0;

  /** Resolves when the batch is written; batches end in any order. Its buffer is then free for `buffer` to return. */
  const write = async (batch: Batch): Promise<WriteResults> => {
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
  /** A free or new buffer of at least `size` bytes. */
  const buffer = (size: number) => {
    const fitting = spare.findIndex(({ length }) => length >= size);
    return spare.splice(fitting, fitting < 0 ? 0 : 1)[0] ?? new Uint8Array(size);
  };
  const close = async () => void (await Promise.all(threads.map((thread) => thread.end())));
  return { write, buffer, close };
}

type Thread = ReturnType<typeof startThread>;

function startThreads(): Thread[] {
  return Array.from({ length: Math.min(MAX_THREADS, Math.max(2, availableParallelism())) }, startThread);
}

/** A thread inherits no TypeScript loader: when tests run the sources, the thread is the compiled one. */
const THREAD = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/threads/writer.js" : "../threads/writer.js",
  import.meta.url,
);

function startThread() {
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
  /** Number of batches that it has not written yet. */
  const backlog = () => waiting.length;
  return { run, backlog, end: () => worker.terminate() };
}

// Compares answers with the files of a tree, and writes those that differ into a stage beside it.

/** Answers to be written. `bytes` holds all of them, one after the other. */
export type Batch = {
  readonly tree: string;
  /** The folder that takes the new files; null where nothing is to be written. */
  readonly stage: string | null;
  /** Relative to both folders, with `/`. */
  readonly paths: readonly string[];
  /** What is known of the tree's file at each path. */
  readonly existing: readonly ExistingFile[];
  /** The offset in `bytes` at which each answer ends. */
  readonly ends: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
};

/** `unknown`: the file must be compared. `none`: it does not exist. A number: it differs, its size in bytes. */
export type ExistingFile = "unknown" | "none" | number;

type Outcome = "same" | "added" | "changed";

/** What became of each answer, and the size in bytes of the file that it replaces; 0 when there is none. */
export type WriteResults = readonly { readonly outcome: Outcome; readonly replacedSize: number }[];

/** `existingFolders` caches those of the stage. */
export function writeBatch(
  { tree, stage, paths, existing, ends, bytes }: Batch,
  existingFolders: Set<string>,
): WriteResults {
  return paths.map((path, index) => {
    const content = bytes.subarray(ends[index - 1] ?? 0, ends[index]);
    const written = compare(content, join(tree, path), existing[index] ?? "unknown");
    if (written.outcome === "same" || stage === null) return written;
    writeNew(join(stage, path), content, existingFolders);
    if (written.outcome === "changed" && written.replacedSize === content.length)
      makeNewer(join(stage, path), join(tree, path));
    return written;
  });
}

function compare(content: Uint8Array, file: string, existing: ExistingFile): WriteResults[number] {
  if (typeof existing === "number") return { outcome: "changed", replacedSize: existing };
  const replaced = existing === "none" ? null : readUnlinked(file);
  if (replaced === null) return { outcome: "added", replacedSize: 0 };
  return { outcome: replaced.equals(content) ? "same" : "changed", replacedSize: replaced.length };
}

function writeNew(file: string, content: Uint8Array, existingFolders: Set<string>): void {
  const folder = dirname(file);
  if (!existingFolders.has(folder)) {
    makeFolders(folder);
    existingFolders.add(folder);
  }
  writeFileSync(file, content);
}

// Limits the memory of a large build: by default V8 lets the heap grow to four times the size of its live objects
// before it collects garbage, with this flag to one and a half times.

function limitHeap(): void {
  setFlagsFromString("--heap-growing-percent=50");
}

export type WriterReply = { readonly bytes: Uint8Array<ArrayBuffer> } & (
  | { readonly written: WriteResults }
  | { readonly error: { readonly message: string; readonly code?: string; readonly path?: string } }
);
