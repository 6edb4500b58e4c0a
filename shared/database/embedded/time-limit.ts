/** Limits how long a query may run: until its time limit, or for a short while after its signal has aborted. */
import { DatabaseFault } from "../fault.ts";

/** Milliseconds that an aborted query may go on: ending its thread would cost the next query about as much. */
const GRACE = 500;

export type TimeLimit = {
  readonly fault: DatabaseFault;
  /** Rejects with `fault` when the time is over. */
  readonly passed: Promise<never>;
  readonly clear: () => void;
};

/** `milliseconds` is the time limit; null for none. */
export function openTimeLimit(milliseconds: number | null, signal: AbortSignal | undefined): TimeLimit {
  const fault = new DatabaseFault("timeout", "the query took too long");
  const timers: NodeJS.Timeout[] = [];
  let onAbort = () => {};
  const passed = new Promise<never>((_, reject) => {
    const endIn = (time: number) => void timers.push(setTimeout(() => reject(fault), time));
    if (milliseconds !== null) endIn(milliseconds);
    onAbort = () => endIn(GRACE);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
  const clear = () => {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  };
  return { fault, passed, clear };
}
