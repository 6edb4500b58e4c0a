/** A worker's side of what it and its primary say to each other. */
import cluster from "node:cluster";

export type Told =
  | { readonly kind: "listening"; readonly url: string }
  | { readonly kind: "failed"; readonly why: string };

export function isWorker(): boolean {
  return cluster.isWorker;
}

/** Resolves when the primary has it. */
export function tellPrimary(told: Told): Promise<void> {
  return new Promise((resolve) => {
    cluster.worker?.send(told, undefined, () => resolve());
  });
}

/**
 * Resolves on SIGTERM, which the primary passes on. A terminal and a service manager signal all processes at once, so a
 * second one means nothing here, and an interrupt is the primary's.
 */
export function orderedToStop(): Promise<void> {
  process.on("SIGINT", () => {});
  return new Promise((resolve) => {
    process.on("SIGTERM", () => resolve());
  });
}

/** Lets go of the primary, which would keep the process running. Without this its loss ends the worker at once. */
export function leavePrimary(): void {
  cluster.worker?.disconnect();
}
