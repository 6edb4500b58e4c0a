/** An answer that is finished to its last header, and how it leaves. */
import type { ServerResponse } from "node:http";
import type { Answer } from "../../shared/answer.ts";

export type Ready = {
  readonly status: number;
  /** Names and values in turn: as node:http takes them fastest. */
  readonly headers: readonly string[];
  readonly body: Buffer | null;
};

export function readyOf({ status, headers, body }: Answer): Ready {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const raw = Object.entries(headers).flat();
  return { status, headers: bytes === null ? raw : [...raw, "Content-Length", String(bytes.length)], body: bytes };
}

/** Node leaves the body of an answer to HEAD away by itself. */
export function send(outgoing: ServerResponse, { status, headers, body }: Ready, requestId: string): void {
  outgoing.writeHead(status, [...headers, "X-Request-Id", requestId]).end(body ?? undefined);
}
