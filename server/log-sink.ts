/** Writes the lines of the log: many at a time, and outside the thread that answers requests. */
import { constants, openSync, writeSync, write as writeTo } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

type LogSink = {
  readonly write: (line: string) => void;
  /** Begins to write the lines gathered so far, without waiting until they are written. */
  readonly flush: () => void;
  /** Number of lines that were dropped, because nobody read them in time or the disk was full. */
  readonly dropped: () => number;
  /** Resolves when everything is written, or when the disk takes no more, or nobody reads. */
  readonly close: () => Promise<void>;
};

/** Number of bytes that one write takes; each write costs as much as ten lines do. */
const PIECE = 32_768;
/** Number of bytes that a pipe takes at once (PIPE_BUF): lines up to that, of processes that share it, never mix. */
const SHARED_PIECE = 4_096;
/** Milliseconds after which a line is written at the latest. */
const FLUSH_AFTER = 200;
/**
 * Number of bytes that may wait to be written. More are dropped: a log that is read slowly or not at all, or whose disk
 * is full, must hold up nothing.
 */
const MAX_HELD = 8 * 1_024 * 1_024;
/** Milliseconds until a full pipe is tried again. */
const BUSY_FOR = 100;
/** Number of tries to write to a full pipe at the end: the process must not wait for a pipe that is never read. */
const LAST_TRIES = 20;

/** `shared` says whether other processes write to the same file descriptor. */
export function openLogSink(descriptor: number, shared: boolean): LogSink {
  const piece = shared ? SHARED_PIECE : PIECE;
  let lines: string[] = [];
  let bytes = 0;
  let dropped = 0;
  /** Pieces that are flushed but not yet written. */
  const pieces: Buffer[] = [];
  let held = 0;
  let writing: Promise<void> | null = null;
  /** How many more times a full pipe is waited for: without limit until `close`. */
  let waitsLeft = Number.POSITIVE_INFINITY;

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
   * Resolves to false when the system refuses to write, or nobody reads at the end. What a full disk does not take is
   * kept for the next flush, when there may be room again.
   */
  async function writeNext(): Promise<boolean> {
    const next = pieces.shift() as Buffer;
    const written = await tryWrite(descriptor, next);
    held -= written ?? 0;
    if (written !== next.length) pieces.unshift(next.subarray(written ?? 0));
    if (written === 0) {
      if (waitsLeft-- <= 0) return false;
      await sleep(BUSY_FOR);
    }
    return written !== null;
  }

  setInterval(flush, FLUSH_AFTER).unref();
  // Writes the last lines also when the process ends without `close`.
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
      waitsLeft = LAST_TRIES;
      flush();
      await writing;
    },
  };
}

const write = promisify(writeTo);

/** Resolves to the number of bytes written: 0 while a pipe is full, null when the system refuses (full disk). */
async function tryWrite(descriptor: number, bytes: Buffer): Promise<number | null> {
  try {
    return (await write(descriptor, bytes)).bytesWritten;
  } catch (error) {
    return isBusy(error) ? 0 : null;
  }
}

/** Writes what is left, synchronously. What cannot be written now is lost, because the process must end. */
function writeLast(descriptor: number, pieces: readonly Buffer[]): void {
  let tries = 0;
  for (const piece of pieces) {
    for (let rest = piece; rest.length > 0; ) {
      const written = tryWriteSync(descriptor, rest);
      tries = written === 0 ? tries + 1 : 0;
      if (written === null || tries === LAST_TRIES) return;
      rest = rest.subarray(written);
    }
  }
}

function tryWriteSync(descriptor: number, bytes: Buffer): number | null {
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

// Opens the terminal for the log. One that is paused, or whose line is dead, takes no output for an unknown time.

const { O_WRONLY, O_NOCTTY, O_NONBLOCK } = constants;

/**
 * Opens the same terminal again in non-blocking mode, and returns the new file descriptor: Node.js makes writers to a
 * terminal wait, and a server must not. Returns `descriptor` when that cannot be opened, for example because it is
 * another user's.
 */
export function reopenNonBlocking(descriptor: number): number {
  try {
    return openSync(`/dev/fd/${descriptor}`, O_WRONLY | O_NOCTTY | O_NONBLOCK);
  } catch {
    return descriptor;
  }
}
