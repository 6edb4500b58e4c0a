/** One round of a bench of serving: traffic is on, and for so many seconds of it everything is measured. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Served } from "./served.ts";
import type { Seen, Traffic } from "./traffic.ts";

export type Window = {
  readonly seen: Seen;
  /** Seconds that the server worked; null where nobody can tell. */
  readonly cpu: number | null;
};

/** Connections are made and queues are filled before. */
const LEAD = 300;

export async function watchWindow(served: Served, seconds: number, traffic: Traffic): Promise<Window> {
  await sleep(LEAD);
  const before = served.cpu();
  traffic.begin();
  await sleep(seconds * 1_000);
  const seen = traffic.end();
  const after = served.cpu();
  return { seen, cpu: before === null || after === null ? null : after - before };
}
