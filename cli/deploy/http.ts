/**
 * Sends a request and reads the whole response. Retries transient faults with exponential backoff, or after the pause
 * that `Retry-After` asks for (RFC 9110 section 10.2.3).
 */
import * as http from "node:http";
import * as https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, type Settings } from "../../shared/config.ts";
import { isCertificateError } from "../errors.ts";

export type OutgoingRequest = {
  readonly method: string;
  readonly url: URL;
  /** With names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer> | string | undefined;
};

export type Received = {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
};

/** What a response means: the result that was asked for, or a fault. */
export type Verdict<T> = { readonly done: T } | Fault;

/** `isRetryable` is whether a retry may succeed. */
export type Fault = { readonly fault: RemoteFault; readonly isRetryable: boolean };

export type RetryPolicy = {
  /** Seconds that one try may take, plus an allowance for large bodies. */
  readonly timeout: number;
  /** Maximum number of retries after the first try. */
  readonly retries: number;
  readonly now: () => Date;
  /** Called before each try. When it throws, there are no more tries. */
  readonly throwIfStopped?: () => void;
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
  make: () => OutgoingRequest,
  judge: (received: Received) => Verdict<T>,
  host: string,
  retryPolicy: RetryPolicy,
  signal?: AbortSignal,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    retryPolicy.throwIfStopped?.();
    const outcome = await attempt(make(), judge, host, retryPolicy, signal);
    if ("done" in outcome) return outcome.done;
    if (!outcome.isRetryable || tries >= retryPolicy.retries) throw outcome.fault;
    await sleep(pauseBefore(tries, outcome.after ?? null, retryPolicy.now()), undefined, { signal });
  }
}

/** `after` is the value of the `Retry-After` header. */
type Outcome<T> = Verdict<T> & { readonly after?: string | null };

async function attempt<T>(
  outgoing: OutgoingRequest,
  judge: (received: Received) => Verdict<T>,
  host: string,
  { timeout }: RetryPolicy,
  end?: AbortSignal,
): Promise<Outcome<T>> {
  const deadline = openDeadline(timeout + (outgoing.body?.length ?? 0) / SLOWEST);
  const signal = end === undefined ? deadline.signal : AbortSignal.any([deadline.signal, end]);
  try {
    const received = await send(outgoing, signal, ({ headers }) =>
      deadline.extend(Number(headers["content-length"] ?? 0) / SLOWEST),
    );
    if (received.status === 407) return unreachable(host, "perhaps a proxy requires authentication", true);
    return { ...judge(received), after: received.headers["retry-after"] ?? null };
  } catch (error) {
    if (deadline.signal.aborted) {
      const advice = "Try again later, or raise --timeout";
      return makeFault(`${host} did not answer within ${timeout} seconds. ${advice}.`, true);
    }
    return connectionFault(error, host);
  } finally {
    deadline.clear();
  }
}

/** Milliseconds that a connection may take to open, and may be unused. */
const IDLE = 10_000;
/** Agents of their own, because those of Node.js may go through a proxy that the environment names. */
const PLAIN = { request: http.request, agent: new http.Agent({ keepAlive: true, timeout: IDLE }) };
const SECURE = { request: https.request, agent: new https.Agent({ keepAlive: true, timeout: IDLE }) };
/** Some APIs refuse requests without a name. A body that something in between has compressed would not be decompressed. */
const COMMON_HEADERS = { accept: "*/*", "accept-encoding": "identity", "user-agent": "precast" };

/** Not by `fetch`, which takes four times the processor time. Redirects are not followed. */
function send(
  { method, url, headers, body }: OutgoingRequest,
  signal: AbortSignal,
  onHead: (response: http.IncomingMessage) => void,
): Promise<Received> {
  const { request, agent } = url.protocol === "https:" ? SECURE : PLAIN;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { ...COMMON_HEADERS, ...headers }, agent, signal });
    sent.on("error", reject);
    // The deadline is for a connection that is open and silent.
    sent.on("timeout", () => {
      if (sent.socket?.connecting) sent.destroy(Object.assign(new Error("timeout"), { code: "ETIMEDOUT" }));
    });
    sent.on("response", (response) => {
      onHead(response);
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.end(body);
  });
}

/** Aborts `signal` after so many seconds. `extend` lengthens that, once the size of the response is known. */
function openDeadline(seconds: number) {
  const ended = new AbortController();
  const start = performance.now();
  const endAfter = (after: number) => setTimeout(() => ended.abort(), start + after * 1_000 - performance.now());
  let timer = endAfter(seconds);
  const clear = () => clearTimeout(timer);
  const extend = (more: number) => {
    clear();
    timer = endAfter(seconds + more);
  };
  return { signal: ended.signal, extend, clear };
}

/** Codes of errors that a retry does not cure. */
const PERMANENT_CODES = /^(ENOTFOUND|ERR_INVALID|ERR_TLS)/;

function connectionFault(error: unknown, host: string): Fault {
  const { code = "", message, syscall } = error as NodeJS.ErrnoException;
  if (isCertificateError(code)) {
    const advice = "Check the address and the expiry date of the certificate";
    return makeFault(
      `The certificate of ${host} is not trusted (${code}). ${advice}; for a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file.`,
    );
  }
  // The code for a connection that the other side closed before it had answered: "socket hang up" for Node.js.
  const isClosed = code === "ECONNRESET" && syscall === undefined;
  return unreachable(host, isClosed ? "UND_ERR_SOCKET" : code || message, !PERMANENT_CODES.test(code));
}

function unreachable(host: string, why: string, isRetryable: boolean): Fault {
  return makeFault(
    `${host} cannot be reached (${why}). Check the address and that the server is running.`,
    isRetryable,
  );
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
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || (status >= 500 && status !== 501);
}

// The credentials of Amazon's APIs and compatible ones.

export type Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Null for permanent credentials: only temporary ones have a session token. */
  readonly sessionToken: string | null;
};

export const CREDENTIAL_SETTINGS = ["accessKeyId", "secretAccessKey", "sessionToken"] as const;
type CredentialSettings = Settings<(typeof CREDENTIAL_SETTINGS)[number]>;

/** Error messages for missing credentials; empty when none are missing. */
export function missingCredentials({ accessKeyId, secretAccessKey }: CredentialSettings): string[] {
  return [
    ...(accessKeyId === null ? ["AWS_ACCESS_KEY_ID is missing in the environment: credentials are required."] : []),
    ...(secretAccessKey === null ? ["AWS_SECRET_ACCESS_KEY is missing in the environment."] : []),
  ];
}

/** Throws ConfigError when they are missing. */
export function credentialsIn(settings: CredentialSettings): Credentials {
  const { accessKeyId, secretAccessKey, sessionToken } = settings;
  if (accessKeyId === null || secretAccessKey === null) throw new ConfigError(missingCredentials(settings));
  return { accessKeyId, secretAccessKey, sessionToken };
}

// The error of a store or a CDN that fails a deploy. The message says what failed and what to do.

export class RemoteFault extends Error {
  /** Whether a later try may succeed. */
  readonly isTransient: boolean;

  constructor(message: string, isTransient = false) {
    super(message);
    this.name = "RemoteFault";
    this.isTransient = isTransient;
  }
}

export function makeFault(message: string, isRetryable = false): Fault {
  return { fault: new RemoteFault(message, isRetryable), isRetryable };
}

/** `description` is what the store or CDN has said. */
export function overloadedFault(name: string, description: string, isRetryable: boolean): Fault {
  return makeFault(`${name} is overloaded or failing (${description}). Try again later.`, isRetryable);
}
