/** A static host that serves a folder and knows nothing of the API: edges such as Varnish fetch their files from it. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { matchesEtag } from "../../shared/api/answer.ts";
import type { Running } from "./edge-program.ts";

export async function openStatic(folder: string): Promise<Running> {
  const server = createServer({ maxHeaderSize: 65_536 }, ({ url = "/", headers }, outgoing) => {
    const bytes = readOrNull(join(folder, new URL(url, "http://static").pathname));
    if (bytes === null) return outgoing.writeHead(404).end("no such file");
    const etag = `"${createHash("sha256").update(bytes).digest("hex")}"`;
    const known = matchesEtag(headers["if-none-match"] ?? "", etag);
    outgoing.writeHead(known ? 304 : 200, { ETag: etag, "Content-Type": "text/plain" }).end(known ? undefined : bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}`, stop };
}

function readOrNull(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}
