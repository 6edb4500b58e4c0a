/** Makes empty, migrated embedded databases as copies of a template: to create one takes many times as long. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { inject } from "vitest";

/** `dataDir` must not exist yet. `cp` copies its thousand files in a quarter of the time that node takes. */
export async function copyEmbedded(dataDir: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", inject("embeddedTemplate"), dataDir]);
}
