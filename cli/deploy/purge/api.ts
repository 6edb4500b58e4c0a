/** Calls the API of a CDN and turns its refusals into faults. */
import {
  exchange,
  isRetryableStatus,
  type OutgoingRequest,
  type Received,
  type RetryPolicy,
  type Verdict,
} from "../exchange.ts";
import { RemoteFault } from "../fault.ts";

export type Api = {
  /** For messages. */
  readonly name: string;
  /** What the user should check when the API denies access. */
  readonly deniedHint: string;
  /** What the user should check when the API answers 404. */
  readonly missingHint: string;
  readonly retryPolicy: RetryPolicy;
};

/** Resolves when `isDone` accepts the response. Throws RemoteFault. */
export async function callApi(
  api: Api,
  make: () => OutgoingRequest | Promise<OutgoingRequest>,
  isDone: (received: Received) => boolean,
): Promise<void> {
  await exchange(
    make,
    (received) => (isDone(received) ? { done: null } : refusalOf(received, api)),
    api.name,
    api.retryPolicy,
  );
}

function refusalOf(received: Received, { name, deniedHint, missingHint }: Api): Verdict<null> {
  const { status } = received;
  const description = `${status}${errorMessageIn(received.body.toString("utf8", 0, 2_048))}`;
  const fault = (message: string) => ({ fault: new RemoteFault(message), isRetryable: false });
  if (status === 401 || status === 403) return fault(`${name} denies access (${description}). Check ${deniedHint}.`);
  if (status === 404) return fault(`${name} cannot find the resource to purge (${description}). Check ${missingHint}.`);
  if (isRetryableStatus(status) || received.body.includes("TooManyInvalidationsInProgress")) {
    return {
      fault: new RemoteFault(`${name} is overloaded or failing (${description}). Try again later.`),
      isRetryable: true,
    };
  }
  return fault(`${name} refused the purge (${description}).`);
}

/** The error message in a JSON or XML response, after a colon; empty if there is none. */
function errorMessageIn(text: string): string {
  const why =
    /"(?:message|msg|detail)"\s*:\s*"([^"]{1,200})"/.exec(text)?.[1] ?? /<Message>([^<]{1,200})</.exec(text)?.[1];
  return why === undefined ? "" : `: ${why}`;
}

/** Whether a body is a JSON object or array for which `holds` is true. */
export function isJson(body: Buffer, holds: (value: Readonly<Record<string, unknown>>) => boolean): boolean {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null && holds(value as Record<string, unknown>);
  } catch {
    return false;
  }
}

export function chunksOf<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, index) => all.slice(index * size, (index + 1) * size));
}
