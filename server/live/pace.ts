/** How long kinds of work take, by how long the last of each took: what has taken long will take long again. */

export type Pace = {
  /** Milliseconds; 0 for a kind of which nothing is known. */
  readonly expected: (kind: string) => number;
  readonly ended: (kind: string, took: number) => void;
  /** What was given up would have taken longer. */
  readonly givenUp: (kind: string, took: number) => void;
};

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
    // A database that was slow for everybody is forgiven in a few answers.
    ended: (kind, took) => learn(kind, known.has(kind) ? (expected(kind) + took) / 2 : took),
    givenUp: (kind, took) => learn(kind, Math.max(expected(kind), took)),
  };
}
