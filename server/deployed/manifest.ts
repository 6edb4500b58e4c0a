/**
 * The manifest of an app: the digest of each file that was deployed. It may list a million files, so it is kept as the text
 * that it is, a line for each file in the order of their paths, and searched there.
 */
import { yieldToEventLoop } from "../../shared/files.ts";

export type Manifest = {
  /** The SHA-256 of a file, in hex; null when the deployed tree has no such file. */
  readonly find: (path: string) => string | null;
  /** Bytes of memory. */
  readonly size: number;
};

const HEAD = /^\{"format":2,.*"files":\{$/;
const LINE = /^"([a-z0-9_./-]+)":\["([0-9a-f]{64})",\d+\],?$/;
const END = "}}";
const [LINE_BREAK] = Buffer.from("\n");
/** Bytes of the offset of a line. */
const OFFSET = 4;
/** Lines that are checked before other work may have its turn. */
const TURN = 1_000;

/** Null for a text that is damaged, or was written by another version of Precast. */
export async function readManifest(bytes: Buffer): Promise<Manifest | null> {
  const lines = listLines(bytes);
  if (!HEAD.test(lines.next().value?.text ?? "")) return null;
  const starts: number[] = [];
  let before = "";
  for (const { start, text } of lines) {
    if (text === END) return openManifest(bytes, Uint32Array.from(starts));
    const path = LINE.exec(text)?.[1];
    if (path === undefined ? text !== "" : path <= before) return null;
    if (path === undefined) continue;
    before = path;
    starts.push(start);
    if (starts.length % TURN === 0) await yieldToEventLoop();
  }
  return null;
}

function* listLines(bytes: Buffer): Generator<{ readonly start: number; readonly text: string }> {
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(LINE_BREAK as number, start);
    if (end < 0) return;
    yield { start, text: bytes.toString("latin1", start, end) };
    start = end + 1;
  }
}

function openManifest(bytes: Buffer, starts: Uint32Array): Manifest {
  const read = (index: number) => {
    const start = starts[index] as number;
    return LINE.exec(bytes.toString("latin1", start, bytes.indexOf(LINE_BREAK as number, start)));
  };
  return {
    find: (path) => {
      let [from, to] = [0, starts.length];
      while (from < to) {
        const middle = (from + to) >> 1;
        const [, found = "", sha256 = ""] = read(middle) ?? [];
        if (found === path) return sha256;
        if (found < path) from = middle + 1;
        else to = middle;
      }
      return null;
    },
    size: bytes.length + OFFSET * starts.length,
  };
}
