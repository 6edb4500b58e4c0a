/** Holds the journals that wait to be sent, finished ones of this ledger and those of dead owners, and sends them. */
import { rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { openAttempts } from "../../shared/async.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { DatabaseFault, isMissingOrForbidden, isReadOnly } from "../../shared/database/errors.ts";
import { type Query, sql } from "../../shared/sql/query.ts";
import { readJournal, type Sum } from "./journal.ts";
import { readName, syncPath, unlessGone } from "./owner.ts";

export type Outbox = {
  /** Adds a journal to which nothing is appended any more. For the numbers see Waiting. */
  readonly put: (file: string, requests: number, since: number) => void;
  /**
   * Sends the waiting journals. Resolves to false when the database is unavailable or takes no batch at all; the rest
   * stay. A single journal that the database refuses is skipped until `retry`.
   */
  readonly send: () => Promise<boolean>;
  /** Resolves when what is in the waiting journals survives a power failure. */
  readonly sync: () => Promise<void>;
  /** Lets `send` try again the journals that the database has refused. */
  readonly retry: () => void;
  /**
   * Shows other servers that the owner lives, by updating the times of the waiting journals and of `current`, the
   * journal that is being written (undefined for none).
   */
  readonly touch: (now: Date, current: string | undefined) => Promise<void>;
  readonly waiting: () => readonly Waiting[];
};

/**
 * `requests` is 0 for a journal taken from a dead owner. `since` is when the journal was opened or taken, by
 * `performance.now()`.
 */
type Waiting = { readonly requests: number; readonly since: number };

type OutboxOptions = {
  readonly folder: string;
  /** Resolves when the names of the folder's files survive a power failure. */
  readonly syncNames: () => Promise<void>;
  readonly onError: (error: unknown) => void;
};

export function openOutbox(database: Database, { folder, syncNames, onError }: OutboxOptions): Outbox {
  const waiting = new Map<string, Waiting>();
  const synced = new WeakSet<Waiting>();
  const refused = new Set<string>();
  const reported = new Set<string>();
  const attempt = openAttempts(onError);
  /** Ids of batches whose journals were removed since the last batch was sent. */
  let removed: string[] = [];
  let away = false;

  async function sendOne(file: string): Promise<void> {
    const path = join(folder, file);
    const id = readName(file)?.id ?? "";
    const journal = await unlessGone(readJournal(path));
    if (journal === null) return;
    if (journal.sums.length > 0) {
      const gone = removed;
      await sendBatch(database, id, journal.sums, gone);
      removed = removed.filter((one) => !gone.includes(one));
    }
    // If another server has taken the journal meanwhile, it sends it again, and the batch must still be known then.
    if ((await unlessGone(dispose(path, journal.broken))) !== null) removed.push(id);
  }

  async function dispose(path: string, broken: number): Promise<void> {
    if (broken === 0) return rm(path);
    await rename(path, `${path}.broken`);
    onError(
      new Error(
        `${broken} lines of ${path}.broken cannot be read and are not counted. All other lines are counted. Inspect the file to find the cause.`,
      ),
    );
  }

  /** `place` is a journal, or the folder of all. */
  function reportUnsent(place: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `The counts in ${place} cannot be sent to the database. They stay there and are sent again later: ${reason}`;
    onError(new Error(message, { cause: error }));
  }

  /** Skips the journal until `retry`, and reports it once. */
  function refuse(file: string, error: unknown): void {
    refused.add(file);
    if (reported.has(file)) return;
    reported.add(file);
    reportUnsent(join(folder, file), error);
  }

  return {
    put: (file, requests, since) => void waiting.set(file, { requests, since }),
    send: async () => {
      for (const file of waiting.keys()) {
        if (refused.has(file)) continue;
        try {
          await sendOne(file);
          waiting.delete(file);
          reported.delete(file);
          away = false;
        } catch (error) {
          if (!isOutage(error)) refuse(file, error);
          else {
            if (!away) reportUnsent(folder, error);
            away = true;
            return false;
          }
        }
      }
      return true;
    },
    sync: async () => {
      const unsynced = [...waiting].filter(([, one]) => !synced.has(one));
      if (unsynced.length === 0) return;
      for (const [file] of unsynced) await unlessGone(syncPath(join(folder, file), "r+"));
      await syncNames();
      for (const [, one] of unsynced) synced.add(one);
    },
    retry: () => refused.clear(),
    touch: async (now, current) => {
      const touch = async (file: string) => {
        const touched = await unlessGone(utimes(join(folder, file), now, now));
        if (touched === null) waiting.delete(file);
      };
      for (const file of [...waiting.keys(), ...(current === undefined ? [] : [current])])
        await attempt(`touch ${file}`, () => touch(file));
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
