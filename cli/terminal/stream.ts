/** Where a command prints: a terminal, a pipe or a file. */
export type Stream = {
  readonly isTTY?: boolean;
  /** Characters in a line; only on a terminal that reports it. */
  readonly columns?: number;
  readonly write: (text: string) => unknown;
};
