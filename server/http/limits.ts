/** Limits of HTTP connections: how long clients may take, and how much they may send ahead. */

export type Limits = {
  /** Milliseconds for the request line and the headers. */
  readonly headers: number;
  /** Milliseconds for a whole request. */
  readonly request: number;
  /** Milliseconds that a connection may be idle between two requests. */
  readonly idle: number;
  /** Milliseconds after which a client that reads nothing of its answer is disconnected. */
  readonly stall: number;
  /** Milliseconds for which input behind the last answer is discarded before the connection is closed. */
  readonly linger: number;
  /** Milliseconds that open requests may take after the server is told to stop. */
  readonly drain: number;
  /** Number of connections that may be open at once. */
  readonly connections: number;
  /** Number of pipelined requests of one connection that may wait behind the one being answered. */
  readonly pipelined: number;
};

export const LIMITS: Limits = {
  // A phone that changes networks in the middle of a request needs seconds; no client needs more.
  headers: 10_000,
  // Bodies are not waited for; this only limits how long a body, which is discarded, may take to arrive.
  request: 15_000,
  // Load balancers keep connections for 60 seconds (AWS, nginx, HAProxy). If the server closed first, a request that
  // the load balancer has just sent would be lost.
  idle: 65_000,
  // Longer than any live query, during which no byte is sent.
  stall: 20_000,
  // A connection that is closed with unread input is reset, and the client may never see why it was refused.
  linger: 2_000,
  drain: 10_000,
  // Each uses a file descriptor, and the tree and the ledger need some as well.
  connections: 10_000,
  // More than any client needs. Each waiting request is held in memory.
  pipelined: 100,
};

/** Share that one of several workers has of a limit for all of them: at least 1, unless `total` is 0. */
export function shareOf(total: number, workers: number): number {
  return Math.max(Math.min(1, total), Math.floor(total / workers));
}
