/** Finds what is wrong with a request as HTTP, before the request is interpreted. */
import {
  badRequest,
  headersTooLarge,
  MAX_HEADERS,
  MAX_HEADERS_SIZE,
  MAX_TARGET_SIZE,
  methodNotAllowed,
  notEncoded,
  type Refusal,
  requestTimeout,
  targetTooLong,
} from "../../shared/api/errors.ts";

/** The parts that are checked of a request that node:http has parsed. */
type Head = {
  readonly url?: string | undefined;
  readonly httpVersion: string;
  /** Names and values alternate. */
  readonly rawHeaders: readonly string[];
};

/** A refusal says what is wrong. `body`: the request is valid, but has a body, which is not read. Null: neither. */
type Finding = Refusal | "body" | null;

/** Runs for every request: one pass over the headers, and no objects are created. */
export function inspect({ url = "", httpVersion, rawHeaders }: Head): Finding {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return badRequest(`HTTP/${httpVersion} is not supported.`);
  if (url.length > MAX_TARGET_SIZE) return targetTooLong();
  if (rawHeaders.length > 2 * MAX_HEADERS) return headersTooLarge();
  let size = 0;
  let hosts = 0;
  let body = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    size += name.length + value.length + LINE;
    // Few header names have the length of one of these, so for most of them comparing the length is enough.
    if (name.length === HOST.length) {
      if (!isNamed(name, HOST)) continue;
      if (!HOST_VALUE.test(value))
        return badRequest("The Host header must be a host name or address, and may have a port.");
      hosts++;
    } else if (name.length === LENGTH.length) body ||= isNamed(name, LENGTH) && !/^0+$/.test(value);
    else if (name.length === ENCODING.length && isNamed(name, ENCODING)) {
      if (httpVersion === "1.0" || value.toLowerCase() !== "chunked") return badRequest(UNKNOWN_ENCODING);
      body = true;
    }
  }
  if (size > MAX_HEADERS_SIZE) return headersTooLarge();
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1"))
    return badRequest("A request must have exactly one Host header.");
  return body ? "body" : null;
}

const HOST = "host";
/** `uri-host [ ":" port ]` (RFC 9110 section 7.2, RFC 3986 section 3.2.2), which may be empty. */
const HOST_VALUE =
  /^(?:\[(?:[\dA-F:.]+|v[\dA-F]+\.[\w.~!$&'()*+,;=:-]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\dA-F]{2})*)(?::\d*)?$/i;
const LENGTH = "content-length";
const ENCODING = "transfer-encoding";
/** Bytes of a header line besides name and value: the colon, the blank and the line end. */
const LINE = 4;
const UNKNOWN_ENCODING = "The only supported transfer encoding is 'chunked', and only in HTTP/1.1.";

function isNamed(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower;
}

/** Error with which node:http gives up a connection. */
export type ParseError = Error & {
  readonly code?: string;
  readonly reason?: string;
  /** The bytes that were read last, and how many of them were parsed. */
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
};

/**
 * Returns the refusal for an error of node:http; null when the connection failed and not the request. `seconds` is the
 * time limit for headers.
 */
export function refuseParseError(error: ParseError, seconds: number): Refusal | null {
  const { code = "", reason } = error;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return requestTimeout(seconds);
  if (code === "HPE_HEADER_OVERFLOW") return overflow(error);
  if (code === "HPE_INVALID_EOF_STATE") return badRequest("The connection was closed in the middle of a request.");
  if (!code.startsWith("HPE_")) return null;
  if (code === "HPE_INVALID_URL") return notEncoded();
  const method = code === "HPE_INVALID_METHOD" ? findMethod(error) : null;
  if (method !== null) return methodNotAllowed(method);
  return badRequest(`This is not valid HTTP/1.1 (${reason ?? "it cannot be parsed"}).`);
}

/**
 * Reads the method of a request that node:http refused: any token is a method (RFC 9110 section 9.1), and node:http
 * knows only some. Null when the line is not a request line of HTTP/1.
 */
function findMethod({ rawPacket, bytesParsed = 0 }: ParseError): string | null {
  const read = rawPacket?.toString("latin1") ?? "";
  const line = read.slice(read.lastIndexOf("\n", bytesParsed - 1) + 1);
  return /^([!#$%&'*+.^_`|~\w-]{1,64}) \S+ HTTP\/1\.[01]\r\n/.exec(line)?.[1] ?? null;
}

/** If the request line has not ended where the limit was reached, the target is too long, otherwise the headers are. */
function overflow({ rawPacket, bytesParsed }: ParseError): Refusal {
  return rawPacket?.subarray(0, bytesParsed).includes("\r\n") ? headersTooLarge() : targetTooLong();
}
