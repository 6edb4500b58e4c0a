/**
 * Sends a request and reads the whole response. Retries transient faults with exponential backoff, or after the pause
 * that `Retry-After` asks for (RFC 9110 section 10.2.3).
 */
import { setTimeout as pause } from "node:timers/promises";
import { isCertificateError } from "../failure.ts";
import { RemoteFault } from "./fault.ts";

export type Outgoing = {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers | Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer> | string | undefined;
};

export type Sent = { readonly status: number; readonly headers: Headers; readonly body: Buffer };

/** What a response means: the result that was asked for, or a fault. `passing` says whether a retry may succeed. */
export type Verdict<T> = { readonly done: T } | { readonly fault: RemoteFault; readonly passing: boolean };

export type Patience = {
  /** Seconds that one try may take, plus an allowance for large bodies. */
  readonly timeout: number;
  /** Maximum number of retries after the first try. */
  readonly retries: number;
  readonly now: () => Date;
  /** Called before each try. When it throws, there are no more tries. */
  readonly permit?: () => void;
};

/** Milliseconds. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 20_000;
/** Bytes per second that any connection reaches: the time limit grows with the size of the body accordingly. */
const SLOWEST = 64_000;

/**
 * `make` is called for each try, because a signature contains the time. `host` is for error messages. `signal` aborts
 * the current try and all further ones. Throws RemoteFault, or AbortError after `signal`.
 */
export async function exchange<T>(
  make: () => Outgoing | Promise<Outgoing>,
  judge: (sent: Sent) => Verdict<T>,
  host: string,
  patience: Patience,
  signal?: AbortSignal,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    patience.permit?.();
    const outcome = await attempt(await make(), judge, host, patience, signal);
    if ("done" in outcome) return outcome.done;
    if (!outcome.passing || tries >= patience.retries) throw outcome.fault;
    await pause(pauseBefore(tries, outcome.after ?? null, patience.now()), undefined, { signal });
  }
}

/** `after` is the value of the `Retry-After` header. */
type Outcome<T> = Verdict<T> & { readonly after?: string | null };

async function attempt<T>(
  { method, url, headers, body }: Outgoing,
  judge: (sent: Sent) => Verdict<T>,
  host: string,
  { timeout }: Patience,
  end?: AbortSignal,
): Promise<Outcome<T>> {
  const limit = openLimit(timeout + (body?.length ?? 0) / SLOWEST);
  const signal = end === undefined ? limit.signal : AbortSignal.any([limit.signal, end]);
  try {
    const response = await fetch(url, { method, headers, body: body ?? null, redirect: "manual", signal });
    limit.add(Number(response.headers.get("content-length") ?? 0) / SLOWEST);
    const sent = {
      status: response.status,
      headers: response.headers,
      body: Buffer.from(await response.arrayBuffer()),
    };
    return { ...judge(sent), after: sent.headers.get("retry-after") };
  } catch (error) {
    if (error instanceof RemoteFault) throw error;
    if (limit.signal.aborted) return { fault: new RemoteFault("silent", silence(host, timeout)), passing: true };
    return connectionFault(error, host);
  } finally {
    limit.clear();
  }
}

type Limit = {
  readonly signal: AbortSignal;
  readonly add: (seconds: number) => void;
  readonly clear: () => void;
};

/** Aborts `signal` after so many seconds. `add` extends the limit, once the size of the response is known. */
function openLimit(seconds: number): Limit {
  const ended = new AbortController();
  const begun = performance.now();
  const endAfter = (after: number) => setTimeout(() => ended.abort(), begun + after * 1_000 - performance.now());
  let timer = endAfter(seconds);
  const clear = () => clearTimeout(timer);
  const add = (more: number) => {
    clear();
    timer = endAfter(seconds + more);
  };
  return { signal: ended.signal, add, clear };
}

function silence(host: string, timeout: number): string {
  return `${host} did not answer within ${timeout} seconds. Try again later, or give it longer with --timeout.`;
}

/** Codes of errors that a retry does not cure. */
const LASTING = /^(ENOTFOUND|ERR_INVALID|ERR_TLS)/;

function connectionFault(error: unknown, host: string): { fault: RemoteFault; passing: boolean } {
  const cause = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  const code = cause.code ?? "";
  const isCertificate = isCertificateError(code);
  const fault = new RemoteFault("unreachable", isCertificate ? untrusted(host, code) : unreached(host, cause));
  return { fault, passing: !isCertificate && !LASTING.test(code) };
}

function untrusted(host: string, code: string): string {
  const advice = "Check the address and how long the certificate lasts";
  return `The certificate of ${host} is not trusted (${code}). ${advice}; NODE_EXTRA_CA_CERTS names the file of an authority of your own.`;
}

/** `fetch` reports a proxy's 407 as an error without code and message. */
function unreached(host: string, { code, message }: NodeJS.ErrnoException): string {
  const why = code ?? (message || "perhaps a proxy that wants to know who asks");
  return `${host} can't be reached (${why}). Check the address, and that it runs.`;
}

const LONGEST_WAIT = 60_000;

/**
 * Milliseconds to wait before the next try. `tries` is 0 after the first failed one. `retryAfter` is in seconds or a
 * date; it can lengthen the pause, up to a minute.
 */
export function pauseBefore(tries: number, retryAfter: string | null, now: Date): number {
  const growing = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** tries);
  if (retryAfter === null) return growing;
  const asked = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now.getTime();
  return Number.isNaN(asked) ? growing : Math.max(growing, Math.min(LONGEST_WAIT, asked));
}

/** Whether a retry may succeed after a response with this status. */
export function isPassing(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || (status >= 500 && status !== 501);
}
