/** The door: a node:http request goes in, its answer goes out, and what is counted is counted before it leaves. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { type Answer, type CachePolicy, refusalAnswer } from "../shared/answer.ts";
import { internalError } from "../shared/refusal.ts";
import { respond, type Sources } from "../shared/respond.ts";
import type { Ledger } from "./ledger.ts";

export type AppOptions = { readonly sources: Sources; readonly ledger: Ledger; readonly policy: CachePolicy };

/**
 * The target is read raw, which web Requests do not allow: their URLs have dot segments and backslashes normalised, and
 * the contract (section 3) normalises nothing.
 */
export function createApp({ sources, ledger, policy }: AppOptions): RequestListener {
  async function answer(incoming: IncomingMessage): Promise<Answer> {
    const raw = {
      method: incoming.method ?? "GET",
      target: incoming.url ?? "/",
      appKey: headerOf(incoming, "x-app-key"),
      ifNoneMatch: headerOf(incoming, "if-none-match"),
    };
    const { answer, appKey, metering } = await respond(raw, sources, policy);
    if (metering?.counted) await ledger.count({ app: appKey, shape: metering.shape, status: answer.status });
    return answer;
  }

  return (incoming, outgoing) => {
    answer(incoming)
      .catch((error: unknown) => {
        sources.onError(error);
        return refusalAnswer(internalError(), null);
      })
      .then((result) => send(outgoing, result))
      .catch(sources.onError);
  };
}

function headerOf(incoming: IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Node leaves the body of an answer to HEAD away by itself. */
function send(outgoing: ServerResponse, { status, headers, body }: Answer): void {
  const length = body === null ? {} : { "Content-Length": Buffer.byteLength(body) };
  outgoing.writeHead(status, { ...headers, ...length });
  outgoing.end(body ?? undefined);
}
