/**
 * Sends requests: waits where the server says so, and keeps answers by their ETags, so that what is unchanged is not sent
 * again.
 */
import type * as Public from "./types.ts";

type Failure = Pick<Public.ApiError, "status" | "code" | "message"> & Partial<Public.ApiError>;

export class ApiError extends Error {
  declare readonly status: number;
  declare readonly code: string;
  declare readonly parameter: string | null;
  declare readonly retryAfter: number | null;

  constructor(failure: Failure) {
    super(failure.message);
    Object.assign(this, { name: "ApiError", parameter: null, retryAfter: null }, failure);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: what a body has depends on what was asked
export type Body = any;

/** `isCounted` is what the request costs by its price. */
export type Send = (target: string, isCounted: boolean, signal?: AbortSignal) => Promise<Body>;

type Kept = { readonly etag: string; readonly text: string };

/** The longest Retry-After that is waited for, in seconds. */
const MAX_WAIT = 10;
/** Answers that are kept for their ETags. */
const MAX_KEPT = 100;

/** `onSurprise` is called when a request has been counted and was not to be, or the other way round. */
export function openTransport(
  { url: origin, appKey, fetch = globalThis.fetch as never, onRequest, retries = 2 }: Public.Options,
  onSurprise: () => void,
): Send {
  const base = origin.replace(/\/$/, "");
  /** Those that were used last are last. */
  const kept = new Map<string, Kept>();

  return async (target, isCounted, signal) => {
    const url = base + target;
    for (let left = retries; ; left--) {
      const known = kept.get(target);
      const start = performance.now();
      const response = await fetch(url, {
        headers: { "X-App-Key": appKey, ...(known && { "If-None-Match": known.etag }) },
        signal,
      });
      const { status, headers } = response;
      const text = status === 304 ? (known as Kept).text : await response.text();
      const said = headers.get("X-Request-Counted");
      // A static host does not say it.
      const counted = said ? said === "true" : isCounted;
      if (counted !== isCounted) onSurprise();
      onRequest?.({ url, counted, status, ms: performance.now() - start });
      const body = parse(text);
      if (body.data) {
        const etag = headers.get("ETag");
        kept.delete(target);
        if (etag) kept.set(target, { etag, text });
        if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value as string);
        return body;
      }
      const wait = status === 503 && Number(headers.get("Retry-After"));
      if (left < 1 || !wait || wait > MAX_WAIT)
        throw new ApiError({
          code: "NO_ANSWER",
          message: `${status}: ${url}`,
          ...body.error,
          status,
          retryAfter: wait || null,
        });
      await new Promise((resolve) => {
        setTimeout(resolve, wait * 1e3);
        // To fetch with a signal that is aborted throws its reason.
        signal?.addEventListener("abort", resolve);
      });
    }
  };
}

function parse(text: string): Body {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
