/** Reads the parts of an HTTP request that its answer depends on. */
import type { IncomingMessage } from "node:http";

export type HttpRequest = {
  readonly method: string;
  readonly target: string;
  readonly appKey: string | undefined;
  readonly ifNoneMatch: string | undefined;
  readonly acceptEncoding: string | undefined;
  readonly requestId: string | undefined;
};

/**
 * Reads the target raw. The URL of a web Request would have dot segments and backslashes normalised, and the contract
 * (section 3) normalises nothing.
 */
export function readHttpRequest({ method = "GET", url = "/", headers }: IncomingMessage): HttpRequest {
  return {
    method,
    target: url,
    appKey: joinRepeated(headers["x-app-key"]),
    ifNoneMatch: headers["if-none-match"],
    acceptEncoding: joinRepeated(headers["accept-encoding"]),
    requestId: joinRepeated(headers["x-request-id"]),
  };
}

/** A repeated header is one list (RFC 9110 section 5.3). Node joins these headers itself, whatever their types say. */
function joinRepeated(header: string | string[] | undefined): string | undefined {
  return typeof header === "object" ? header.join(", ") : header;
}
