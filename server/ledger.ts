/**
 * The ledger of counted requests. A count is in a journal on disk before its answer leaves; journals reach the database
 * as batches whose ids make a repeat harmless.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Database, sql } from "../shared/database/database.ts";
import { isAlive } from "../shared/database/lock.ts";
import type { Shape } from "../shared/metering.ts";

export type Count = { readonly app: string; readonly shape: Shape; readonly status: number };

export type Ledger = {
  /** Resolves when the count is on disk. */
  readonly count: (count: Count) => Promise<void>;
  /** Sends what is on disk to the database and ends. What cannot be sent stays for the next start. */
  readonly close: () => Promise<void>;
};

export type LedgerOptions = {
  /** Where the journals are. */
  readonly folder: string;
  readonly now: () => Date;
  /** Is told once when the database begins to refuse batches. */
  readonly onError: (error: unknown) => void;
};

const SEND_AFTER = 250;
const RETRY_AFTER = 1_000;

type Line = Count & { readonly day: string };
/** `writing` is settled when nothing is being written to the file. */
type Journal = { readonly file: string; readonly handle: FileHandle; writing: Promise<void> };
type Waiting = { readonly text: string; readonly resolve: () => void; readonly reject: (error: unknown) => void };

export async function openLedger(database: Database, { folder, now, onError }: LedgerOptions): Promise<Ledger> {
  await mkdir(folder, { recursive: true });
  const full = await findAbandoned(folder);
  let journal: Journal | null = null;
  let waiting: Waiting[] = [];
  let writing: Promise<void> | null = null;
  let sending: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let failing = false;

  /** Writes all that wait at once, as often as something waits: one write serves many requests. */
  async function writeWaiting(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const current = journal ?? (await openJournal(folder));
        journal = current;
        current.writing = current.handle.appendFile(batch.map((line) => line.text).join(""));
        await current.writing;
        for (const line of batch) line.resolve();
      } catch (error) {
        for (const line of batch) line.reject(error);
        // A part of a line may have been written: nothing may come behind it.
        void turnPage().catch(onError);
      }
      sendSoon(SEND_AFTER);
    }
    writing = null;
  }

  /** Ends the journal: what is counted from now on goes into a new one. */
  async function turnPage(): Promise<void> {
    if (journal === null) return;
    const { file, handle, writing: last } = journal;
    journal = null;
    await last.catch(() => {});
    await handle.close();
    full.push(file);
  }

  function sendSoon(milliseconds: number): void {
    timer ??= setTimeout(() => {
      timer = null;
      void send();
    }, milliseconds);
  }

  function send(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = null;
    });
    return sending;
  }

  async function sendAll(): Promise<void> {
    try {
      await turnPage();
      for (let file = full[0]; file !== undefined; file = full[0]) {
        await sendJournal(database, folder, file);
        full.shift();
        failing = false;
      }
    } catch (error) {
      if (!failing) onError(error);
      failing = true;
      sendSoon(RETRY_AFTER);
    }
  }

  if (full.length > 0) sendSoon(0);
  return {
    count: (count) =>
      new Promise((resolve, reject) => {
        const line: Line = { ...count, day: now().toISOString().slice(0, 10) };
        waiting.push({ text: `${JSON.stringify(line)}\n`, resolve, reject });
        writing ??= writeWaiting();
      }),
    close: async () => {
      await writing;
      await sending;
      await send();
      if (timer !== null) clearTimeout(timer);
    },
  };
}

async function openJournal(folder: string): Promise<Journal> {
  const file = `${process.pid}-${randomUUID()}.ndjson`;
  return { file, handle: await open(join(folder, file), "a"), writing: Promise.resolve() };
}

/** Journals of servers that are no more. A file with our own number is left from a process that had it before us. */
async function findAbandoned(folder: string): Promise<string[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith(".ndjson"));
  return files.filter((name) => {
    const owner = Number.parseInt(name, 10);
    return owner === process.pid || !isAlive(owner);
  });
}

/** Adds a journal to the database, once however often it is sent, and removes it. */
async function sendJournal(database: Database, folder: string, file: string): Promise<void> {
  const id = file.slice(file.indexOf("-") + 1, -".ndjson".length);
  const sums = sumLines(await readFile(join(folder, file), "utf8"));
  await database.query(
    sql(
      `WITH fresh AS (INSERT INTO precast.usage_batches (id) VALUES ($1::uuid) ON CONFLICT DO NOTHING RETURNING id)
INSERT INTO precast.usage AS usage (app_key, day, shape, status, count)
SELECT sum ->> 'app', (sum ->> 'day')::date, sum ->> 'shape', (sum ->> 'status')::int, (sum ->> 'count')::bigint
FROM fresh CROSS JOIN jsonb_array_elements($2::jsonb) AS sum
ON CONFLICT (app_key, day, shape, status) DO UPDATE SET count = usage.count + excluded.count`,
      [id, JSON.stringify(sums)],
    ),
  );
  await rm(join(folder, file));
}

/** A line that is not whole was never answered for: its process died, or its disk was full, while it was written. */
function sumLines(text: string): (Line & { count: number })[] {
  const counts = new Map<string, number>();
  for (const line of text.split("\n").slice(0, -1)) counts.set(line, (counts.get(line) ?? 0) + 1);
  return [...counts].map(([line, count]) => ({ ...(JSON.parse(line) as Line), count }));
}
