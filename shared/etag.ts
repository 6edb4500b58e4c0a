/** ETags: what identifies the bytes of a body, and when a client has them already. Source: RFC 9110 section 8.8.3. */
import { hash } from "node:crypto";

/** Content codings in which the server sends bodies (RFC 9110 section 8.4.1). */
export type Coding = "br" | "gzip";

/** The strong ETag of a body's bytes (RFC 9110 section 8.8.3). */
export function etagOf(bytes: string | Buffer): string {
  return `"${hash("sha256", bytes, "base64url").slice(0, 27)}"`;
}

/** The ETag of the same body when compressed: other bytes need another ETag (RFC 9110 section 8.8.3.3). */
export function codedEtag(etag: string, coding: Coding): string {
  return `${etag.slice(0, -1)}-${coding}"`;
}

/** If-None-Match compares weakly (RFC 9110 section 13.1.2). */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag) return true;
  return ifNoneMatch.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || tag.replace(/^W\//, "") === etag;
  });
}
