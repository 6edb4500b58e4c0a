/** Turns an observed request into a line of the access log: fields for machines, or a sentence. */
import type { Observation, Observe } from "../http/observation.ts";
import { redactKey, redactTarget } from "./redaction.ts";

export type AccessLine = {
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
    app: appKey === undefined ? undefined : redactKey(appKey),
    method,
    target: redactTarget(target, appKey ?? ""),
    status,
    shape,
    counted,
    source,
    ms: Math.round((now - start) * 1_000) / 1_000,
    bytes,
  };
}

/** The fields that the sentence of `describeLine` already shows. */
export const SHOWN_IN_WORDS: readonly (keyof AccessLine)[] = [
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
export function describeLine(line: Partial<AccessLine>): string | null {
  const { method, target, status, shape, counted, source, ms, bytes } = line;
  if (method === undefined || status === undefined) return null;
  const meaning = shape === null ? "" : ` ${shape} ${counted ? "counted" : "free"} ${source}`;
  return `${method} ${target} ${status} ${ms} ms ${bytes} bytes${meaning}`;
}
