/** Finds what is wrong with a request as HTTP, before anybody asks what it means. */
import {
  badRequest,
  headersTooLarge,
  MAX_HEADERS,
  MAX_HEADERS_SIZE,
  MAX_TARGET,
  methodNotAllowed,
  notEncoded,
  type Refusal,
  requestTimeout,
  targetTooLong,
} from "../../shared/refusal.ts";

/** A request as node:http has read it. */
export type Head = {
  readonly url?: string | undefined;
  readonly httpVersion: string;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
};

/** `body`: there is nothing wrong with the request, but something follows that nobody reads. */
export type Finding = Refusal | "body" | null;

/** Runs for every request: one pass over the headers, and nothing is made. */
export function inspect({ url = "", httpVersion, rawHeaders }: Head): Finding {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return badRequest(`HTTP/${httpVersion} is not spoken here.`);
  if (url.length > MAX_TARGET) return targetTooLong();
  if (rawHeaders.length > 2 * MAX_HEADERS) return headersTooLarge();
  let size = 0;
  let hosts = 0;
  let body = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    size += name.length + value.length + LINE;
    // Few names are as long as one of these: most are told apart without a look at their letters.
    if (name.length === HOST.length) hosts += isNamed(name, HOST) ? 1 : 0;
    else if (name.length === LENGTH.length) body ||= isNamed(name, LENGTH) && !/^0+$/.test(value);
    else if (name.length === ENCODING.length && isNamed(name, ENCODING)) {
      if (httpVersion === "1.0" || value.toLowerCase() !== "chunked") return badRequest(UNKNOWN_ENCODING);
      body = true;
    }
  }
  if (size > MAX_HEADERS_SIZE) return headersTooLarge();
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1")) return badRequest("A request has exactly one Host header.");
  return body ? "body" : null;
}

const HOST = "host";
const LENGTH = "content-length";
const ENCODING = "transfer-encoding";
/** The colon, the blank and the line end of a header. */
const LINE = 4;
const UNKNOWN_ENCODING = "The only transfer encoding is 'chunked', and that in HTTP/1.1.";

function isNamed(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower;
}

/** What node:http tells when it cannot go on with a connection. */
export type ParseError = Error & {
  readonly code?: string;
  readonly reason?: string;
  /** What was read last, and how much of it was understood. */
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
};

/** Null where it is not the client's words that are wrong, but its connection. */
export function faultOf(error: ParseError, seconds: number): Refusal | null {
  const { code = "", reason } = error;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return requestTimeout(seconds);
  if (code === "HPE_HEADER_OVERFLOW") return overflow(error);
  if (code === "HPE_INVALID_EOF_STATE") return badRequest("The connection was closed in the middle of a request.");
  if (!code.startsWith("HPE_")) return null;
  if (code === "HPE_INVALID_URL") return notEncoded();
  const method = code === "HPE_INVALID_METHOD" ? methodOf(error) : null;
  if (method !== null) return methodNotAllowed(method);
  return badRequest(`This is no HTTP/1.1 (${reason ?? "it cannot be read"}).`);
}

/** Any token is a method (RFC 9110 section 9.1), and node:http knows some. Null where the line is none of HTTP/1. */
function methodOf({ rawPacket, bytesParsed = 0 }: ParseError): string | null {
  const read = rawPacket?.toString("latin1") ?? "";
  const line = read.slice(read.lastIndexOf("\n", bytesParsed - 1) + 1);
  return /^([!#$%&'*+.^_`|~\w-]{1,64}) \S+ HTTP\/1\.[01]\r\n/.exec(line)?.[1] ?? null;
}

/** Where the line of the request had not ended, it is the target that is too long. */
function overflow({ rawPacket, bytesParsed }: ParseError): Refusal {
  return rawPacket?.subarray(0, bytesParsed).includes("\r\n") ? headersTooLarge() : targetTooLong();
}
