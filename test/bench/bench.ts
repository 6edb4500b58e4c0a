/** The type of a benchmark: its name on the command line, and what it runs. */

export type Bench = {
  readonly name: string;
  readonly describes: string;
  /** What `--help` says after the first line. */
  readonly help: string;
  /** Takes the arguments after the name, and returns the exit code. */
  readonly run: (args: readonly string[]) => Promise<number>;
};

/** An option is invalid; the message says what would be valid. */
export class OptionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "OptionError";
  }
}
