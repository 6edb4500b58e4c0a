/** A worker thread that writes loads of answers while the main thread reads and renders the next ones. */
import { parentPort } from "node:worker_threads";
import { type Load, type Written, writeLoad } from "./write.ts";

export type WriterReply = { readonly bytes: Uint8Array<ArrayBuffer> } & (
  | { readonly written: Written }
  | { readonly error: { readonly message: string; readonly code?: string; readonly path?: string } }
);

const port = parentPort;
if (port === null) throw new Error("writer-thread runs as a worker thread");

const made = new Set<string>();

port.on("message", (load: Load) => port.postMessage(replyTo(load), [load.bytes.buffer]));

function replyTo(load: Load): WriterReply {
  try {
    return { bytes: load.bytes, written: writeLoad(load, made) };
  } catch (error) {
    const { message, code, path } = error as NodeJS.ErrnoException;
    return {
      bytes: load.bytes,
      error: { message, ...(code === undefined ? {} : { code }), ...(path === undefined ? {} : { path }) },
    };
  }
}
