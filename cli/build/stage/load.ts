/** Gathers answers in one buffer until there are enough to hand over to the writers. */
import type { Load, Standing } from "./write.ts";

/** A load without its folders, and with one `T` for each answer. */
export type Gathered<T> = Omit<Load, "tree" | "stage"> & { readonly items: readonly T[] };

export type Gathering<T> = {
  /** Returns the size of the answer in bytes. */
  readonly add: (path: string, body: string | Uint8Array, standing: Standing, item: T) => number;
  readonly take: () => Gathered<T>;
  readonly isFull: () => boolean;
  readonly isEmpty: () => boolean;
};

const FILES = 500;
const BYTES = 1 << 20;
/** Maximum number of UTF-8 bytes for one UTF-16 code unit of a JavaScript string. */
const WIDEST = 3;

const encoder = new TextEncoder();

/** `bufferOf` returns a buffer of at least `size` bytes. */
export function openLoad<T>(bufferOf: (size: number) => Uint8Array<ArrayBuffer>): Gathering<T> {
  const fresh = () => ({
    items: [] as T[],
    paths: [] as string[],
    standing: [] as Standing[],
    ends: [] as number[],
    bytes: bufferOf(2 * BYTES),
  });
  let load = fresh();
  const used = () => load.ends.at(-1) ?? 0;

  const add = (path: string, body: string | Uint8Array, standing: Standing, item: T) => {
    const start = used();
    const needed = start + body.length * WIDEST;
    if (needed > load.bytes.length) load.bytes = enlarge(load.bytes, start, 2 * needed);
    const written = copyInto(load.bytes.subarray(start), body);
    load.items.push(item);
    load.paths.push(path);
    load.standing.push(standing);
    load.ends.push(start + written);
    return written;
  };
  const take = () => {
    const taken = load;
    load = fresh();
    return taken;
  };
  const isFull = () => used() >= BYTES || load.paths.length >= FILES;
  return { add, take, isFull, isEmpty: () => load.paths.length === 0 };
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
