/** The program: finds the command that the arguments name, reads its settings, and runs it. */
import { CommanderError, Option, Command as Program } from "commander";
import PACKAGE from "../package.json" with { type: "json" };
import { COMMON_NAMES, type CommonName, isGiven, readSettings, SETTINGS, type SettingName } from "../shared/config.ts";
import type { Setting } from "../shared/settings/common.ts";
import { printable } from "../shared/text.ts";
import { type Command, type Context, DONE, FAILED, listArguments } from "./command.ts";
import type { Configuration } from "./configuration.ts";
import { refuseUnmeantDatabase } from "./database.ts";
import { describeFailure } from "./errors.ts";
import type { Stream } from "./progress.ts";
import { secretsIn, secretsText, withoutPasswords, withoutSecrets } from "./secrets.ts";
import { DEFAULT_WIDTH, openTerminal, type Terminal } from "./terminal.ts";

/** A command is loaded only when it is needed, because each imports libraries of its own. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import("./commands/init.ts")).initCommand,
  migrate: async () => (await import("./commands/migrate.ts")).migrateCommand,
  import: async () => (await import("./commands/import.ts")).importCommand,
  convert: async () => (await import("./commands/convert.ts")).convertCommand,
  export: async () => (await import("./commands/export.ts")).exportCommand,
  copy: async () => (await import("./commands/copy.ts")).copyCommand,
  build: async () => (await import("./commands/build.ts")).buildCommand,
  work: async () => (await import("./commands/work.ts")).workCommand,
  queue: async () => (await import("./commands/queue.ts")).queueCommand,
  watch: async () => (await import("./commands/watch.ts")).watchCommand,
  serve: async () => (await import("./commands/serve.ts")).serveCommand,
  plan: async () => (await import("./commands/plan.ts")).planCommand,
  deploy: async () => (await import("./commands/deploy.ts")).deployCommand,
  explain: async () => (await import("./commands/explain.ts")).explainCommand,
  verify: async () => (await import("./commands/verify.ts")).verifyCommand,
  status: async () => (await import("./commands/status.ts")).statusCommand,
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand,
  edge: async () => (await import("./commands/edge.ts")).edgeCommand,
  studio: async () => (await import("./commands/studio.ts")).studioCommand,
  types: async () => (await import("./commands/types.ts")).typesCommand,
  openapi: async () => (await import("./commands/openapi.ts")).openapiCommand,
  report: async () => (await import("./commands/report.ts")).reportCommand,
  mcp: async () => (await import("./commands/mcp.ts")).mcpCommand,
  adopt: async () => (await import("./commands/adopt.ts")).adoptCommand,
  sync: async () => (await import("./commands/sync.ts")).syncCommand,
  usage: async () => (await import("./commands/usage.ts")).usageCommand,
  completion: async () => (await import("./commands/completion.ts")).completionCommand,
  config: async () => (await import("./commands/config.ts")).configCommand,
};

type Surroundings = Omit<Context, "terminal" | "given" | "loadCommands"> & {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads the files in the current folder that hold settings. Null where there are none. */
  readonly readConfiguration: () => Promise<Configuration | null>;
  readonly stdout: Stream;
  readonly stderr: Stream;
};

/** Runs the command that the arguments name, and resolves to the exit code. */
export async function runCommandLine(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const [first, second] = args;
  const commands = await loadCommands(first === "help" ? second : first);
  const asked = parseCommandLine(args, commands, surroundings);
  return typeof asked === "number" ? asked : runCommand(asked, surroundings);
}

/** Loads one command, or all of them for help and for the message about an unknown one. */
async function loadCommands(asked?: string): Promise<Command[]> {
  const requested = Object.entries(COMMANDS).filter(([name]) => name === asked);
  return Promise.all((requested.length > 0 ? requested : Object.entries(COMMANDS)).map(([, load]) => load()));
}

/** What the arguments ask for. `flags` has the names that commander derives from the options. */
type Asked = {
  readonly command: Command;
  readonly flags: Readonly<Record<string, unknown>>;
  /** One for each that the command declares, empty where it was left out; the last may be any number of them. */
  readonly args: readonly [string, ...string[]];
};

/** Returns the exit code where nothing is to be run: help or the version was printed, or a mistake reported. */
function parseCommandLine(
  args: readonly string[],
  commands: readonly Command[],
  attached: Surroundings,
): Asked | number {
  let asked: Asked | number = DONE;
  const program = defineProgram(commands, attached, (found) => {
    asked = found;
  });
  try {
    program.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode;
  }
  return asked;
}

async function runCommand({ command, flags, args }: Asked, surroundings: Surroundings): Promise<number> {
  const { env: own, stdout, stderr, readConfiguration, ...context } = surroundings;
  const names = settingNames(command);
  let debug = flags.debug === true;
  let secrets: readonly string[] = [];
  try {
    const { file = null, variables = {} } = (await readConfiguration()) ?? {};
    const given = { flags, env: { ...own, ...variables }, file, dotenv: Object.keys(variables) };
    const { env } = given;
    const settings = readSettings(names, flags, env, file);
    debug = settings.debug;
    secrets = secretsIn(names, settings);
    const isUnused =
      command.database === "unused" || (command.database === "unused with an argument" && args[0] !== "");
    if (!isUnused) {
      const isAsked = isGiven("dataDir", given);
      refuseUnmeantDatabase(settings, { creates: command.database === "created", isAsked, isRunner: Boolean(env.CI) });
    }
    const plain = Boolean(env.CI || env.NO_COLOR);
    const terminal = await openTerminal({ stdout, stderr, ...settings, plain });
    if (debug) tellFiles(terminal, given);
    return await command.run({ terminal, given, loadCommands, ...context }, settings as never, ...args);
  } catch (error) {
    const stack = debug && error instanceof Error ? error.stack : undefined;
    const text = stack === undefined ? describeFailure(error) : printable(stack);
    stderr.write(`${withoutPasswords(withoutSecrets(text, secrets))}\n`);
    return FAILED;
  }
}

function tellFiles({ warn }: Terminal, { file, dotenv }: Context["given"]): void {
  if (file !== null) warn(`Settings are read from ${file.name}: ${Object.keys(file.values).join(", ")}.`);
  if (dotenv.length > 0) warn(`Variables are read from .env: ${dotenv.join(", ")}.`);
}

function settingNames(command: Command): (SettingName | CommonName)[] {
  return [...command.settings, ...COMMON_NAMES];
}

// Defines the command line for commander.

function defineProgram(
  commands: readonly Command[],
  { stdout, stderr }: Surroundings,
  onFound: (asked: Asked) => void,
): Program {
  const program = new Program("precast")
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(withoutPasswords(text)),
      getOutHelpWidth: () => stdout.columns ?? DEFAULT_WIDTH,
      getErrHelpWidth: () => stderr.columns ?? DEFAULT_WIDTH,
    })
    .description("A content delivery API whose answers are built before they are asked for.")
    .version(PACKAGE.version)
    .showHelpAfterError("(see precast --help)")
    .helpCommand(false)
    .addHelpText("after", examplesText(commands.flatMap((command) => command.examples.slice(0, 1))))
    .exitOverride();
  for (const command of commands) {
    const sub = program.command(command.name).description(command.describes).exitOverride();
    sub.showHelpAfterError(`(see precast ${command.name} --help)`);
    for (const argument of listArguments(command)) sub.argument(argument);
    const names = settingNames(command);
    for (const name of names) addOption(sub, name);
    const details = command.details?.() ?? "";
    sub.addHelpText("after", `${details}${secretsText(names)}${examplesText(command.examples)}`);
    sub.action((...given: unknown[]) => {
      const [first = "", ...others] = sub.registeredArguments.flatMap(({ variadic }, index) =>
        variadic ? ((given[index] ?? []) as string[]) : [String(given[index] ?? "")],
      );
      onFound({ command, flags: sub.opts(), args: [first, ...others] });
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

function addOption(sub: Program, name: SettingName): void {
  const { flags, env, describes }: Setting = SETTINGS[name];
  if (flags !== null) sub.addOption(new Option(flags, `${describes} (${env.join(" or ")})`));
}
