/**
 * Prepares what a test of a command needs: content in its database, a tree in its folder. It calls the program's own
 * code in the test's process, because starting the program takes longer than the work itself.
 */
import { mkdtempSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildTree } from "../../cli/builder/build.ts";
import type { Command } from "../../cli/command.ts";
import { importBundle } from "../../cli/commands/import.ts";
import { readConfiguration } from "../../cli/configuration.ts";
import { withDatabase } from "../../cli/database.ts";
import { runCommandLine } from "../../cli/program.ts";
import { openTerminal } from "../../cli/terminal.ts";
import { COMMON_NAMES, type CommonName, readSettings, type SettingName, type Settings } from "../../shared/config.ts";
import type { CommandResult } from "./cli.ts";
import { writeBundle } from "./content.ts";
import type { Bundle } from "./model-bundle.ts";

/** The working directory and the environment that a command would have. With `columns` it prints to a terminal. */
export type CommandContext = {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly columns?: number;
};

/** Nobody stops a command of a test. */
const never = () => new Promise<void>(() => {});

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command line as the program does between its start and its end. Calls run one after the other, because a
 * process has one working directory.
 */
export function runInProcess(context: CommandContext, args: readonly string[]): Promise<CommandResult> {
  const ran = last.then(() => runIn(context, args));
  last = ran.catch(() => {});
  return ran;
}

async function runIn({ folder, env, columns }: CommandContext, args: readonly string[]): Promise<CommandResult> {
  const written = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof written) => ({
    ...(columns === undefined ? {} : { isTTY: true, columns }),
    write: (text: string) => (written[name] += text),
  });
  const before = process.cwd();
  process.chdir(folder);
  try {
    const streams = { stdout: stream("stdout"), stderr: stream("stderr") };
    const files = () => readConfiguration(readdirSync("."), env);
    const rest = { now: () => new Date(), stopped: never, readConfiguration: files };
    const code = await runCommandLine(args, { env, ...rest, ...streams });
    return { code, ...written };
  } finally {
    process.chdir(before);
  }
}

/** Does what `import --prune` does. */
export async function importInProcess(context: CommandContext, bundle: Bundle): Promise<void> {
  const folder = mkdtempSync(join(context.folder, "bundle-"));
  await writeBundle(folder, bundle);
  await withDatabase(settingsOf(context), (database) => importBundle(database, folder, { prune: true, dryRun: false }));
}

/** Runs `<command> <argument> --json` and returns what it prints, with paths relative to the context's folder. */
export async function jsonInProcess<T>(
  context: CommandContext,
  command: Command,
  argument: string,
  flags: Readonly<Record<string, unknown>>,
): Promise<T> {
  let printed = "";
  const stdout = { write: (text: string) => (printed += text) };
  const terminal = await openTerminal({ stdout, stderr: stdout, json: true, quiet: false, plain: true });
  const settings = settingsOf(context, [...command.settings, ...COMMON_NAMES], flags);
  const given = { flags, env: context.env, file: null, dotenv: [] };
  await command.run(
    { terminal, given, loadCommands: async () => [], now: () => new Date(), stopped: never },
    settings as never,
    argument,
  );
  return JSON.parse(printed.replaceAll(`${context.folder}/`, ""));
}

/** Does what `build --out` does. */
export async function buildInProcess(context: CommandContext, out: string): Promise<void> {
  const settings = { ...settingsOf(context), out: resolve(context.folder, out) };
  const options = { ...settings, apps: null, full: false, dryRun: false, now: () => new Date() };
  await withDatabase(settings, (database) => buildTree(database, options));
}

function settingsOf<N extends SettingName>(
  { folder, env }: CommandContext,
  names: readonly (N | CommonName)[] = COMMON_NAMES,
  flags: Readonly<Record<string, unknown>> = {},
): Settings<N | CommonName> {
  const settings = readSettings(names, flags, env);
  return { ...settings, dataDir: resolve(folder, settings.dataDir), out: resolve(folder, settings.out) };
}
