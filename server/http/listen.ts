/** Listens for HTTP requests, and stops without losing any: open ones are finished, and no new ones are taken. */
import { createServer, type RequestListener, type Server } from "node:http";
import { MAX_HEADERS, MAX_HEADERS_SIZE, MAX_TARGET_SIZE } from "../../shared/refusal.ts";
import { type Connection, finish } from "./connection.ts";
import { guardServer } from "./guard.ts";
import { LIMITS, type Limits } from "./limits.ts";
import type { Observe } from "./observation.ts";
import { listenOn } from "./port.ts";

export type Listening = { readonly url: string; readonly stop: () => Promise<void> };

export async function listen(
  app: RequestListener,
  host: string,
  port: number,
  limits: Limits = LIMITS,
  observe: Observe | null = null,
): Promise<Listening> {
  const server = createServer({
    headersTimeout: limits.headers,
    requestTimeout: limits.request,
    keepAliveTimeout: limits.idle,
    connectionsCheckingInterval: Math.min(1_000, limits.headers),
    // Three times what is allowed, so that a request that is too large reaches the check in fault.ts, which says what
    // is too long. Less than node:http reads at once: of an even larger request, the first read shows whether the
    // target is too long.
    maxHeaderSize: MAX_TARGET_SIZE + 2 * MAX_HEADERS_SIZE,
    requireHostHeader: false,
  });
  // One more than allowed: node:http silently drops the headers beyond this number.
  server.maxHeadersCount = MAX_HEADERS + 1;
  const open = guardServer(server, { app, limits, observe });
  return { url: await listenOn(server, host, port), stop: () => drain(server, open, limits.drain) };
}

/**
 * Finishes open requests and closes all connections, after `time` milliseconds by force. `server.close` alone keeps
 * connections that never sent a request, and goes on serving those that were busy when it was called.
 */
function drain(server: Server, open: ReadonlySet<Connection>, time: number): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => {
      for (const { socket } of open) socket.destroy();
    }, time);
    // node:http takes a connection for idle, and would close it, once it holds the whole answer, even if the client has
    // not received all of it.
    server.closeIdleConnections = () => {};
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    for (const connection of open) finish(connection);
  });
}
