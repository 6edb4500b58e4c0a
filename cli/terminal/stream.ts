/** Where a command prints: a terminal, a pipe or a file. */
export type Stream = {
  readonly isTTY?: boolean;
  /** Characters of a line, where it is a terminal that tells. */
  readonly columns?: number;
  readonly write: (text: string) => unknown;
};
