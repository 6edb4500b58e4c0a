/** Counts what a source loses again and again, so that a report says it once: with how often, and where first. */
import type { Loss, Place, ReadContext } from "./record.ts";

export type Losses = {
  readonly count: (place: Place, what: string, why: string, times?: number) => void;
  /** Tells everything that was counted, in the order in which it was met. To be called at the end of a source. */
  readonly tell: () => void;
};

export function countLosses({ lose }: Pick<ReadContext, "lose">): Losses {
  const counted = new Map<string, Loss & { times: number }>();
  return {
    count: (place, what, why, times = 1) => {
      const known = counted.get(what);
      if (known === undefined) counted.set(what, { place, what, why, times });
      else known.times += times;
    },
    tell: () => {
      for (const loss of counted.values()) lose(loss);
      counted.clear();
    },
  };
}
