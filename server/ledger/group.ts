/** Counts several requests by one write, for which all of them wait. What comes during a write forms the next group. */
import { setImmediate } from "node:timers/promises";
import type { CountedRequest, Sum } from "./journal-sum.ts";

export type Groups = {
  /** Resolves to what `write` returned for the count's group. `day` is a date (UTC). */
  readonly add: (count: CountedRequest, day: string) => Promise<boolean>;
  /** Resolves when nothing is being written. */
  readonly written: () => Promise<void>;
};

type MutableSum = Omit<Sum, "count"> & { count: number };

/** `settle` resolves `done` for all requests of the group. */
type Group = {
  readonly sums: Map<string, MutableSum>;
  readonly done: Promise<boolean>;
  readonly settle: (counted: boolean) => void;
};

export function openGroups(write: (sums: readonly Sum[]) => Promise<boolean>): Groups {
  let group = newGroup();
  let writing: Promise<void> | null = null;

  /** Writes all counts that wait in one go, and repeats that until none wait. */
  async function writeAll(): Promise<void> {
    while (group.sums.size > 0) {
      // Lets the requests that are being processed in this turn of the event loop join the group.
      await setImmediate();
      const current = group;
      group = newGroup();
      current.settle(await write([...current.sums.values()]));
    }
    writing = null;
  }

  return {
    add: (count, day) => {
      const done = addTo(group, count, day);
      writing ??= writeAll();
      return done;
    },
    written: async () => void (await writing),
  };
}

function newGroup(): Group {
  let settle: (counted: boolean) => void = () => {};
  const done = new Promise<boolean>((resolve) => {
    settle = resolve;
  });
  return { sums: new Map(), done, settle };
}

function addTo({ sums, done }: Group, count: CountedRequest, day: string): Promise<boolean> {
  const key = `${count.app} ${day} ${count.shape} ${count.status} ${count.saving}`;
  const sum = sums.get(key);
  if (sum === undefined) sums.set(key, { ...count, day, count: 1 });
  else sum.count++;
  return done;
}
