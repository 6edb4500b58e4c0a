/** Adds the sums of a journal to the usage in the database, once however often the journal is sent. */
import type { Database, Session } from "../../shared/database/database.ts";
import { DatabaseFault, isReadOnly } from "../../shared/database/fault.ts";
import { type Query, sql } from "../../shared/query.ts";
import type { Sum } from "./journal-sum.ts";

/**
 * `id` is the id of the journal. `removed` are ids of batches whose journals were deleted, so that nobody sends them
 * again. Throws a DatabaseFault when the database is unavailable or read-only.
 */
export async function sendBatch(
  session: Session,
  id: string,
  sums: readonly Sum[],
  removed: readonly string[],
): Promise<void> {
  await write(
    session,
    sql(
      `WITH fresh AS (INSERT INTO precast.usage_batches (id) VALUES ($1::uuid) ON CONFLICT DO NOTHING RETURNING id),
removed AS (UPDATE precast.usage_batches SET removed_at = now() WHERE id = ANY ($3::uuid[]))
INSERT INTO precast.usage AS usage (app_key, day, shape, status, saving, count)
SELECT sum ->> 'app', (sum ->> 'day')::date, sum ->> 'shape', (sum ->> 'status')::int, sum ->> 'saving', (sum ->> 'count')::bigint
FROM fresh CROSS JOIN jsonb_array_elements($2::jsonb) WITH ORDINALITY AS given(sum, number) ORDER BY number
ON CONFLICT (app_key, day, shape, status, saving) DO UPDATE SET count = usage.count + excluded.count`,
      [id, JSON.stringify(sums), removed],
    ),
  );
}

/**
 * Deletes the ids of batches whose journals were removed more than a day ago, at most 10,000 at a time. Not at once:
 * another server may have read such a journal just before it was removed, and may still be about to send it.
 */
export async function forgetBatches(database: Database): Promise<void> {
  await write(
    database,
    sql(`DELETE FROM precast.usage_batches WHERE id IN (
SELECT id FROM precast.usage_batches WHERE removed_at < now() - interval '1 day' LIMIT 10000 FOR UPDATE SKIP LOCKED)`),
  );
}

/** Treats a read-only database (as during a failover) as unavailable: it would refuse every other batch as well. */
async function write(session: Session, query: Query): Promise<void> {
  try {
    await session.query({ ...query, writes: true });
  } catch (error) {
    throw isReadOnly(error) ? new DatabaseFault("unavailable", error.message, error) : error;
  }
}
