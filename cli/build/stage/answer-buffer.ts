/** Gathers answers in one buffer until there are enough to hand over to the writers. */
import type { Batch, ExistingFile } from "./write.ts";

/** A batch without its folders, and with one `T` for each answer. */
export type BufferedAnswers<T> = Omit<Batch, "tree" | "stage"> & { readonly items: readonly T[] };

export type AnswerBuffer<T> = {
  /** Returns the size of the answer in bytes. */
  readonly add: (path: string, body: string | Uint8Array, existing: ExistingFile, item: T) => number;
  readonly take: () => BufferedAnswers<T>;
  readonly isFull: () => boolean;
  readonly isEmpty: () => boolean;
};

const MAX_FILES = 500;
const MAX_BYTES = 1 << 20;
/** Maximum number of UTF-8 bytes for one UTF-16 code unit of a JavaScript string. */
const BYTES_PER_UNIT = 3;

const encoder = new TextEncoder();

/** `bufferOf` returns a buffer of at least `size` bytes. */
export function openAnswerBuffer<T>(bufferOf: (size: number) => Uint8Array<ArrayBuffer>): AnswerBuffer<T> {
  const fresh = () => ({
    items: [] as T[],
    paths: [] as string[],
    existing: [] as ExistingFile[],
    ends: [] as number[],
    bytes: bufferOf(2 * MAX_BYTES),
  });
  let buffered = fresh();
  const used = () => buffered.ends.at(-1) ?? 0;

  const add = (path: string, body: string | Uint8Array, existing: ExistingFile, item: T) => {
    const start = used();
    const needed = start + body.length * BYTES_PER_UNIT;
    if (needed > buffered.bytes.length) buffered.bytes = enlarge(buffered.bytes, start, 2 * needed);
    const written = copyInto(buffered.bytes.subarray(start), body);
    buffered.items.push(item);
    buffered.paths.push(path);
    buffered.existing.push(existing);
    buffered.ends.push(start + written);
    return written;
  };
  const take = () => {
    const taken = buffered;
    buffered = fresh();
    return taken;
  };
  const isFull = () => used() >= MAX_BYTES || buffered.paths.length >= MAX_FILES;
  return { add, take, isFull, isEmpty: () => buffered.paths.length === 0 };
}

function copyInto(bytes: Uint8Array, body: string | Uint8Array): number {
  if (typeof body === "string") return encoder.encodeInto(body, bytes).written;
  bytes.set(body);
  return body.length;
}

function enlarge(bytes: Uint8Array, used: number, size: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(size);
  larger.set(bytes.subarray(0, used));
  return larger;
}
