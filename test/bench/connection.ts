/**
 * One keep-alive connection of a client that needs little CPU: it sends prepared bytes, and reads only the status and
 * Content-Length of the answers. A load generator that parses every answer in full (autocannon) takes more CPU for an
 * answer than bare node:http takes to write it; this one takes less, so that a benchmark does not measure its client.
 */
import { connect, type Socket } from "node:net";

export type Connection = { readonly send: (bytes: Buffer) => void; readonly close: () => void };

export type Listener = {
  readonly answered: (status: number, length: number) => void;
  /** The connection ended, or the server sent something invalid; the next `send` reconnects. */
  readonly lost: (error: Error) => void;
};

const END = Buffer.from("\r\n\r\n");
const LENGTH = Buffer.from("\r\nContent-Length: ");
const [ZERO, NINE] = [0x30, 0x39];
/** Shared by all connections: what one reads is processed before another one reads. */
const INPUT = Buffer.allocUnsafe(256 * 1024);

export function openConnection(url: string, listener: Listener): Connection {
  const { hostname, port } = new URL(url);
  let socket: Socket | null = null;
  let begun: Buffer | null = null;
  let missing = 0;
  let status = 0;
  let length = 0;

  function drop(error: Error): void {
    const had = socket;
    socket = null;
    begun = null;
    missing = 0;
    had?.destroy();
    if (had !== null) listener.lost(error);
  }

  function readHead(input: Buffer): void {
    const text = begun === null ? input : Buffer.concat([begun, input]);
    const end = text.indexOf(END);
    begun = end < 0 ? Buffer.from(text) : null;
    if (end < 0) return;
    status = Number(text.toString("latin1", 9, 12));
    length = status === 304 ? 0 : lengthIn(text, end);
    missing = length - (text.length - end - END.length);
    if (length < 0 || missing < 0) drop(new Error(`Not an answer: ${text.toString("latin1", 0, end)}`));
    else if (missing === 0) listener.answered(status, length);
  }

  function readBody(size: number): void {
    missing -= size;
    if (missing < 0) drop(new Error("More bytes than the answer has."));
    else if (missing === 0) listener.answered(status, length);
  }

  function read(size: number): void {
    if (missing === 0) readHead(INPUT.subarray(0, size));
    else readBody(size);
  }

  function open(): Socket {
    const opened = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: {
        buffer: INPUT,
        callback: (size) => {
          if (opened === socket) read(size);
          return true;
        },
      },
    });
    opened.on("error", (error) => opened === socket && drop(error));
    opened.on("close", () => opened === socket && drop(new Error("The server closed the connection.")));
    return opened;
  }

  return {
    send: (bytes) => {
      socket ??= open();
      socket.write(bytes);
    },
    close: () => {
      const had = socket;
      socket = null;
      had?.destroy();
    },
  };
}

/** Content-Length, or -1 for an answer without it. */
function lengthIn(text: Buffer, end: number): number {
  const at = text.indexOf(LENGTH);
  if (at < 0 || at > end) return -1;
  let value = 0;
  for (let index = at + LENGTH.length; ; index++) {
    const digit = text[index] as number;
    if (digit < ZERO || digit > NINE) return value;
    value = value * 10 + digit - ZERO;
  }
}
