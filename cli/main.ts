#!/usr/bin/env node
/** The command line: flags and environment go in, one command runs, its exit code comes out. */
import { CommanderError, Option, Command as Program } from "commander";
import { COMMON, type CommonName, readSettings, SETTINGS, type SettingName } from "../shared/config.ts";
import { VERSION } from "../shared/version.ts";
import { type Command, type Context, FAILED } from "./command.ts";
import { buildCommand } from "./commands/build.ts";
import { explainCommand } from "./commands/explain.ts";
import { importCommand } from "./commands/import.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { serveCommand } from "./commands/serve.ts";
import { statusCommand } from "./commands/status.ts";
import { usageCommand } from "./commands/usage.ts";
import { verifyCommand } from "./commands/verify.ts";
import { watchCommand } from "./commands/watch.ts";
import { describeFailure } from "./failure.ts";
import { openTerminal } from "./terminal.ts";

const COMMANDS: readonly Command[] = [
  migrateCommand,
  importCommand,
  buildCommand,
  watchCommand,
  serveCommand,
  explainCommand,
  verifyCommand,
  statusCommand,
  usageCommand,
];

const program = new Program("precast")
  .description("A content delivery API whose answers are built before they are asked for.")
  .version(VERSION)
  .showHelpAfterError("(see precast --help)")
  .addHelpText("after", examplesText(COMMANDS.flatMap((command) => command.examples.slice(0, 1))))
  .exitOverride();

for (const command of COMMANDS) {
  const sub = program.command(command.name).description(command.describes).exitOverride();
  if (command.argument !== null) sub.argument(command.argument);
  const names = [...command.settings, ...COMMON];
  for (const name of names) sub.addOption(optionOf(name));
  sub.addHelpText("after", examplesText(command.examples));
  sub.action(async (...given: unknown[]) => {
    const argument = command.argument === null ? "" : String(given[0]);
    process.exitCode = await runCommand(command, names, sub.opts(), argument);
  });
}

function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}

function optionOf(name: SettingName): Option {
  const { flags, env, describes } = SETTINGS[name];
  return new Option(flags, `${describes} (${env})`);
}

async function runCommand(
  command: Command,
  names: readonly SettingName[],
  flags: Record<string, unknown>,
  argument: string,
): Promise<number> {
  let debug = flags.debug === true;
  try {
    const settings = readSettings(names as (SettingName | CommonName)[], flags, process.env);
    debug = settings.debug;
    const plain = Boolean(process.env.CI || process.env.NO_COLOR);
    const terminal = openTerminal({ stdout: process.stdout, stderr: process.stderr, ...settings, plain });
    const context: Context = { terminal, now: () => new Date(), stopped };
    return await command.run(context, settings as never, argument);
  } catch (error) {
    process.stderr.write(`${debug && error instanceof Error ? error.stack : describeFailure(error)}\n`);
    return FAILED;
  }
}

function stopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });
}

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode;
}
