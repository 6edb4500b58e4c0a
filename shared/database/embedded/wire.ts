/** The protocol between the host of an embedded database and its guests: lines of JSON over a local socket. */
import { createHash } from "node:crypto";
import { lstatSync, realpathSync, statSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Query, Row } from "../../sql/query.ts";
import type { Access } from "../database.ts";
import { DatabaseFault, EmbeddedFault, type FaultReason } from "../fault.ts";

export type GuestRequest = { readonly id: number } & (
  | { readonly query: Query }
  | { readonly script: string }
  | { readonly begin: Access }
  | { readonly end: "commit" | "rollback" }
  | { readonly listen: true }
  // Aborts the query with this id.
  | { readonly cancel: number }
  | { readonly probe: true }
);

export type HostAnswer = { readonly id: number } & ({ readonly rows: Row[] } | { readonly error: WireError });
/** A message from the host: the answer to a request, or the report of a change of content. */
export type HostMessage = HostAnswer | { readonly heard: true };

type WireError = {
  readonly message: string;
  readonly code?: string;
  readonly reason?: FaultReason;
  /** Whether it is an EmbeddedFault. */
  readonly embedded?: boolean;
};

/** Largest size in bytes of the path of a Unix socket that every system supports. */
const LONGEST_NAME = 103;

/**
 * The address on which the host of a folder listens: in the folder, which is as private as its data, or in the
 * temporary folder of the system if the path would be too long. On Windows it is a named pipe.
 */
export function socketOf(dataDir: string): string {
  const folder = realpathSync(dataDir);
  const name = `precast-${createHash("sha256").update(folder).digest("hex").slice(0, 24)}`;
  if (process.platform === "win32") return `\\\\.\\pipe\\${name}`;
  const own = join(folder, "database.sock");
  return Buffer.byteLength(own) <= LONGEST_NAME ? own : join(tmpdir(), `${name}.sock`);
}

/**
 * Whether a guest may use what listens at the address. In the temporary folder of the system anybody may have created
 * it, to read and answer the queries of guests: there it must belong to this user, to the owner of the data or to root.
 */
export function isHostOf(dataDir: string, address: string): boolean {
  if (process.platform === "win32" || dirname(address) === realpathSync(dataDir)) return true;
  const owner = lstatSync(address, { throwIfNoEntry: false })?.uid;
  return owner !== undefined && [0, process.getuid?.(), statSync(dataDir).uid].includes(owner);
}

export function send(socket: Socket, message: GuestRequest | HostMessage): void {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
}

/** Ends the connection at a line that is no message: whoever sends one must not end the process that reads it. */
export function readMessages<M extends GuestRequest | HostMessage>(
  socket: Socket,
  onMessage: (message: M) => void,
): void {
  // A large message arrives in many chunks, which are joined only once.
  let parts: string[] = [];
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const [end = "", ...lines] = chunk.split("\n");
    parts.push(end);
    for (const line of lines) {
      const message = readMessage(parts.join(""));
      if (message === null) return void socket.destroy();
      onMessage(message as M);
      parts = [line];
    }
  });
}

/** Null for a text that is not a JSON object. */
function readMessage(text: string): object | null {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === "object" ? message : null;
  } catch {
    return null;
  }
}

export function packError(error: unknown): WireError {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof EmbeddedFault) return { message, embedded: true };
  if (error instanceof DatabaseFault) return { message, reason: error.reason };
  return { message, code: String((error as { code?: unknown }).code ?? "") };
}

export function unpackError({ message, code, reason, embedded }: WireError): Error {
  if (embedded === true) return new EmbeddedFault(message);
  return reason === undefined ? Object.assign(new Error(message), { code }) : new DatabaseFault(reason, message);
}
