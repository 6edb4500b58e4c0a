/**
 * Opens a database: PostgreSQL by its URL, or the embedded one. Each module is loaded only when it is needed: a command
 * uses one of them, and a command that is refused before this point uses none.
 */
import type { Database, DatabaseOptions } from "./database.ts";

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  if (options.url === null) return (await import("./embedded/embedded.ts")).openEmbedded(options);
  return (await import("./postgres/postgres.ts")).openPostgres(options.url, options);
}
