/** What a soak found, and how that is printed. */
import { formatBytes } from "../../../shared/text.ts";
import type { EventName } from "./events.ts";

export type Report = {
  readonly seconds: number;
  readonly events: Readonly<Record<EventName, number>>;
  readonly free: Read;
  readonly counted: Read;
  readonly received: number;
  readonly ledger: number;
  /** Bytes of the worker that was never killed: the median of the first and of the last quarter. */
  readonly memory: { readonly first: number; readonly last: number };
  readonly exitCode: number | null;
  readonly faults: readonly string[];
};

export type Read = {
  readonly statuses: Readonly<Record<string, number>>;
  readonly broken: number;
  readonly p50: number;
  readonly p99: number;
};

const TOLD = 10;

export function asText({ seconds, events, free, counted, received, ledger, memory, exitCode, faults }: Report): string {
  const happened = Object.entries(events).map(([name, count]) => `${count} × ${name}`);
  const read = (name: string, { statuses, broken, p50, p99 }: Read) =>
    `${name}: ${Object.entries(statuses)
      .map(([status, count]) => `${count.toLocaleString("en")} × ${status}`)
      .join(", ")}, ${broken} connections broken, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`;
  return `${Math.round(seconds)} s: ${happened.join(", ")}
${read("free", free)}
${read("counted", counted)}
ledger: ${ledger.toLocaleString("en")} for ${received.toLocaleString("en")} received and ${counted.broken} in flight
memory of the oldest worker: ${formatBytes(memory.first)} in the first quarter, ${formatBytes(memory.last)} in the last
exit code ${exitCode}
faults: ${faults.length === 0 ? "none" : `${faults.length}\n  ${faults.slice(0, TOLD).join("\n  ")}`}
`;
}
