/** Turns an answer into the form in which node:http sends it fastest, and sends it. */
import type { ServerResponse } from "node:http";
import { type Answer, type Circumstances, refusalAnswer } from "../../shared/answer.ts";
import { isTemporary, type Refusal } from "../../shared/refusal.ts";
import { release } from "./connection.ts";

export type Ready = {
  readonly status: number;
  /** Names and values alternate, which is the form that node:http processes fastest. */
  readonly headers: readonly string[];
  readonly body: Buffer | null;
};

export function readyOf({ status, headers, body }: Answer): Ready {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const raw: string[] = [];
  for (const [name, value] of Object.entries(headers)) raw.push(name, value);
  if (bytes !== null) raw.push("Content-Length", String(bytes.length));
  return { status, headers: raw, body: bytes };
}

const refusals = new WeakMap<Refusal, Map<string, Ready>>();

/**
 * Builds the answer to a refused request. A temporary refusal (5xx) may go to many clients at once, so its answer is
 * built once for each set of headers that it can have. `circumstances` is null when the app is not known.
 */
export function readyRefusal(refusal: Refusal, circumstances: Circumstances | null, tagged = false): Ready {
  const isSpecial = circumstances === null || circumstances.likeFields.length > 0;
  if (isSpecial || !isTemporary(refusal)) return readyOf(refusalAnswer(refusal, circumstances, tagged));
  const ways = refusals.get(refusal) ?? new Map<string, Ready>();
  const { metering, fromTree } = circumstances;
  const way = `${metering.shape} ${metering.counted} ${fromTree}`;
  const ready = ways.get(way) ?? readyOf(refusalAnswer(refusal, circumstances));
  refusals.set(refusal, ways.set(way, ready));
  return ready;
}

/** Node itself omits the body of an answer to HEAD. */
export function send(outgoing: ServerResponse, { status, headers, body }: Ready, requestId: string): void {
  outgoing.writeHead(status, [...headers, "X-Request-Id", requestId]).end(body ?? undefined);
  release(outgoing);
}
