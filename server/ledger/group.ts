/** Requests that are counted by one write, and get their answers by it. */
import type { Count, Sum } from "./journal.ts";

type Counted = Omit<Sum, "count"> & { count: number };

/** `settle` answers all of them. */
export type Group = {
  readonly sums: Map<string, Counted>;
  readonly done: Promise<boolean>;
  readonly settle: (counted: boolean) => void;
};

export function newGroup(): Group {
  let settle: (counted: boolean) => void = () => {};
  const done = new Promise<boolean>((resolve) => {
    settle = resolve;
  });
  return { sums: new Map(), done, settle };
}

export function addTo({ sums, done }: Group, count: Count, day: string): Promise<boolean> {
  const key = `${count.app} ${day} ${count.shape} ${count.status} ${count.saving}`;
  const sum = sums.get(key);
  if (sum === undefined) sums.set(key, { ...count, day, count: 1 });
  else sum.count++;
  return done;
}
