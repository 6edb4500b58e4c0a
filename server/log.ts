/** Writes the log on standard error: JSON lines for machines, sentences on a terminal. */
import { pino } from "pino";
import type { LogLevel } from "../shared/settings/serving.ts";
import { printable } from "../shared/text.ts";
import type { Observation, Observe } from "./http/observe.ts";
import { openLogSink, reopenNonBlocking } from "./log-sink.ts";

export type Log = {
  /** Null when the log level leaves these lines out, so that callers need not gather the fields. */
  readonly info: ((fields: object) => void) | null;
  readonly warn: (what: unknown) => void;
  readonly error: (what: unknown) => void;
  /** Number of lines that were dropped, because nobody read them in time or the disk was full. */
  readonly dropped: () => number;
  /** Resolves when everything is written, or cannot be written. */
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

// Turns an observed request into a line of the access log: fields for machines, or a sentence.

type AccessLine = {
  readonly id: string;
  readonly client: string | undefined;
  /** The first characters of the app key. */
  readonly app: string | undefined;
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly shape: string | null;
  readonly counted: boolean;
  readonly source: string;
  /** Milliseconds from the request's arrival until its answer was handed to the system. */
  readonly ms: number;
  readonly bytes: number;
};

/** Null when `write` is, because the log level leaves requests out: they cost the log nothing then. */
export function openAccessLog(write: ((line: AccessLine) => void) | null): Observe | null {
  return write === null ? null : (observation) => write(accessLine(observation, performance.now()));
}

/** `now` and the start are readings of the same clock, in milliseconds. */
function accessLine(observation: Observation, now: number): AccessLine {
  const { id, client, appKey, method, target, status, shape, counted, source, bytes, start } = observation;
  return {
    id,
    client,
    app: appKey === undefined ? undefined : beginningOfKey(appKey),
    method,
    target: printTarget(target),
    status,
    shape,
    counted,
    source,
    ms: Math.round((now - start) * 1_000) / 1_000,
    bytes,
  };
}

/** Number of characters of a key that are shown, but at most half of the key. */
const SHOWN_LENGTH = 4;
const MAX_TARGET = 1_024;
/** Node gives each byte of the target as one character, and a terminal might execute some of them as control codes. */
const UNPRINTABLE = /[^\x21-\x7e]/g;

/** The first characters of an app key, which tell an operator's apps apart. */
export function beginningOfKey(key: string): string {
  const shown = key.slice(0, Math.min(SHOWN_LENGTH, key.length >> 1));
  return `${shown.replace(/[^A-Za-z0-9_-]/g, "?")}…`;
}

/** The target as the log shows it: printable ASCII, and not too long. */
export function printTarget(target: string): string {
  const printed = target.replace(UNPRINTABLE, encodeByte);
  return printed.length <= MAX_TARGET ? printed : `${printed.slice(0, MAX_TARGET)}…`;
}

function encodeByte(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/** The fields that the sentence of `describeLine` already shows. */
const SHOWN_IN_WORDS: readonly (keyof AccessLine)[] = [
  "method",
  "target",
  "status",
  "ms",
  "source",
  "bytes",
  "shape",
  "counted",
];

/** Null for a line that is not about a request. */
function describeLine(line: Partial<AccessLine>): string | null {
  const { method, target, status, shape, counted, source, ms, bytes } = line;
  if (method === undefined || status === undefined) return null;
  const meaning = shape === null ? "" : ` ${shape} ${counted ? "counted" : "free"} ${source}`;
  return `${method} ${target} ${status} ${ms} ms ${bytes} bytes${meaning}`;
}
