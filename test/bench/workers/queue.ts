/** Measures what the queue costs beside a publication, in a process of its own. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { measure } from "../measure.ts";

/** Publications or jobs, and what they took together. */
export type Taken = { readonly count: number; readonly seconds: number; readonly cpu: number };

export type QueueCost = {
  readonly queue: readonly Taken[];
  readonly full: Taken;
  readonly incremental: Taken;
};

const PROCESS = fileURLToPath(new URL("./queue-process.ts", import.meta.url));

/** All apps of the database have jobs; only `apps` are published. */
export async function measureQueue(
  url: string,
  folder: string,
  apps: readonly string[],
  jobs: number,
): Promise<QueueCost> {
  const asked = JSON.stringify({ url, folder: join(folder, "queue"), apps, jobs });
  const flags = ["--import", import.meta.resolve("tsx"), PROCESS, asked];
  return JSON.parse((await measure(process.execPath, flags, folder)).stdout) as QueueCost;
}
