/** Where the lines of the log go: many at a time, and off the thread that answers. */
import { pino } from "pino";

export type LogSink = {
  readonly write: (line: string) => void;
  /** Hands on what was gathered, without waiting for it to be written. */
  readonly flush: () => void;
  /** Lines that nobody read in time. */
  readonly dropped: () => number;
  /** Resolves when everything is written. */
  readonly close: () => Promise<void>;
};

/** Bytes handed on in one piece: each costs as much as ten lines do. */
const PIECE = 32_768;
/** What a pipe takes in one piece (PIPE_BUF): so the lines of several processes that share one are never mixed up. */
const SHARED_PIECE = 4_096;
/** Milliseconds at most until a line is handed on. */
const FLUSH_AFTER = 200;
/**
 * A log that is read slowly, or not at all, holds up nobody: what does not fit into these bytes is dropped. Lines are
 * gathered before the library has them, since it looks at its whole buffer at each write.
 */
const BUFFER = { sync: false, contentMode: "buffer", minLength: 1, maxLength: 8 * 1_024 * 1_024 };

/** `shared` says that other processes write to the same. */
export function openLogSink(descriptor: number, shared: boolean): LogSink {
  const piece = shared ? SHARED_PIECE : PIECE;
  const stream = pino.destination({ dest: descriptor, ...BUFFER, maxWrite: piece });
  let lines: string[] = [];
  let bytes = 0;
  let dropped = 0;
  let giving = 0;
  stream.on("drop", () => {
    dropped += giving;
  });

  function flush(): void {
    if (lines.length === 0) return;
    const text = lines.join("");
    giving = lines.length;
    lines = [];
    bytes = 0;
    // The library's types know text alone, which it would measure and copy once more.
    stream.write(Buffer.from(text) as never);
  }

  setInterval(flush, FLUSH_AFTER).unref();
  // Its own last words too, when the process ends otherwise than by `close`.
  process.once("exit", () => {
    flush();
    stream.flushSync();
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
      flush();
      await new Promise<void>((resolve) => stream.flush(() => resolve()));
    },
  };
}
