/** A stand-in for Netlify and Vercel: runs a handler of Request and Response, and a static host for its files. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pathToFileURL } from "node:url";
import type { Running } from "./edge-program.ts";
import { openStatic } from "./edge-static.ts";

type Handler = (request: Request) => Promise<Response>;

/** `script` is the module that the program wrote, `out` the tree. */
export async function openWebHost(script: string, out: string): Promise<Running> {
  const { default: handler } = (await import(pathToFileURL(script).href)) as { readonly default: Handler };
  const files = await openStatic(out);
  const server = createServer({ maxHeaderSize: 65_536 }, async (incoming, outgoing) => {
    const { method = "GET", url = "/", rawHeaders } = incoming;
    const headers = new Headers();
    for (let at = 0; at < rawHeaders.length; at += 2)
      headers.append(rawHeaders[at] as string, rawHeaders[at + 1] as string);
    const response = await handler(new Request(`${files.url}${url.startsWith("/") ? url : "/"}`, { method, headers }));
    outgoing.writeHead(response.status, [...response.headers].flat());
    outgoing.end(Buffer.from(await response.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await files.stop();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}
