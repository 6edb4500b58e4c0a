/** Makes empty, migrated databases as copies of templates: to create and migrate one takes many times as long. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { inject } from "vitest";
import { createDatabase } from "./postgres.ts";

/** `dataDir` must not exist yet. `cp` copies its thousand files in a quarter of the time that node takes. */
export async function copyEmbedded(dataDir: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", inject("embeddedTemplate"), dataDir]);
}

/** On the PostgreSQL that all tests share. Returns the URL of the database. */
export function copyPostgres(): Promise<string> {
  return createDatabase(inject("postgresUrl"), "test", "", inject("postgresTemplate"));
}
