/** Writes the log on standard error: JSON lines for machines, sentences on a terminal. */
import { constants, openSync, writeSync, write as writeTo } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { pino } from "pino";
import type { LogLevel } from "../shared/settings/serving.ts";
import { printable } from "../shared/text.ts";
import { describeLine, SHOWN_IN_WORDS } from "./http/observe.ts";

export type Log = {
  /** Null when the log level leaves these lines out, so that callers need not gather the fields. */
  readonly info: ((fields: object) => void) | null;
  readonly warn: (what: unknown) => void;
  readonly error: (what: unknown) => void;
  /** Number of lines that were dropped, because nobody read them in time or the disk was full. */
  readonly dropped: () => number;
  /** Resolves when everything is written, or when the disk takes no more, or nobody reads. */
  readonly close: () => Promise<void>;
};

type LogOptions = {
  readonly level: LogLevel;
  /** File descriptor of standard error, or of a file in a test. */
  readonly descriptor: number;
  /** Whether other processes of the server write to the same place. */
  readonly shared: boolean;
  /** Sentences instead of JSON lines. */
  readonly readable: boolean;
  readonly colors: boolean;
};

export async function openLog({ level, descriptor, shared, readable, colors }: LogOptions): Promise<Log> {
  const sink = openLogSink(readable ? reopenNonBlocking(descriptor) : descriptor, shared);
  const sentence = readable ? await openSentences(colors) : null;
  const stream = sentence === null ? sink : { write: (line: string) => sink.write(sentence(line)) };
  const logger = pino({ ...FORMAT, timestamp: cachedTime(), level, serializers: { err: serializeError } }, stream);

  /** Flushes at once, because what went wrong may end the process next. */
  function logNow(level: "warn" | "error", what: unknown): void {
    // The message is passed explicitly: otherwise pino takes it from the error, with what a terminal would obey.
    if (what instanceof Error) logger[level]({ err: what }, printable(what.message));
    else logger[level](printable(String(what)));
    sink.flush();
  }

  return {
    info: logger.isLevelEnabled("info") ? (fields) => logger.info(fields) : null,
    warn: (what) => logNow("warn", what),
    error: (what) => logNow("error", what),
    dropped: sink.dropped,
    close: sink.close,
  };
}

const FORMAT = {
  base: { pid: process.pid },
  formatters: { level: (label: string) => ({ level: label }) },
};

/** Keeps the text of the last time: many lines fall into one millisecond, and formatting costs more than reading it. */
function cachedTime(): () => string {
  const { epochTime, isoTime } = pino.stdTimeFunctions;
  let [timestamp, text] = ["", ""];
  return () => {
    const now = epochTime();
    if (now !== timestamp) [timestamp, text] = [now, isoTime()];
    return text;
  };
}

/** Returns a function that turns a JSON line into a sentence. Its library is loaded only for a terminal. */
async function openSentences(colors: boolean): Promise<(line: string) => string> {
  const { prettyFactory } = await import("pino-pretty");
  return prettyFactory({
    colorize: colors,
    singleLine: true,
    translateTime: "HH:MM:ss",
    ignore: ["pid", ...SHOWN_IN_WORDS].join(","),
    messageFormat: (line, messageKey) => describeLine(line) ?? String(line[messageKey] ?? ""),
  });
}

/**
 * Errors as they are logged, without what a terminal would obey: an error of the database may repeat any content.
 * pino's own serializer adds the causes to message and stack, and copies every property that a library has set: a
 * database sets the values of the row that it refused, so only `code` is copied.
 */
const serializeError = pino.stdSerializers.wrapErrorSerializer(({ type, message, stack, code, raw }) => ({
  type,
  message: printable(repeatsCause(raw) ? raw.message : message),
  stack: printable(stack),
  ...(code === undefined ? {} : { code }),
}));

/** Whether an error's message is or ends with that of its cause, which pino would then write again. */
function repeatsCause({ message, cause }: Error): boolean {
  return cause instanceof Error && message.endsWith(cause.message);
}

// Writes the lines, many at a time, and outside the thread that answers requests. pino's own destination costs each line
// twice as much, and holds up the end of the process for as long as nobody reads or the disk is full.

type LogSink = Pick<Log, "dropped" | "close"> & {
  readonly write: (line: string) => void;
  /** Begins to write the lines gathered so far, without waiting until they are written. */
  readonly flush: () => void;
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
function reopenNonBlocking(descriptor: number): number {
  try {
    return openSync(`/dev/fd/${descriptor}`, O_WRONLY | O_NOCTTY | O_NONBLOCK);
  } catch {
    return descriptor;
  }
}
