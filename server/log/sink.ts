/** Where the lines of the log go: many at a time, and off the thread that answers. */
import { writeSync, write as writeTo } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

export type LogSink = {
  readonly write: (line: string) => void;
  /** Hands on what was gathered, without waiting for it to be written. */
  readonly flush: () => void;
  /** Lines that nobody read in time, or that the disk had no room for. */
  readonly dropped: () => number;
  /** Resolves when everything is written, or when the disk takes no more, or nobody reads. */
  readonly close: () => Promise<void>;
};

/** Bytes handed on in one piece: each costs as much as ten lines do. */
const PIECE = 32_768;
/** What a pipe takes in one piece (PIPE_BUF): so the lines of several processes that share one are never mixed up. */
const SHARED_PIECE = 4_096;
/** Milliseconds at most until a line is handed on. */
const FLUSH_AFTER = 200;
/**
 * A log that is read slowly, or not at all, or whose disk is full, holds up nobody: what does not fit into these bytes is
 * dropped.
 */
const MAX_HELD = 8 * 1_024 * 1_024;
/** Milliseconds until a pipe that is full is tried again. */
const BUSY_FOR = 100;
/** So often at the end of the process, which does not wait for who never reads. */
const LAST_TRIES = 20;

/** `shared` says that other processes write to the same. */
export function openLogSink(descriptor: number, shared: boolean): LogSink {
  const piece = shared ? SHARED_PIECE : PIECE;
  let lines: string[] = [];
  let bytes = 0;
  let dropped = 0;
  /** What was handed on and is not written. */
  const pieces: Buffer[] = [];
  let held = 0;
  let writing: Promise<void> | null = null;
  /** How often a pipe that is full is waited for. */
  let waits = Number.POSITIVE_INFINITY;

  function gather(): void {
    if (held + bytes > MAX_HELD) dropped += lines.length;
    else if (lines.length > 0) {
      pieces.push(Buffer.from(lines.join("")));
      held += bytes;
    }
    lines = [];
    bytes = 0;
  }

  function flush(): void {
    gather();
    if (pieces.length > 0) writing ??= writePieces();
  }

  async function writePieces(): Promise<void> {
    let refused = false;
    while (pieces.length > 0 && !refused) refused = !(await writeNext());
    writing = null;
  }

  /**
   * False when the system refuses, or nobody reads at the end. What a full disk does not take stays for the next time: there may
   * be room again.
   */
  async function writeNext(): Promise<boolean> {
    const next = pieces.shift() as Buffer;
    const taken = await take(descriptor, next);
    held -= taken ?? 0;
    if (taken !== next.length) pieces.unshift(next.subarray(taken ?? 0));
    if (taken === 0) {
      if (waits-- <= 0) return false;
      await sleep(BUSY_FOR);
    }
    return taken !== null;
  }

  setInterval(flush, FLUSH_AFTER).unref();
  // Its own last words too, when the process ends otherwise than by `close`.
  process.once("exit", () => {
    gather();
    writeLast(descriptor, pieces);
  });
  return {
    write: (line) => {
      const size = Buffer.byteLength(line);
      if (bytes + size > piece) flush();
      lines.push(line);
      bytes += size;
    },
    flush,
    dropped: () => dropped,
    close: async () => {
      waits = LAST_TRIES;
      flush();
      await writing;
    },
  };
}

const write = promisify(writeTo);

/** How many bytes the system takes: none of them while a pipe is full, and null when it refuses, as a full disk does. */
async function take(descriptor: number, bytes: Buffer): Promise<number | null> {
  try {
    return (await write(descriptor, bytes)).bytesWritten;
  } catch (error) {
    return isBusy(error) ? 0 : null;
  }
}

/** What is refused now is lost: a process that has ended must not stay for it. */
function writeLast(descriptor: number, pieces: readonly Buffer[]): void {
  let tries = 0;
  for (const piece of pieces) {
    for (let rest = piece; rest.length > 0; ) {
      const taken = takeNow(descriptor, rest);
      tries = taken === 0 ? tries + 1 : 0;
      if (taken === null || tries === LAST_TRIES) return;
      rest = rest.subarray(taken);
    }
  }
}

function takeNow(descriptor: number, bytes: Buffer): number | null {
  try {
    return writeSync(descriptor, bytes);
  } catch (error) {
    if (!isBusy(error)) return null;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_FOR);
    return 0;
  }
}

function isBusy(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EAGAIN";
}
