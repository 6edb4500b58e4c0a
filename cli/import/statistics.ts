/** Statistics after an import: without them the database plans as if nothing had been imported. */
import type { Database } from "../../shared/database/database.ts";

/** SQLSTATE lock_not_available. */
const LOCKED = "55P03";

/** The embedded database has nobody else who does. Where another keeps the tables busy, PostgreSQL will do so by itself. */
export async function gatherStatistics(database: Database): Promise<void> {
  await database
    .transaction("write", (session) =>
      session.execute("SET LOCAL lock_timeout = '1s'; ANALYZE precast.entries, precast.entry_words"),
    )
    .catch((error: { readonly code?: string }) => {
      if (error.code !== LOCKED) throw error;
    });
}
