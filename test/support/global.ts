/**
 * Provides what all test files share, by `inject`: one PostgreSQL server, and an embedded database as `migrate` leaves
 * it, which can be copied in a fraction of the time that it takes to make.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import type { TestProject } from "vitest/node";
import { openDatabase } from "../../shared/database/open.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { startPostgres } from "./postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of an administrator's connection, for `createDatabase`. */
    postgresUrl: string;
    /** The folder of an empty, migrated embedded database. It is only copied, never opened. */
    embeddedTemplate: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [server, template] = await Promise.all([startPostgres(), makeTemplate()]);
  project.provide("postgresUrl", server.url("postgres"));
  project.provide("embeddedTemplate", template);
  return async () => {
    await server.remove();
    await rm(template, { recursive: true });
  };
}

async function makeTemplate(): Promise<string> {
  // As the workers do: see execArgv in vitest.config.ts.
  setFlagsFromString("--liftoff-only");
  const dataDir = await mkdtemp(join(tmpdir(), "precast-template-"));
  const database = await openDatabase({ url: null, dataDir, queryTimeout: null, connections: 1 });
  await migrate(database);
  await database.close();
  return dataDir;
}
