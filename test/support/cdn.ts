/** A stand-in for a CDN's purge API on a real socket: it records its requests, and answers as the test says. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export type CdnRequest = {
  readonly method: string;
  /** Path and query, undecoded. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
};

export type CdnAnswer = { readonly status: number; readonly body?: string; readonly headers?: Record<string, string> };

export type Cdn = {
  readonly url: string;
  readonly requests: CdnRequest[];
  answer: (request: CdnRequest) => CdnAnswer;
  readonly close: () => Promise<void>;
};

export async function startCdn(answer: Cdn["answer"]): Promise<Cdn> {
  const requests: CdnRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url: target = "", headers } = request;
      const asked = { method, target, headers, body: Buffer.concat(chunks) };
      requests.push(asked);
      const { status, body, headers: more } = cdn.answer(asked);
      response.writeHead(status, more).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const cdn: Cdn = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, answer, close };
  return cdn;
}
