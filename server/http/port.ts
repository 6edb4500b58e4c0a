/** Makes a server listen on a port, and returns its URL. */
import type { AddressInfo, Server } from "node:net";

/** Resolves to the server's URL. Throws the system's error (such as EADDRINUSE) when it cannot listen there. */
export async function listenOn(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`;
}
