/** Handles a worker's communication with its primary process. */
import cluster from "node:cluster";

export type WorkerMessage =
  | { readonly kind: "listening"; readonly url: string }
  | { readonly kind: "failed"; readonly why: string };

export function isWorker(): boolean {
  return cluster.isWorker;
}

/** Resolves when the message has been sent, or cannot be sent any more. */
export function sendToPrimary(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => {
    cluster.worker?.send(message, undefined, () => resolve());
  });
}

/**
 * Resolves on SIGTERM, which the primary sends to stop a worker. A terminal or a service manager signals all processes
 * at once, so a second SIGTERM is ignored here, and SIGINT and SIGHUP are left to the primary.
 */
export function waitForStop(): Promise<void> {
  for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
  // A message to a primary that has died fails with this event, before its loss ends this process.
  cluster.worker?.on("error", () => {});
  return new Promise((resolve) => {
    process.on("SIGTERM", () => resolve());
  });
}

/**
 * Disconnects from the primary; the open channel would keep this process running. Until then, the loss of the primary
 * ends the worker at once.
 */
export function leavePrimary(): void {
  cluster.worker?.disconnect();
}
