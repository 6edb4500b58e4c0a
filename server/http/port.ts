/** Puts a server on its port, and says where that is. */
import type { AddressInfo, Server } from "node:net";

/** Resolves to its URL. Throws what the system says of a port that cannot be had. */
export async function listenOn(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`;
}
