/** Embedded databases that are empty and migrated, as copies of one: to make one takes many times as long. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { inject } from "vitest";

/** `dataDir` must not be there yet. A thousand files: `cp` takes a quarter of the time that node takes. */
export async function copyEmbedded(dataDir: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", inject("embeddedTemplate"), dataDir]);
}
