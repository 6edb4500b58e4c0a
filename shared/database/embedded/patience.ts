/** How long a query may take: as long as the limit says, and a while after nobody wants it any more. */
import { DatabaseFault } from "../fault.ts";

/** How long a query that nobody wants may run on: to end its thread would cost the next query as much. */
const GRACE = 500;

export type Patience = {
  readonly fault: DatabaseFault;
  /** Rejects with the fault. */
  readonly passed: Promise<never>;
  readonly clear: () => void;
};

/** `milliseconds` are the limit; null for none. */
export function openPatience(milliseconds: number | null, signal: AbortSignal | undefined): Patience {
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
