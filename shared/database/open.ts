/**
 * The one place that opens a database: PostgreSQL by its address, or the embedded one. Each is loaded when it is opened, for a
 * command needs one of them, and what is refused before needs none.
 */
import type { Database, DatabaseOptions } from "./database.ts";

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  if (options.url === null) return (await import("./embedded/embedded.ts")).openEmbedded(options);
  return (await import("./postgres/postgres.ts")).openPostgres(options.url, options);
}
