/** What the door puts up with: how long clients may take, and how much they may send ahead. */

export type Limits = {
  /** Milliseconds for the request line and the headers. */
  readonly headers: number;
  /** Milliseconds for a whole request. */
  readonly request: number;
  /** Milliseconds that a connection may rest between two requests. */
  readonly idle: number;
  /** Milliseconds in which a client takes nothing of an answer that waits for it. */
  readonly stall: number;
  /** Milliseconds in which a client that is refused may go on sending, unheard. */
  readonly linger: number;
  /** Milliseconds that open requests may take once the server is told to stop. */
  readonly drain: number;
  /** Connections at once. */
  readonly connections: number;
  /** Requests of one connection that wait behind the one that is answered. */
  readonly ahead: number;
};

export const LIMITS: Limits = {
  // A phone that changes its network in the middle of a request needs seconds, nobody needs more.
  headers: 10_000,
  // Bodies are not waited for, so this is what one may take that is thrown away.
  request: 15_000,
  // Load balancers keep connections for 60 seconds (AWS, nginx, HAProxy). Whoever closes first loses the request that the
  // other has just sent, so it must not be the server.
  idle: 65_000,
  // Longer than any live query, which is waited for without a byte.
  stall: 20_000,
  // A connection that is closed with unread input is reset, and the client may never see why it was refused.
  linger: 2_000,
  drain: 10_000,
  // Each is a file descriptor, and the tree and the ledger need some as well.
  connections: 10_000,
  // More than any client has reason to. Each is held in memory.
  ahead: 100,
};

/** What each of several workers may use of a limit that is for all of them. None is left with nothing. */
export function shareOf(total: number, workers: number): number {
  return Math.max(Math.min(1, total), Math.floor(total / workers));
}
