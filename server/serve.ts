/** Listens, and stops without losing a request: open ones are finished, the ledger is sent. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

export type Listening = { readonly url: string; readonly stop: () => Promise<void> };

/** How long open requests may take once the server is told to stop. */
const DRAIN = 10_000;

export async function listen(app: RequestListener, host: string, port: number): Promise<Listening> {
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 5_000 }, app);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`,
    stop: () =>
      new Promise((resolve) => {
        const limit = setTimeout(() => server.closeAllConnections(), DRAIN);
        server.close(() => {
          clearTimeout(limit);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}
