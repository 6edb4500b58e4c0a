/** The journals that wait to be sent: our own that are full, and those whose owners are dead. */
import { readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault, isLacking } from "../../shared/database/fault.ts";
import { openAttempts } from "./attempt.ts";
import { sendBatch } from "./batch.ts";
import { readJournal } from "./journal.ts";
import { isDead, nameOf, type Owner, readName, watchSilence } from "./owner.ts";

export type Outbox = {
  /** Takes a journal of ours to which nothing is appended any more. */
  readonly put: (file: string, requests: number, since: number) => void;
  /** Sends what waits. False when the database is away, or takes no batch at all: the rest stays. */
  readonly send: () => Promise<boolean>;
  /** Lets what the database has refused be sent again. */
  readonly retry: () => void;
  /** Takes the journals of owners that are dead. Tells of each that cannot be taken, and throws when none can be found. */
  readonly adopt: () => Promise<void>;
  /** Shows that the owner of what waits lives, and of what is written still, if there is such a journal. */
  readonly touch: (now: Date, page: string | undefined) => Promise<void>;
  readonly waiting: () => readonly Waiting[];
};

/** `requests` are those of ours; `since` is when the first of them was counted, by `performance.now()`. */
type Waiting = { readonly requests: number; readonly since: number };

export type OutboxOptions = {
  readonly folder: string;
  readonly owner: Owner;
  /** Resolves when nothing is appended any more to a journal of ours of this name, which comes back from who had taken it. */
  readonly onReturn: (file: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
};

export function openOutbox(database: Database, { folder, owner, onReturn, onError }: OutboxOptions): Outbox {
  const waiting = new Map<string, Waiting>();
  const refused = new Set<string>();
  const told = new Set<string>();
  const attempt = openAttempts(onError);
  const findSilent = watchSilence();
  /** Batches whose journals we have removed since the last batch. */
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
    // One that another has taken meanwhile will be sent again, and its batch must still be known then.
    if ((await unlessGone(putAway(path, journal.broken))) !== null) removed.push(id);
  }

  async function putAway(path: string, broken: number): Promise<void> {
    if (broken === 0) return rm(path);
    await rename(path, `${path}.broken`);
    onError(new Error(`${broken} lines of ${path}.broken cannot be read. The others are counted; look what happened.`));
  }

  /** Tells of each journal once. */
  function refuse(file: string, error: unknown): void {
    refused.add(file);
    if (told.has(file)) return;
    told.add(file);
    const reason = error instanceof Error ? error.message : String(error);
    onError(new Error(`The counts in ${join(folder, file)} stay there and are sent again later: ${reason}`));
  }

  async function take(file: string): Promise<void> {
    const named = readName(file);
    if (named === null) return;
    const own = nameOf(owner, named.id);
    // One that is appended to while it is sent would be removed with what was not sent.
    await onReturn(own);
    // Of two that take it, one finds it gone.
    if ((await unlessGone(rename(join(folder, file), join(folder, own)))) === null) return;
    waiting.set(own, { requests: 0, since: performance.now() });
  }

  return {
    put: (file, requests, since) => void waiting.set(file, { requests, since }),
    send: async () => {
      for (const file of waiting.keys()) {
        if (refused.has(file)) continue;
        try {
          await sendOne(file);
          waiting.delete(file);
          told.delete(file);
          away = false;
        } catch (error) {
          if (!isOutage(error)) refuse(file, error);
          else {
            if (!away) onError(error);
            away = true;
            return false;
          }
        }
      }
      return true;
    },
    retry: () => refused.clear(),
    adopt: async () => {
      const others = (await readdir(folder)).filter((file) => isOthers(file, owner));
      const dead = others.filter((file) => isDead(readName(file)?.owner ?? null, owner));
      const times = new Map<string, number>();
      const look = async (file: string) => {
        const found = await unlessGone(stat(join(folder, file)));
        if (found !== null) times.set(file, found.mtimeMs);
      };
      for (const file of others) await attempt(`look at ${file}`, () => look(file));
      for (const file of new Set([...dead, ...findSilent(times)])) await attempt(`take ${file}`, () => take(file));
    },
    touch: async (now, page) => {
      const touch = async (file: string) => {
        const touched = await unlessGone(utimes(join(folder, file), now, now));
        if (touched === null) waiting.delete(file);
      };
      for (const file of [...waiting.keys(), ...(page === undefined ? [] : [page])])
        await attempt(`touch ${file}`, () => touch(file));
    },
    waiting: () => [...waiting.values()],
  };
}

function isOthers(file: string, { ledger }: Owner): boolean {
  const named = readName(file);
  return named !== null && named.owner?.ledger !== ledger;
}

/**
 * What is the same for every batch, as that a table is lacking. Everything else is about this one, and no reason to hold up the
 * others.
 */
function isOutage(error: unknown): boolean {
  return error instanceof DatabaseFault ? error.reason !== "timeout" : isLacking(error);
}

/** Null where the file is not there any more: another has taken it. */
async function unlessGone<T>(effect: Promise<T>): Promise<T | null> {
  try {
    return await effect;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
