/** Listens, and stops without losing a request: open ones are finished, and their connections take no more. */
import { createServer, type RequestListener, type Server } from "node:http";
import { MAX_HEADERS, MAX_HEADERS_SIZE, MAX_TARGET } from "../../shared/refusal.ts";
import { type Connection, finish } from "./connection.ts";
import { openDoor } from "./door.ts";
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
    // Three times what is allowed, so that what is too long can be told by its name. Less than node:http reads at once:
    // of what is longer still, the beginning tells whether it is the target.
    maxHeaderSize: MAX_TARGET + 2 * MAX_HEADERS_SIZE,
    requireHostHeader: false,
  });
  // One more than are allowed: node:http leaves away what is more and does not tell.
  server.maxHeadersCount = MAX_HEADERS + 1;
  const open = openDoor(server, { app, limits, observe });
  return { url: await listenOn(server, host, port), stop: () => drain(server, open, limits.drain) };
}

/** Node itself keeps connections that never asked, and serves on those that were busy when it was told to close. */
function drain(server: Server, open: ReadonlySet<Connection>, time: number): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => {
      for (const { socket } of open) socket.destroy();
    }, time);
    // An answer that node:http has in full and its client has not leaves no idle connection, as node:http takes it for.
    server.closeIdleConnections = () => {};
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    for (const connection of open) finish(connection);
  });
}
