/** What a command of the command line is: plain data that main.ts hands to commander, and the function that it runs. */
import type { CommonName, SettingName, Settings } from "../shared/config.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** The exit codes of Precast. */
export const DONE = 0;
export const FAILED = 1;
export const DIFFERENT = 2;

export type Context = {
  readonly terminal: Terminal;
  readonly now: () => Date;
  /** Resolves when the process is told to stop (SIGTERM, SIGINT). */
  readonly stopped: () => Promise<void>;
};

export type Command = {
  readonly name: string;
  readonly describes: string;
  /** As commander spells it: `<folder>`, or `[target]` for one that may be left out and then is empty. */
  readonly argument: string | null;
  readonly settings: readonly SettingName[];
  readonly examples: readonly string[];
  readonly run: (context: Context, settings: never, argument: string) => Promise<number>;
};

/** Ties the settings that a command names to those that its function takes. */
export function defineCommand<N extends SettingName>(
  command: Omit<Command, "settings" | "run"> & {
    readonly settings: readonly N[];
    readonly run: (context: Context, settings: Settings<N | CommonName>, argument: string) => Promise<number>;
  },
): Command {
  return command;
}
