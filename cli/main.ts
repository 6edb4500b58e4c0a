#!/usr/bin/env node
/** The command line: flags and environment go in, one command runs, its exit code comes out. */
import { CommanderError, Option, Command as Program } from "commander";
import { COMMON, type CommonName, readSettings, SETTINGS, type SettingName } from "../shared/config.ts";
import type { Setting } from "../shared/settings/setting.ts";
import { VERSION } from "../shared/version.ts";
import { type Command, type Context, FAILED } from "./command.ts";
import { describeFailure } from "./failure.ts";
import { openTerminal } from "./terminal/terminal.ts";

/** Loaded when they are asked for: each has libraries of its own. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  migrate: async () => (await import("./commands/migrate.ts")).migrateCommand,
  import: async () => (await import("./commands/import.ts")).importCommand,
  build: async () => (await import("./commands/build.ts")).buildCommand,
  watch: async () => (await import("./commands/watch.ts")).watchCommand,
  serve: async () => (await import("./commands/serve.ts")).serveCommand,
  deploy: async () => (await import("./commands/deploy.ts")).deployCommand,
  explain: async () => (await import("./commands/explain.ts")).explainCommand,
  verify: async () => (await import("./commands/verify.ts")).verifyCommand,
  status: async () => (await import("./commands/status.ts")).statusCommand,
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand,
  edge: async () => (await import("./commands/edge.ts")).edgeCommand,
  usage: async () => (await import("./commands/usage.ts")).usageCommand,
};

/** Whether it runs until it is told to end: then its work is done, whatever becomes of its output. */
const runsOn = process.argv[2] === "serve" || process.argv[2] === "watch";
const named = Object.entries(COMMANDS).filter(([name]) => name === process.argv[2]);
const commands = await Promise.all((named.length > 0 ? named : Object.entries(COMMANDS)).map(([, load]) => load()));

const program = new Program("precast")
  .description("A content delivery API whose answers are built before they are asked for.")
  .version(VERSION)
  .showHelpAfterError("(see precast --help)")
  .addHelpText("after", examplesText(commands.flatMap((command) => command.examples.slice(0, 1))))
  .exitOverride();

for (const command of commands) {
  const sub = program.command(command.name).description(command.describes).exitOverride();
  sub.showHelpAfterError(`(see precast ${command.name} --help)`);
  if (command.argument !== null) sub.argument(command.argument);
  const names = [...command.settings, ...COMMON];
  for (const name of names) addOption(sub, name);
  sub.addHelpText("after", `${secretsText(names)}${examplesText(command.examples)}`);
  sub.action(async (...given: unknown[]) => {
    const argument = command.argument === null ? "" : String(given[0] ?? "");
    process.exitCode = await runCommand(command, names, sub.opts(), argument);
  });
}

function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}

/** What can be given in the environment alone. */
function secretsText(names: readonly SettingName[]): string {
  const secrets = names.map((name) => SETTINGS[name]).filter(({ flags }) => flags === null);
  if (secrets.length === 0) return "";
  const width = Math.max(...secrets.map(({ env }) => env.length));
  return `\nEnvironment:\n${secrets.map(({ env, describes }) => `  ${env.padEnd(width)}  ${describes}`).join("\n")}\n`;
}

function addOption(sub: Program, name: SettingName): void {
  const { flags, env, envToo, describes } = SETTINGS[name] as Setting<unknown>;
  const variables = envToo === undefined ? env : `${env} or ${envToo}`;
  if (flags !== null) sub.addOption(new Option(flags, `${describes} (${variables})`));
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
    const terminal = await openTerminal({ stdout: process.stdout, stderr: process.stderr, ...settings, plain });
    const context: Context = { terminal, now: () => new Date(), stopped };
    return await command.run(context, settings as never, argument);
  } catch (error) {
    process.stderr.write(`${debug && error instanceof Error ? error.stack : describeFailure(error)}\n`);
    return FAILED;
  }
}

/** The first signal is a request. A second one, of either kind, does what signals do. */
function stopped(): Promise<void> {
  const signals = ["SIGTERM", "SIGINT"] as const;
  return new Promise((resolve) => {
    const stop = () => {
      for (const signal of signals) process.removeListener(signal, stop);
      resolve();
    };
    for (const signal of signals) process.on(signal, stop);
  });
}

/** The first error of an output that takes nothing: a full disk, a terminal that is gone. */
let unwritten: Error | null = null;
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    // Who reads may have had enough (`precast usage | head`): what was begun is finished all the same.
    if (error.code !== "EPIPE") unwritten ??= error;
  });
}

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode;
}

if (runsOn) {
  // Who reads nothing of what a server says does not keep it from ending.
  setTimeout(() => process.exit(), 2_000).unref();
} else {
  process.once("beforeExit", () => {
    if (unwritten === null) return;
    process.exitCode ||= FAILED;
    // Of a disk that is full while a command works it would be told that nothing was done.
    const rest = "All else was done, unless an error above says otherwise";
    process.stderr.write(`The output could not be written (${unwritten.message}). ${rest}.\n`);
  });
}
