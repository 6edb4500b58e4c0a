/** The line of the access log that a request becomes: what it says to machines, and in words. */
import type { Observation, Observe } from "../http/observation.ts";
import { redactKey, redactTarget } from "./redaction.ts";

export type AccessLine = {
  readonly id: string;
  readonly client: string | undefined;
  /** Its first characters. */
  readonly app: string | undefined;
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly shape: string | null;
  readonly counted: boolean;
  readonly source: string;
  /** From the request's arrival until its answer was handed to the system. */
  readonly ms: number;
  readonly bytes: number;
};

/** Null where the level of the log leaves requests out: then they cost it nothing. */
export function openAccessLog(write: ((line: AccessLine) => void) | null): Observe | null {
  return write === null ? null : (seen) => write(accessLine(seen, performance.now()));
}

/** `now` and the start are readings of the same clock, in milliseconds. */
function accessLine(seen: Observation, now: number): AccessLine {
  const { id, client, appKey, method, target, status, shape, counted, source, bytes, start } = seen;
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

/** What `describeLine` says already. */
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

/** Null for a line that tells of no request. */
export function describeLine(line: Partial<AccessLine>): string | null {
  const { method, target, status, shape, counted, source, ms, bytes } = line;
  if (method === undefined || status === undefined) return null;
  const meaning = shape === null ? "" : ` ${shape} ${counted ? "counted" : "free"} ${source}`;
  return `${method} ${target} ${status} ${ms} ms ${bytes} bytes${meaning}`;
}
