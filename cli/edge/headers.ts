/** Computes the headers of what an edge answers itself: exactly those of the server. Source: contract.md section 7. */
import { bodyAnswer, type CachePolicy, preflightAnswer, refusalAnswer } from "../../shared/answer.ts";
import { DATABASE_UNAVAILABLE, methodNotAllowed, type Refusal } from "../../shared/refusal.ts";

export type Headers = Readonly<Record<string, string>>;

export type HeadersAndBody = { readonly headers: Headers; readonly body: string };

/**
 * Headers of every file of the tree, without ETag and cache tags. `Vary` lacks `Accept-Encoding`, because an edge has
 * each body in one coding; hosts that compress add it themselves.
 */
export function fileHeaders(policy: CachePolicy): Headers {
  const metering = { shape: "page", counted: false, rule: "" } as const;
  const circumstances = { appKey: "", type: null, metering, saving: null, fromTree: true, likeFields: [] };
  const { ETag: _, ...headers } = bodyAnswer(
    { bytes: "", etag: '""' },
    circumstances,
    { ...policy, tagged: false },
    undefined,
  ).headers;
  const { Vary = "" } = preflightHeaders();
  return { ...headers, Vary };
}

/** Headers of the answer to OPTIONS, which is 204 with or without an app key. */
export function preflightHeaders(): Headers {
  return preflightAnswer().headers;
}

/** Headers and body of the 503 while the server is down: what the server sends while the database is down. */
export function unavailableAnswer(): HeadersAndBody {
  return headersAndBodyOf(DATABASE_UNAVAILABLE);
}

/** Headers and body of the 405 to a PURGE from a client that may not purge: what the server sends to any PURGE. */
export function purgeRefusalAnswer(): HeadersAndBody {
  return headersAndBodyOf(methodNotAllowed("PURGE"));
}

function headersAndBodyOf(refusal: Refusal): HeadersAndBody {
  const { headers, body } = refusalAnswer(refusal, null);
  return { headers, body: String(body) };
}

/** The headers without Content-Type, for hosts that set it with a directive of its own. */
export function withoutContentType(headers: Headers): [name: string, value: string][] {
  return Object.entries(headers).filter(([name]) => name !== "Content-Type");
}

/** Seconds for which a shared cache takes an answer as fresh. Zero when the policy says none. Source: RFC 9111 section 4.2.1. */
export function lifetimeOf(policy: string): number {
  return directiveOf(policy, "s-maxage") ?? directiveOf(policy, "max-age") ?? 0;
}

/** Seconds of a Cache-Control directive, for hosts that need the number. Zero when the policy has no such directive. */
export function secondsOf(policy: string, directive: "stale-while-revalidate" | "stale-if-error"): number {
  return directiveOf(policy, directive) ?? 0;
}

/** The case of a directive's name does not matter (RFC 9111 section 5.2). */
function directiveOf(policy: string, name: string): number | null {
  const found = new RegExp(`(?:^|[\\s,])${name}=(\\d+)`, "i").exec(policy);
  return found === null ? null : Number(found[1]);
}
