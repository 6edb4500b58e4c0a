/**
 * Whose a journal is. Servers, their workers and their containers may share a folder of journals: nobody takes one from
 * an owner that lives, and none stays behind for good when its owner is dead.
 */
import { hash, randomUUID } from "node:crypto";
import { isAlive } from "../../shared/machine.ts";

/** What a journal's name says. `owner` is null for names of the first version. */
export type Named = { readonly owner: Owner | null; readonly id: string };
export type Owner = { readonly machine: string; readonly pid: number; readonly ledger: string };

const NAME = /^(?:([0-9a-f]{16})-(\d+)-([0-9a-f]{8})\.|\d+-)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.ndjson$/;

/** The owners that live in this process: one with our number that is not in here had it before us, or has ended. */
const living = new Set<string>();

/** `machine` tells the processes that we can see from all others. */
export function beOwner(machine: string): Owner {
  const ledger = randomUUID().slice(0, 8);
  living.add(ledger);
  return { machine: hash("sha256", machine).slice(0, 16), pid: process.pid, ledger };
}

/** Whatever the owner still has is free to be taken. */
export function resign({ ledger }: Owner): void {
  living.delete(ledger);
}

export function nameOf({ machine, pid, ledger }: Owner, id: string): string {
  return `${machine}-${pid}-${ledger}.${id}.ndjson`;
}

/** Null for a file that is no journal. */
export function readName(file: string): Named | null {
  const match = NAME.exec(file);
  if (match === null) return null;
  const [, machine, pid, ledger, id = ""] = match;
  if (machine === undefined || pid === undefined || ledger === undefined) return { owner: null, id };
  return { owner: { machine, pid: Number(pid), ledger }, id };
}

/** Is the owner dead beyond doubt? Of a process that we cannot see, and of one whose number lives, it is not known. */
export function isDead(owner: Owner | null, { machine }: Owner): boolean {
  if (owner === null || owner.machine !== machine) return false;
  return owner.pid === process.pid ? !living.has(owner.ledger) : !isAlive(owner.pid);
}

/** In so many looks one after the other an owner that lives has touched its journals again and again. */
const LOOKS = 15;

/**
 * Tells which files have not been touched for long. Looks are counted and no clocks compared: those of two machines
 * differ, and the time that we were stopped ourselves is nobody's silence.
 */
export function watchSilence(): (times: ReadonlyMap<string, number>) => string[] {
  let seen = new Map<string, { readonly time: number; readonly looks: number }>();
  return (times) => {
    const now = [...times].map(([file, time]) => {
      const before = seen.get(file);
      return [file, { time, looks: before?.time === time ? before.looks + 1 : 0 }] as const;
    });
    seen = new Map(now);
    return now.filter(([, { looks }]) => looks >= LOOKS).map(([file]) => file);
  };
}
