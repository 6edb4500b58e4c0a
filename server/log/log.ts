/** The log on standard error: JSON lines for machines, sentences where a person looks. */
import { pino } from "pino";
import type { LogLevel } from "../../shared/settings/serving.ts";
import { redactText } from "./redaction.ts";
import { openLogSink } from "./sink.ts";
import { openAnew } from "./terminal.ts";

export type Log = {
  /** Null below this level: nobody need even gather what it says. */
  readonly info: ((fields: object) => void) | null;
  readonly warn: (what: unknown) => void;
  readonly error: (what: unknown) => void;
  /** Makes an app key known, so that no error shows it. */
  readonly hide: (appKey: string) => void;
  /** Lines that nobody read in time, or that the disk had no room for. */
  readonly dropped: () => number;
  /** Resolves when everything is written. */
  readonly close: () => Promise<void>;
};

export type LogOptions = {
  readonly level: LogLevel;
  /** Standard error, or a file's number in a test. */
  readonly descriptor: number;
  /** Other processes of the server write there as well. */
  readonly shared: boolean;
  /** Sentences instead of JSON lines. */
  readonly readable: boolean;
  readonly colors: boolean;
};

/** A bound, for a server of very many apps; the key that an error names was used a moment ago. */
const MAX_KEYS = 10_000;

export async function openLog({ level, descriptor, shared, readable, colors }: LogOptions): Promise<Log> {
  const keys = new Set<string>();
  const sink = openLogSink(readable ? openAnew(descriptor) : descriptor, shared);
  const sentence = readable ? await openSentences(colors) : null;
  const stream = sentence === null ? sink : { write: (line: string) => sink.write(sentence(line)) };
  const logger = pino({ ...FORMAT, timestamp: timeOfLines(), level, serializers: { err: errorWithout(keys) } }, stream);

  /** Not kept back: what goes wrong may end the process next. */
  function tell(level: "warn" | "error", what: unknown): void {
    // The message is given although the error has it: else the library takes it from there as it is.
    if (what instanceof Error) logger[level]({ err: what }, redactText(what.message, keys));
    else logger[level](redactText(String(what), keys));
    sink.flush();
  }

  return {
    info: logger.isLevelEnabled("info") ? (fields) => logger.info(fields) : null,
    warn: (what) => tell("warn", what),
    error: (what) => tell("error", what),
    hide: (appKey) => {
      if (keys.size >= MAX_KEYS) keys.clear();
      keys.add(appKey);
    },
    dropped: sink.dropped,
    close: sink.close,
  };
}

const FORMAT = {
  base: { pid: process.pid },
  formatters: { level: (label: string) => ({ level: label }) },
};

/** Many lines are of one millisecond, and the text of a time takes longer than the time. */
function timeOfLines(): () => string {
  const { epochTime, isoTime } = pino.stdTimeFunctions;
  let [instant, text] = ["", ""];
  return () => {
    const now = epochTime();
    if (now !== instant) [instant, text] = [now, isoTime()];
    return text;
  };
}

/** Makes a sentence of a line. Loaded for a terminal alone. */
async function openSentences(colors: boolean): Promise<(line: string) => string> {
  const [{ prettyFactory }, { describeLine, SHOWN_IN_WORDS }] = await Promise.all([
    import("pino-pretty"),
    import("./access-line.ts"),
  ]);
  return prettyFactory({
    colorize: colors,
    singleLine: true,
    translateTime: "HH:MM:ss",
    ignore: ["pid", ...SHOWN_IN_WORDS].join(","),
    messageFormat: (line, messageKey) => describeLine(line) ?? String(line[messageKey] ?? ""),
  });
}

/**
 * pino's own serializer tells an error with its causes, and all that a library has hung on it: a database adds the values of
 * the row that it refused, so of that no more is taken than the code.
 */
function errorWithout(keys: ReadonlySet<string>): (error: Error) => object {
  return pino.stdSerializers.wrapErrorSerializer(({ type, message, stack, code, raw }) => ({
    type,
    message: redactText(isSaidTwice(raw) ? raw.message : message, keys),
    stack: redactText(stack, keys),
    ...(code === undefined ? {} : { code }),
  }));
}

/** A fault that is another's by name has its words as well. */
function isSaidTwice({ message, cause }: Error): boolean {
  return cause instanceof Error && cause.message === message;
}
