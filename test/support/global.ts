/** Starts one PostgreSQL server for the whole run. Test files get at it by `inject("postgresUrl")`. */

import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of an administrator's connection, for `createDatabase`. */
    postgresUrl: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres();
  project.provide("postgresUrl", server.url("postgres"));
  return () => server.remove();
}
