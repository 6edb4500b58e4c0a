/** The one place that opens a database: PostgreSQL by its address, or the embedded one. */
import type { Database, DatabaseOptions } from "./database.ts";
import { openEmbedded } from "./embedded.ts";
import { openPostgres } from "./postgres.ts";

export function openDatabase(options: DatabaseOptions): Promise<Database> {
  return options.url === null ? openEmbedded(options) : openPostgres(options.url, options);
}
