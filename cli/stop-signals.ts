/** Waits for the signals that stop a command which runs until then. */

/** Resolves at the first SIGTERM or SIGINT. A second one, of either kind, has the default effect of the signal. */
export function stopped(): Promise<void> {
  const signals = ["SIGTERM", "SIGINT"] as const;
  return new Promise((resolve) => {
    const stop = () => {
      for (const signal of signals) process.removeListener(signal, stop);
      resolve();
    };
    for (const signal of signals) process.on(signal, stop);
  });
}
