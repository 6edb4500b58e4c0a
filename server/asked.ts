/** What of an HTTP request decides its answer, read from the raw headers: to have all of them sorted costs more than the answer. */
import type { IncomingMessage } from "node:http";

export type AskedHttp = {
  readonly method: string;
  readonly target: string;
  readonly appKey: string | undefined;
  readonly ifNoneMatch: string | undefined;
  readonly acceptEncoding: string | undefined;
  readonly requestId: string | undefined;
};

const HEADERS = {
  "x-app-key": "appKey",
  "if-none-match": "ifNoneMatch",
  "accept-encoding": "acceptEncoding",
  "x-request-id": "requestId",
} as const;
type Name = keyof typeof HEADERS;
const LENGTHS = new Set(Object.keys(HEADERS).map((name) => name.length));

/**
 * The target is read raw, which web Requests do not allow: their URLs have dot segments and backslashes normalised, and
 * the contract (section 3) normalises nothing.
 */
export function readAsked({ method = "GET", url = "/", rawHeaders }: IncomingMessage): AskedHttp {
  const asked: { -readonly [K in keyof AskedHttp]: AskedHttp[K] } = {
    method,
    target: url,
    appKey: undefined,
    ifNoneMatch: undefined,
    acceptEncoding: undefined,
    requestId: undefined,
  };
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const meant = LENGTHS.has(name.length) ? HEADERS[name.toLowerCase() as Name] : undefined;
    if (meant === undefined) continue;
    const before = asked[meant];
    const value = rawHeaders[at + 1] as string;
    // A header that is sent twice is one list (RFC 9110 section 5.3).
    asked[meant] = before === undefined ? value : `${before}, ${value}`;
  }
  return asked;
}
