/** The headers that an edge gives in the server's place: exactly those of the server's own answers. Source: contract.md section 7. */
import { bodyAnswer, type CachePolicy, preflightAnswer, refusalAnswer } from "../../shared/answer.ts";
import { DATABASE_UNAVAILABLE, methodNotAllowed, type Refusal } from "../../shared/refusal.ts";

export type Headers = Readonly<Record<string, string>>;

export type Said = { readonly headers: Headers; readonly body: string };

/** Those of every file of the tree: no validator, no tags. An edge has each body in one coding, until it compresses it itself. */
export function fileHeaders(policy: CachePolicy): Headers {
  const metering = { shape: "page", counted: false, rule: "" } as const;
  const circumstances = { appKey: "", type: null, metering, saving: null, fromTree: true, likes: [] };
  const { ETag: _, ...headers } = bodyAnswer(
    { bytes: "", etag: '""' },
    circumstances,
    { ...policy, tagged: false },
    undefined,
  ).headers;
  const { Vary = "" } = preflightHeaders();
  return { ...headers, Vary };
}

/** Those of the answer to OPTIONS: it is 204, for anybody. */
export function preflightHeaders(): Headers {
  return preflightAnswer().headers;
}

/** What is said when the server is away, as the server says it when the database is. */
export function awayAnswer(): Said {
  return saidOf(DATABASE_UNAVAILABLE);
}

/** What is said to a PURGE of who may not: the server has no such method either. */
export function noPurgeAnswer(): Said {
  return saidOf(methodNotAllowed("PURGE"));
}

function saidOf(refusal: Refusal): Said {
  const { headers, body } = refusalAnswer(refusal, null);
  return { headers, body: String(body) };
}

/** Without the type of the body, for hosts that give that in a word of their own. */
export function withoutType(headers: Headers): [name: string, value: string][] {
  return Object.entries(headers).filter(([name]) => name !== "Content-Type");
}

/** The seconds of a directive of Cache-Control, for hosts that want the number. Zero where it is not there. */
export function secondsOf(policy: string, directive: string): number {
  return Number(new RegExp(`(?:^|[\\s,])${directive}=(\\d+)`).exec(policy)?.[1] ?? 0);
}
