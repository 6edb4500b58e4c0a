/** The room that a database has for the connections of a pool: it may have fewer slots than the pool would take. */

export type Room = {
  /** How many connections to have at most, where so many are open. */
  readonly most: (open: number) => number;
  /** The database has no slot for another. */
  readonly denied: () => void;
  /** It has let another in. */
  readonly granted: () => void;
};

/** Milliseconds after which a database that had no slot is asked for one again. */
const PAUSE = 1_000;

export function openRoom(wanted: number): Room {
  let deniedAt: number | null = null;
  const isRecent = () => deniedAt !== null && performance.now() - deniedAt < PAUSE;

  return {
    most: (open) => {
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
