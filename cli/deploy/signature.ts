/** Signs requests to Amazon's APIs and compatible ones (AWS Signature Version 4). */
import { createHmac, hash } from "node:crypto";
import type { Credentials, OutgoingRequest } from "./http.ts";

type Signer = (request: OutgoingRequest, now: Date) => OutgoingRequest;

/**
 * Signs all headers of a request. Names in its query must not begin with one another. Source: AWS Identity and Access
 * Management User Guide, "Create a signed AWS API request".
 */
export function openSigner(
  { accessKeyId, secretAccessKey, sessionToken }: Credentials,
  { service, region }: { readonly service: string; readonly region: string },
): Signer {
  const findKey = openDailyKey(secretAccessKey);
  const token = sessionToken === null ? {} : { "x-amz-security-token": sessionToken };
  return ({ method, url, headers, body }, now) => {
    const time = now.toISOString().replace(/[:-]|\.\d{3}/g, "");
    const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`;
    const all: Readonly<Record<string, string>> = { ...headers, ...token, host: url.host, "x-amz-date": time };
    const names = Object.keys(all).sort();
    const lines = names.map((name) => `${name}:${all[name]?.trim().replace(/\s+/g, " ")}`);
    // Services other than S3 decode a path before they encode it.
    const path = url.pathname.replace(service === "s3" ? /[^\w.~/%-]/g : /[^\w.~/-]/g, encodeByte);
    const query = url.search.slice(1).replace(/[^\w.~%=&-]/g, encodeByte);
    const payload = headers["x-amz-content-sha256"] ?? hash("sha256", body ?? "");
    const signed = names.join(";");
    const asked = [method, path, query.split("&").sort().join("&"), ...lines, "", signed, payload].join("\n");
    const signature = hmac(findKey(scope), ["AWS4-HMAC-SHA256", time, scope, hash("sha256", asked)].join("\n"));
    const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature.toString("hex")}`;
    return { method, url, headers: { ...all, authorization }, body };
  };
}

/** Derives the key of a scope, which holds for a day, once. */
function openDailyKey(secret: string): (scope: string) => Uint8Array {
  let last: { readonly scope: string; readonly key: Uint8Array } = { scope: "", key: new Uint8Array() };
  return (scope) => {
    if (last.scope === scope) return last.key;
    let key: Uint8Array = Buffer.from(`AWS4${secret}`);
    for (const part of scope.split("/")) key = hmac(key, part);
    last = { scope, key };
    return key;
  };
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

/** For characters that URLs may have as they are, and signatures may not: all of them are ASCII. */
function encodeByte(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}
