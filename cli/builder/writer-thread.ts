/** A worker thread that writes batches of answers while the main thread reads and renders the next ones. */
import { parentPort } from "node:worker_threads";
import { type Batch, type WriterReply, writeBatch } from "./writers.ts";

const port = parentPort;
if (port === null) throw new Error("writer-thread must run as a worker thread");

const existingFolders = new Set<string>();

port.on("message", (batch: Batch) => port.postMessage(replyTo(batch), [batch.bytes.buffer]));

function replyTo(batch: Batch): WriterReply {
  try {
    return { bytes: batch.bytes, written: writeBatch(batch, existingFolders) };
  } catch (error) {
    const { message, code, path } = error as NodeJS.ErrnoException;
    return {
      bytes: batch.bytes,
      error: { message, ...(code === undefined ? {} : { code }), ...(path === undefined ? {} : { path }) },
    };
  }
}
