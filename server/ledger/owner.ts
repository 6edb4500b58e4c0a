/**
 * Tells who owns a journal. Servers, their workers and containers may share a folder of journals: no journal is taken
 * from an owner that shows it is alive, and none is left behind for good when its owner has died.
 */
import { hash, randomUUID } from "node:crypto";
import { isAlive } from "../../shared/machine.ts";

/** Contents of a journal's file name. */
export type JournalName = { readonly owner: Owner; readonly id: string };
export type Owner = { readonly machine: string; readonly pid: number; readonly ledger: string };

const NAME = /^([0-9a-f]{16})-(\d+)-([0-9a-f]{8})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.ndjson$/;

/**
 * Ledger ids of the live owners in this process. An owner with the pid of this process that is not listed belongs to an
 * earlier process with the same pid, or has resigned.
 */
const liveOwners = new Set<string>();

/** Registers a new owner in this process. Only processes that can see each other have the same `machine`. */
export function registerOwner(machine: string): Owner {
  const ledger = randomUUID().slice(0, 8);
  liveOwners.add(ledger);
  return { machine: hash("sha256", machine).slice(0, 16), pid: process.pid, ledger };
}

/** Makes the journals that the owner still has free to be taken by others. */
export function unregisterOwner({ ledger }: Owner): void {
  liveOwners.delete(ledger);
}

export function nameOf({ machine, pid, ledger }: Owner, id: string): string {
  return `${machine}-${pid}-${ledger}.${id}.ndjson`;
}

/** Null for a file that is no journal. */
export function readName(file: string): JournalName | null {
  const match = NAME.exec(file);
  if (match === null) return null;
  const [, machine = "", pid, ledger = "", id = ""] = match;
  return { owner: { machine, pid: Number(pid), ledger }, id };
}

/** Whether the owner is certainly dead. False for a process that this one cannot see, and for a pid that is in use. */
export function isDead(owner: Owner, { machine }: Owner): boolean {
  if (owner.machine !== machine) return false;
  return owner.pid === process.pid ? !liveOwners.has(owner.ledger) : !isAlive(owner.pid);
}

/**
 * A journal that has the same modification time in this many checks in a row counts as abandoned: an owner that is
 * alive touches its journals several times in that period.
 */
const ABANDONED_AFTER = 15;

/**
 * Returns a function that takes the modification times at each check, by file name, and returns the files that have not
 * been touched for ABANDONED_AFTER checks. It counts checks because the clocks of two machines differ, and because the
 * time for which this process itself was stopped must not count.
 */
export function watchForAbandoned(): (times: ReadonlyMap<string, number>) => string[] {
  let seen = new Map<string, { readonly time: number; readonly checks: number }>();
  return (times) => {
    const now = [...times].map(([file, time]) => {
      const before = seen.get(file);
      return [file, { time, checks: before?.time === time ? before.checks + 1 : 0 }] as const;
    });
    seen = new Map(now);
    return now.filter(([, { checks }]) => checks >= ABANDONED_AFTER).map(([file]) => file);
  };
}
