/** Holds the journals that wait to be sent, ended ones of this ledger and those of dead processes, and sends them. */
import { rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Database, Session } from "../../shared/database/database.ts";
import { DatabaseFault, isMissingOrForbidden, isReadOnly } from "../../shared/database/errors.ts";
import { type Query, sql } from "../../shared/sql/query.ts";
import { readJournal, type Sum } from "./journal.ts";
import { syncFolder, syncPath, unlessGone } from "./owner.ts";

export type Outbox = {
  /** Adds a journal to which nothing is appended any more. For the numbers see Waiting. */
  readonly put: (path: string, requests: number, since: number) => void;
  /**
   * Sends the waiting journals. Resolves to false when the database is unavailable or takes no batch at all; the rest
   * stay. A single journal that the database refuses is skipped until `retry`.
   */
  readonly send: () => Promise<boolean>;
  /** Resolves when what is in the waiting journals survives a power failure. */
  readonly sync: () => Promise<void>;
  /** Lets `send` try again the journals that the database has refused. */
  readonly retry: () => void;
  readonly waiting: () => readonly Waiting[];
};

/**
 * `requests` is 0 for a journal of a dead process. `since` is when the journal was opened or adopted, by
 * `performance.now()`.
 */
type Waiting = { readonly requests: number; readonly since: number };

/** `isRefused` until the next `retry`, `isReported` as long as it waits. */
type WaitingJournal = Waiting & { isSynced: boolean; isRefused: boolean; isReported: boolean };

/** `folder` is that of the ledger: journals with lines that cannot be read are set aside there. */
export function openOutbox(database: Database, folder: string, onError: (error: unknown) => void): Outbox {
  const waiting = new Map<string, WaitingJournal>();
  /** Ids of batches whose journals were removed since the last batch was sent. */
  let removed: string[] = [];
  let away = false;

  async function sendOne(path: string): Promise<void> {
    const id = basename(path, ".ndjson");
    const journal = await unlessGone(readJournal(path));
    if (journal === null) return;
    if (journal.sums.length > 0) {
      const gone = removed;
      await sendBatch(database, id, journal.sums, gone);
      removed = removed.filter((one) => !gone.includes(one));
    }
    // If another server has adopted the journal meanwhile, it sends it again, and the batch must still be known then.
    if ((await unlessGone(dispose(path, journal.broken))) !== null) removed.push(id);
  }

  async function dispose(path: string, broken: number): Promise<void> {
    if (broken === 0) return rm(path);
    const aside = join(folder, `${basename(path)}.broken`);
    await rename(path, aside);
    onError(
      new Error(
        `${broken} lines of ${aside} cannot be read and are not counted. All other lines are counted. Inspect the file to find the cause.`,
      ),
    );
  }

  /** `place` is a journal, or the folder of all. */
  function reportUnsent(place: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `The counts in ${place} cannot be sent to the database. They stay there and are sent again later: ${reason}`;
    onError(new Error(message, { cause: error }));
  }

  return {
    put: (path, requests, since) =>
      void waiting.set(path, { requests, since, isSynced: false, isRefused: false, isReported: false }),
    send: async () => {
      for (const [path, journal] of waiting) {
        if (journal.isRefused) continue;
        try {
          await sendOne(path);
          waiting.delete(path);
          away = false;
        } catch (error) {
          if (isOutage(error)) {
            if (!away) reportUnsent(folder, error);
            away = true;
            return false;
          }
          if (!journal.isReported) reportUnsent(path, error);
          journal.isRefused = journal.isReported = true;
        }
      }
      return true;
    },
    sync: async () => {
      const unsynced = [...waiting].filter(([, { isSynced }]) => !isSynced);
      for (const [path] of unsynced) await unlessGone(syncPath(path, "r+"));
      if (unsynced.length > 0)
        for (const one of new Set([...unsynced.map(([path]) => dirname(path)), folder]))
          await unlessGone(syncFolder(one));
      for (const [, journal] of unsynced) journal.isSynced = true;
    },
    retry: () => {
      for (const journal of waiting.values()) journal.isRefused = false;
    },
    waiting: () => [...waiting.values()],
  };
}

/**
 * Whether the error would be the same for every batch, for example because a table is missing. Any other error concerns
 * this batch, and must not hold up the others.
 */
function isOutage(error: unknown): boolean {
  return error instanceof DatabaseFault ? error.reason !== "timeout" : isMissingOrForbidden(error);
}

// Adds the sums of a journal to the usage in the database, once however often the journal is sent.

/**
 * `id` is the id of the journal. `removed` are ids of batches whose journals were deleted, so that nobody sends them
 * again. Throws a DatabaseFault when the database is unavailable or read-only.
 */
async function sendBatch(
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
INSERT INTO precast.usage AS usage (app_key, day, shape, status, saving, type, fields, count)
SELECT sum ->> 'app', (sum ->> 'day')::date, sum ->> 'shape', (sum ->> 'status')::int, sum ->> 'saving', sum ->> 'type',
  sum ->> 'fields', (sum ->> 'count')::bigint
FROM fresh CROSS JOIN jsonb_array_elements($2::jsonb) WITH ORDINALITY AS given(sum, number) ORDER BY number
ON CONFLICT (app_key, day, shape, status, saving, type, fields) DO UPDATE SET count = usage.count + excluded.count`,
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
