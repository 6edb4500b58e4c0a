/** HTTP as bytes on a socket: what a client of good manners would never send, and everything that comes back. */
import { connect, type Socket } from "node:net";

export type Wire = {
  readonly socket: Socket;
  readonly send: (bytes: string) => void;
  /** What has come so far. */
  readonly text: () => string;
  /** How many bytes that are. */
  readonly size: () => number;
  /** Resolves when so many answers have come; rejects when the connection ends before. */
  readonly answers: (count: number) => Promise<WireAnswer[]>;
  /** Resolves with all that came when the connection is closed, by whomever. */
  readonly closed: Promise<string>;
};

export type WireAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** `allowHalfOpen`: the client goes on sending when the server has ended its side. */
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
      // A reset is seen as a close: tests look at what came before it.
      socket.on("error", () => {});
      resolve({ socket, send, text, size, answers, closed });
    });
  });
}

/** The whole answers of a connection. Those to HEAD would be taken for unfinished ones. */
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
