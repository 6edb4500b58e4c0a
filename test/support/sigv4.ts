/**
 * Checks AWS Signature Version 4 as a service does, written from Amazon's description and not from any client:
 * "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export type Signed = {
  readonly method: string;
  /** As it was sent: path and query. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
};

export type Keys = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
};

export type Scope = { readonly region: string; readonly service: string };

/** S3's error code for what is wrong; null for a valid signature. `now` is the service's clock. */
export function signatureProblem(signed: Signed, keys: Keys, scope: Scope, now: Date): string | null {
  const [, credential = "", names = "", signature = ""] =
    /^AWS4-HMAC-SHA256 Credential=([^,\s]+),\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})$/.exec(
      signed.headers.authorization ?? "",
    ) ?? [];
  if (signature === "") return "AccessDenied";
  const [keyId, day = "", region, service, end] = credential.split("/");
  const time = String(signed.headers["x-amz-date"] ?? "");
  if (keyId !== keys.accessKeyId) return "InvalidAccessKeyId";
  if (end !== "aws4_request" || service !== scope.service || region !== scope.region || !time.startsWith(`${day}T`)) {
    return "AuthorizationHeaderMalformed";
  }
  if (keys.sessionToken !== undefined && signed.headers["x-amz-security-token"] !== keys.sessionToken)
    return "InvalidToken";
  if (Math.abs(instantOf(time) - now.getTime()) > 15 * 60_000) return "RequestTimeTooSkewed";
  const list = names.split(";");
  const unsigned = Object.keys(signed.headers).filter((name) => name.startsWith("x-amz-") && !list.includes(name));
  if (!list.includes("host") || unsigned.length > 0 || [...list].sort().join(";") !== names) return "AccessDenied";
  const expected = signatureOf(signed, list, keys.secretAccessKey, [day, region, service, end].join("/"));
  if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature))) return "SignatureDoesNotMatch";
  return payloadProblem(signed, scope.service);
}

function payloadProblem({ headers, body }: Signed, service: string): string | null {
  const told = headers["x-amz-content-sha256"];
  if (told === undefined) return service === "s3" ? "MissingSecurityHeader" : null;
  return told === "UNSIGNED-PAYLOAD" || told === sha256(body) ? null : "XAmzContentSHA256Mismatch";
}

function signatureOf(signed: Signed, names: readonly string[], secret: string, scope: string): string {
  const request = sha256(canonicalRequest(signed, names));
  const toSign = ["AWS4-HMAC-SHA256", signed.headers["x-amz-date"], scope, request].join("\n");
  const key = scope.split("/").reduce((seed: string | Buffer, part) => hmac(seed, part), `AWS4${secret}`);
  return hmac(key, toSign).toString("hex");
}

function canonicalRequest({ method, target, headers, body }: Signed, names: readonly string[]): string {
  const [path = "", query = ""] = target.split(/\?(.*)/s);
  const lines = names.map(
    (name) =>
      `${name}:${String(headers[name] ?? "")
        .trim()
        .replace(/ +/g, " ")}\n`,
  );
  const payload = String(headers["x-amz-content-sha256"] ?? sha256(body));
  return [method, canonicalPath(path), canonicalQuery(query), lines.join(""), names.join(";"), payload].join("\n");
}

/** Every byte but unreserved ones and slashes is encoded, once. */
function canonicalPath(path: string): string {
  return path
    .split("/")
    .map((part) => encode(decodeURIComponent(part)))
    .join("/");
}

function canonicalQuery(query: string): string {
  const pairs = query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      return [encode(decodeURIComponent(name)), encode(decodeURIComponent(value))] as const;
    });
  const sorted = pairs.sort(([a, b], [c, d]) => compare(a, c) || compare(b, d));
  return sorted.map(([name, value]) => `${name}=${value}`).join("&");
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function encode(text: string): string {
  const bytes = [...Buffer.from(text, "utf8")];
  return bytes
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[A-Za-z0-9._~-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}

/** `20130524T000000Z`. */
function instantOf(time: string): number {
  return Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function sha256(bytes: string | Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
