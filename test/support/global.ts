/**
 * Provides what all test files share, by `inject`: one PostgreSQL server, and a database there and an embedded one as
 * `migrate` leaves them, which can be copied in a fraction of the time that they take to make.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import type { TestProject } from "vitest/node";
import { openDatabase } from "../../cli/database.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { createDatabase, keepAsTemplate, startPostgres } from "./postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of an administrator's connection, for `createDatabase`. */
    postgresUrl: string;
    /** The name of an empty, migrated database on that server, a template for `createDatabase`. */
    postgresTemplate: string;
    /** The folder of an empty, migrated embedded database. It is only copied, never opened. */
    embeddedTemplate: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // As the workers do: see execArgv in vitest.config.ts.
  setFlagsFromString("--liftoff-only");
  const dataDir = await mkdtemp(join(tmpdir(), "precast-template-"));
  const [server] = await Promise.all([startPostgres(), makeMigrated(null, dataDir)]);
  const url = await createDatabase(server.url("postgres"), "template");
  await makeMigrated(url, "");
  project.provide("postgresUrl", server.url("postgres"));
  project.provide("postgresTemplate", await keepAsTemplate(url));
  project.provide("embeddedTemplate", dataDir);
  return async () => {
    await server.remove();
    await rm(dataDir, { recursive: true });
  };
}

async function makeMigrated(url: string | null, dataDir: string): Promise<void> {
  const database = await openDatabase({ url, dataDir, queryTimeout: null, connections: 1 });
  await migrate(database);
  await database.close();
}
