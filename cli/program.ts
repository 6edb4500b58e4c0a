/** The program: defines the command line for commander, runs one command, and sets the exit code of the process. */
import { constants } from "node:os";
import { CommanderError, Option, Command as Program } from "commander";
import { COMMON_NAMES, type CommonName, readSettings, SETTINGS, type SettingName, VERSION } from "../shared/config.ts";
import type { Setting } from "../shared/settings/setting.ts";
import { printable } from "../shared/text.ts";
import { type Command, type Context, DONE, FAILED } from "./command.ts";
import { describeFailure } from "./errors.ts";
import type { Stream } from "./progress.ts";
import { openTerminal } from "./terminal.ts";

/** A command is loaded only when it is needed, because each imports libraries of its own. */
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

export type Surroundings = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => Date;
};
/** What only the process has. */
type Attached = Pick<Context, "stopped"> & { readonly stdout: Stream; readonly stderr: Stream };

/** Runs the command that the arguments of the process name. */
export async function runProgram(surroundings: Surroundings): Promise<void> {
  const [, , ...args] = process.argv;
  const outputError = watchOutput();
  const { stdout, stderr } = process;
  process.exitCode = await runCommandLine(args, { ...surroundings, stopped, stdout, stderr });
  const [asked] = args;
  if (asked === "serve" || asked === "watch") {
    // These run until they are stopped: output that nobody reads must not keep them from ending then.
    setTimeout(() => process.exit(), 2_000).unref();
    return;
  }
  process.once("beforeExit", () => {
    const error = outputError();
    if (error === null) return;
    process.exitCode ||= FAILED;
    // Not describeFailure: for a full disk it would say that nothing was changed, but the command has done its work.
    const rest = "Everything else was done, unless an error above says otherwise";
    process.stderr.write(`The output could not be written (${error.message}). ${rest}.\n`);
  });
}

/** Runs the command that the arguments name, and resolves to the exit code. */
export async function runCommandLine(args: readonly string[], surroundings: Surroundings & Attached): Promise<number> {
  const [asked, next] = args;
  let code = DONE;
  const program = programOf(await loadCommands(asked === "help" ? next : asked), surroundings, (ended) => {
    code = ended;
  });
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    code = error.exitCode;
  }
  return code;
}

/** Loads one command, none for the version, or all of them for help and for the message about an unknown one. */
async function loadCommands(asked: string | undefined): Promise<Command[]> {
  if (asked === "--version" || asked === "-V") return [];
  const requested = Object.entries(COMMANDS).filter(([name]) => name === asked);
  return Promise.all((requested.length > 0 ? requested : Object.entries(COMMANDS)).map(([, load]) => load()));
}

function programOf(
  commands: readonly Command[],
  surroundings: Surroundings & Attached,
  ended: (code: number) => void,
): Program {
  const { stdout, stderr } = surroundings;
  const program = new Program("precast")
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(withoutPasswords(text)),
    })
    .description("A content delivery API whose answers are built before they are asked for.")
    .version(VERSION)
    .showHelpAfterError("(see precast --help)")
    .helpCommand(false)
    .addHelpText("after", examplesText(commands.flatMap((command) => command.examples.slice(0, 1))))
    .exitOverride();
  for (const command of commands) {
    const sub = program.command(command.name).description(command.describes).exitOverride();
    sub.showHelpAfterError(`(see precast ${command.name} --help)`);
    if (command.argument !== null) sub.argument(command.argument);
    const names = [...command.settings, ...COMMON_NAMES];
    for (const name of names) addOption(sub, name);
    sub.addHelpText("after", `${secretsText(names)}${examplesText(command.examples)}`);
    sub.action(async (...given: unknown[]) => {
      const argument = command.argument === null ? "" : String(given[0] ?? "");
      ended(await runCommand(command, names, sub.opts(), argument, surroundings));
    });
  }
  addHelp(program);
  return program;
}

/** Replaces the library's `help`, which shows the help of the program for an unknown command and does not say why. */
function addHelp(program: Program): void {
  const show = (name: string | undefined) => {
    if (name === undefined) program.help();
    const sub = program.commands.find((command) => command.name() === name);
    if (sub === undefined) program.error(`error: unknown command '${name}'`);
    else sub.help();
  };
  program.command("help [command]").description("display help for command").action(show);
}

function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}

/** Help text for the settings that can be set only in the environment. */
function secretsText(names: readonly SettingName[]): string {
  const secrets = names.map((name) => SETTINGS[name]).filter(({ flags }) => flags === null);
  if (secrets.length === 0) return "";
  const width = Math.max(...secrets.map(({ env }) => env.length));
  return `\nEnvironment:\n${secrets.map(({ env, describes }) => `  ${env.padEnd(width)}  ${describes}`).join("\n")}\n`;
}

function addOption(sub: Program, name: SettingName): void {
  const { flags, env, fallbackEnv, describes } = SETTINGS[name] as Setting<unknown>;
  const variables = fallbackEnv === undefined ? env : `${env} or ${fallbackEnv}`;
  if (flags !== null) sub.addOption(new Option(flags, `${describes} (${variables})`));
}

async function runCommand(
  command: Command,
  names: readonly SettingName[],
  flags: Record<string, unknown>,
  argument: string,
  { env, now, stopped, stdout, stderr }: Surroundings & Attached,
): Promise<number> {
  let debug = flags.debug === true;
  let secrets: readonly string[] = [];
  try {
    const settings = readSettings(names as (SettingName | CommonName)[], flags, env);
    debug = settings.debug;
    secrets = secretsIn(names, settings);
    const plain = Boolean(env.CI || env.NO_COLOR);
    const terminal = await openTerminal({ stdout, stderr, ...settings, plain });
    const context: Context = { terminal, now, stopped };
    return await command.run(context, settings as never, argument);
  } catch (error) {
    const stack = debug && error instanceof Error ? error.stack : undefined;
    const text = stack === undefined ? describeFailure(error) : printable(stack);
    stderr.write(`${withoutPasswords(withoutSecrets(text, secrets))}\n`);
    return FAILED;
  }
}

/** Returns a function that gives the first error of a write to standard output or error, as on a full disk, or null. */
function watchOutput(): () => Error | null {
  let first: Error | null = null;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // EPIPE: the reader has closed the pipe (`precast usage | head`). That is no error, and the command finishes its
      // work.
      if (error.code !== "EPIPE") first ??= error;
    });
  }
  return () => first;
}

// Waits for the signals that stop a command which runs until then.

/**
 * Resolves at the first SIGTERM, SIGINT or SIGHUP. A second SIGTERM or SIGINT has the default effect of the signal. A
 * second SIGHUP has none: of a terminal that is closed, both the system and the shell may send one.
 */
export function stopped(): Promise<void> {
  const signals = ["SIGTERM", "SIGINT"] as const;
  return new Promise((resolve) => {
    const stop = () => {
      for (const signal of signals) {
        process.removeListener(signal, stop);
        // The default effect does not exist for the first process of a container.
        if (process.pid === 1) process.on(signal, () => process.exit(128 + constants.signals[signal]));
      }
      resolve();
    };
    for (const signal of [...signals, "SIGHUP"]) process.on(signal, stop);
  });
}

// Keeps the secrets of a command out of what it prints.

/** A shorter word may be an ordinary one, which messages contain anyway. */
const SHORTEST_SECRET = 8;

/**
 * The words of the secrets in a command's settings, without the name of a header. A store, a CDN or a proxy may repeat in
 * its answer what it was sent.
 */
export function secretsIn(names: readonly SettingName[], settings: Readonly<Record<string, unknown>>): string[] {
  const secrets = names.filter((name) => SETTINGS[name].flags === null).map((name) => settings[name]);
  const words = secrets.flatMap((secret) => (typeof secret === "string" ? secret.split(/^[^\s:]+:|\s+/) : []));
  return words.filter((word) => word.length >= SHORTEST_SECRET);
}

/** Replaces the passwords in addresses. Whoever mistypes an option sees it again in the message. */
export function withoutPasswords(text: string): string {
  return text.replace(/(\/\/[^\s/@:]*:)[^\s/]*@/g, "$1…@");
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);
}
