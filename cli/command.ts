/** Defines a command: plain data that program.ts passes to commander, and the function that runs the command. */
import type { CommonName, Given, SettingName, Settings } from "../shared/config.ts";
import type { Terminal } from "./terminal.ts";

/** Exit codes. DIFFERENT also means that there is advice. */
export const DONE = 0;
export const FAILED = 1;
export const DIFFERENT = 2;

export type Context = {
  readonly terminal: Terminal;
  readonly now: () => Date;
  /** Resolves when the process is told to stop (main.ts). */
  readonly stopped: () => Promise<void>;
  /**
   * Does this before a signal ends the process, until the returned function is called. Absent where no signal does
   * (main.ts).
   */
  readonly beforeKilled?: (cleanUp: () => void) => () => void;
  /** For commands that tell of settings and their places. */
  readonly given: Given & {
    /** The names of the variables that `.env` adds to the environment. */
    readonly dotenv: readonly string[];
  };
  /** All commands, in the order of the help. */
  readonly loadCommands: () => Promise<readonly Command[]>;
};

export type Command = {
  readonly name: string;
  readonly describes: string;
  /**
   * In the notation of commander: `<folder>` is required, `[target]` is optional and empty when it is left out. Several
   * stand one after the other: `<format> <source>`. The last may stand for any number: `[table...]`. Null for a command that takes no argument.
   */
  readonly argument: string | null;
  /** What its first argument can be, where that is known. */
  readonly values?: () => readonly string[];
  readonly settings: readonly SettingName[];
  /**
   * Whether the command creates an embedded database that is not there, or uses none, whatever its argument or when it
   * has one. Any other needs one.
   */
  readonly database?: "created" | "unused" | "unused with an argument";
  readonly examples: readonly string[];
  /** What its help says below the options. */
  readonly details?: () => string;
  /** Resolves to the exit code. */
  readonly run: (context: Context, settings: never, ...args: [string, ...string[]]) => Promise<number>;
};

/** The arguments of a command, each in the notation of commander. */
export function listArguments({ argument }: Pick<Command, "argument">): readonly string[] {
  return argument?.split(/ (?=[<[])/) ?? [];
}

/** Checks at compile time that `run` reads only settings that the command lists in `settings`, or common ones. */
export function defineCommand<N extends SettingName>(
  command: Omit<Command, "settings" | "run"> & {
    readonly settings: readonly N[];
    readonly run: (
      context: Context,
      settings: Settings<N | CommonName>,
      ...args: [string, ...string[]]
    ) => Promise<number>;
  },
): Command {
  return command;
}
