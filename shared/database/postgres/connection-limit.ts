/** Adapts the size of a pool to the connections that the database allows, which may be fewer than the pool wants. */

export type ConnectionLimit = {
  /** The maximum size of the pool, given the number of open connections. */
  readonly poolSize: (open: number) => number;
  /** Records that the database had no slot for another connection. */
  readonly denied: () => void;
  /** Records that the database has accepted a connection. */
  readonly granted: () => void;
};

/** Milliseconds after which the pool tries to open another connection when the database had no slot. */
const PAUSE = 1_000;

export function openConnectionLimit(wanted: number): ConnectionLimit {
  let deniedAt: number | null = null;
  const isRecent = () => deniedAt !== null && performance.now() - deniedAt < PAUSE;

  return {
    poolSize: (open) => {
      if (deniedAt === null) return wanted;
      return Math.min(wanted, Math.max(1, isRecent() ? open : open + 1));
    },
    denied: () => {
      deniedAt = performance.now();
    },
    granted: () => {
      if (!isRecent()) deniedAt = null;
    },
  };
}
