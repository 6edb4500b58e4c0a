/** How long kinds of work take, by how long those took that have ended: what has taken long will take long again. */

export type Pace = {
  /** Milliseconds; 0 for a kind of which nothing is known. */
  readonly expected: (kind: string) => number;
  readonly ended: (kind: string, took: number) => void;
  /** What was given up would have taken longer. */
  readonly givenUp: (kind: string, took: number) => void;
};

/** A database that was slow for everybody is forgiven in a few answers. */
const FORGIVING = 2;
/** One answer that took long says little of the next. */
const DOUBTING = 8;
/** Few have as many; those that do are learned anew. */
const MAX_KINDS = 10_000;

export function openPace(): Pace {
  const known = new Map<string, number>();
  const expected = (kind: string) => known.get(kind) ?? 0;

  function learn(kind: string, duration: number): void {
    if (known.size >= MAX_KINDS && !known.has(kind)) known.clear();
    known.set(kind, duration);
  }

  return {
    expected,
    ended: (kind, took) => {
      const before = known.has(kind) ? expected(kind) : took;
      learn(kind, before + (took - before) / (took < before ? FORGIVING : DOUBTING));
    },
    givenUp: (kind, took) => learn(kind, Math.max(expected(kind), took)),
  };
}
