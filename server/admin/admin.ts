/** Serves the admin port: health, readiness and metrics, for operators and their systems, apart from the API's port. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenOn } from "../http/port.ts";
import { shareRunning } from "../load/share-running.ts";
import { CONTENT_TYPE } from "./metrics.ts";
import type { Readiness } from "./readiness.ts";

export type AdminSources = {
  readonly readiness: () => Promise<Readiness>;
  /** Resolves to the metrics in the text format of Prometheus. */
  readonly metrics: () => Promise<string>;
  readonly onError: (error: unknown) => void;
};

export type Admin = { readonly url: string; readonly close: () => Promise<void> };

type Page = { readonly status: number; readonly type: string; readonly body: string };

export async function openAdmin(given: AdminSources, host: string, port: number): Promise<Admin> {
  // Metrics take milliseconds to write, and nothing else happens in the process meanwhile: a connection that asks
  // thousands of times without waiting would stop the server.
  const sources = { ...given, metrics: shareRunning(given.metrics) };
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (incoming, outgoing) => {
    pageOf(incoming, sources)
      .catch((error: unknown) => {
        sources.onError(error);
        return refusal(500, "INTERNAL_ERROR", "The state of the server could not be read. See the log for the cause.");
      })
      .then((page) => send(outgoing, page))
      .catch(sources.onError);
  });
  return {
    url: await listenOn(server, host, port),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function pageOf({ method, url = "/" }: IncomingMessage, sources: AdminSources): Promise<Page> {
  const path = url.split("?")[0];
  if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics")
    return refusal(404, "NOT_FOUND", "There is no such path. The paths are /healthz, /readyz and /metrics.");
  if (method !== "GET" && method !== "HEAD") return refusal(405, "METHOD_NOT_ALLOWED", "Use GET or HEAD.");
  if (path === "/metrics") return { status: 200, type: CONTENT_TYPE, body: await sources.metrics() };
  if (path === "/healthz") return json(200, { status: "ok" });
  const readiness = await sources.readiness();
  return json(readiness.status === "unavailable" ? 503 : 200, readiness);
}

function refusal(status: number, code: string, message: string): Page {
  return json(status, { error: { code, message } });
}

function json(status: number, value: unknown): Page {
  return { status, type: "application/json; charset=utf-8", body: JSON.stringify(value) };
}

/** Node itself omits the body of an answer to HEAD. */
function send(outgoing: ServerResponse, { status, type, body }: Page): void {
  const headers = { "Content-Type": type, "Content-Length": Buffer.byteLength(body), "Cache-Control": "no-store" };
  outgoing.writeHead(status, status === 405 ? { ...headers, Allow: "GET, HEAD" } : headers).end(body);
}
