/** HTTP as raw bytes on a socket, for requests that no HTTP client would send; it keeps all bytes that come back. */
import { connect, type Socket } from "node:net";

export type Wire = {
  readonly socket: Socket;
  readonly send: (bytes: string) => void;
  /** The bytes received so far, as latin1. */
  readonly text: () => string;
  /** The number of bytes received so far. */
  readonly size: () => number;
  /** Resolves when this number of answers has arrived; rejects when the connection closes before that. */
  readonly answers: (count: number) => Promise<WireAnswer[]>;
  /** Resolves with everything received when either side has closed the connection. */
  readonly closed: Promise<string>;
};

export type WireAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** With `allowHalfOpen`, the client can still send when the server has ended its side. */
export function openWire(url: string, allowHalfOpen = false): Promise<Wire> {
  const { hostname, port } = new URL(url);
  const chunks: Buffer[] = [];
  const text = () => Buffer.concat(chunks).toString("latin1");
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
    socket.once("error", reject);
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    const closed = new Promise<string>((done) => socket.once("close", () => done(text())));
    const send = (bytes: string) => void socket.write(Buffer.from(bytes, "latin1"));
    const size = () => chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const answers = (count: number) =>
      new Promise<WireAnswer[]>((done, fail) => {
        const look = () => {
          const found = readAnswers(text());
          if (found.length >= count) done(found);
        };
        socket.on("data", look);
        socket.once("close", () => fail(new Error(`closed before ${count} answers: ${text().slice(0, 2_000)}`)));
        look();
      });
    socket.once("connect", () => {
      // A reset counts as a close: tests look at what arrived before it.
      socket.on("error", () => {});
      resolve({ socket, send, text, size, answers, closed });
    });
  });
}

/** The complete answers on a connection. Not for HEAD: without their bodies, its answers look incomplete. */
export function readAnswers(text: string): WireAnswer[] {
  const found: WireAnswer[] = [];
  for (let rest = text; ; ) {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return found;
    const [first = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
    );
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
    const from = end + 4;
    const to = from + Number(headers["content-length"] ?? 0);
    if (rest.length < to) return found;
    found.push({ status, headers, body: rest.slice(from, to) });
    rest = rest.slice(to);
  }
}
