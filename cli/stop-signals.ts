/** Waits for the signals that stop a command which runs until then. */
import { constants } from "node:os";

/**
 * Resolves at the first SIGTERM, SIGINT or SIGHUP. A second SIGTERM or SIGINT has the default effect of the signal. A
 * second SIGHUP has none: of a terminal that is closed, both the system and the shell may send one.
 */
export function stopped(): Promise<void> {
  const signals = ["SIGTERM", "SIGINT"] as const;
  return new Promise((resolve) => {
    const stop = () => {
      for (const signal of signals) {
        process.removeListener(signal, stop);
        // The default effect does not exist for the first process of a container.
        if (process.pid === 1) process.on(signal, () => process.exit(128 + constants.signals[signal]));
      }
      resolve();
    };
    for (const signal of [...signals, "SIGHUP"]) process.on(signal, stop);
  });
}
