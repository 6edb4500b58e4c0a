/** Listens, and stops without losing a request: open ones are finished, and their connections take no more. */
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

export type Listening = { readonly url: string; readonly stop: () => Promise<void> };

/** How long open requests may take once the server is told to stop. */
const DRAIN = 10_000;

export async function listen(app: RequestListener, host: string, port: number): Promise<Listening> {
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 5_000 }, app);
  const open = trackConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return { url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`, stop: () => drain(server, open) };
}

/** Each connection with the answers that it waits for. */
type Connections = Map<Socket, Set<ServerResponse>>;

function trackConnections(server: Server): Connections {
  const open: Connections = new Map();
  server.on("connection", (socket) => {
    open.set(socket, new Set());
    socket.once("close", () => open.delete(socket));
  });
  server.prependListener("request", (incoming, outgoing) => {
    const answers = open.get(incoming.socket);
    answers?.add(outgoing);
    outgoing.once("close", () => answers?.delete(outgoing));
  });
  return open;
}

/** Node itself keeps connections that never asked, and serves on those that were busy when it was told to close. */
function drain(server: Server, open: Connections): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => server.closeAllConnections(), DRAIN);
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    for (const [socket, answers] of open) {
      if (answers.size === 0) socket.destroy();
      for (const answer of answers) answer.shouldKeepAlive = false;
    }
  });
}
