/** What a bench is: a name on the command line, and what it runs. */

export type Bench = {
  readonly name: string;
  readonly describes: string;
  /** What `--help` says after the first line. */
  readonly help: string;
  /** Takes what follows the name, gives the exit code. */
  readonly run: (args: readonly string[]) => Promise<number>;
};

/** What was asked for makes no sense; the message says what would. */
export class OptionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "OptionError";
  }
}
