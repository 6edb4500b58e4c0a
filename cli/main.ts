#!/usr/bin/env node
/**
 * Entry point of the command line: passes the environment, the clock and the output of the process to the program, and
 * sets the exit code. The program is imported only when Node.js is recent enough, because an older one fails at its
 * imports, and when more is asked for than the version.
 */

import { existsSync } from "node:fs";
import { constants } from "node:os";
import PACKAGE from "../package.json" with { type: "json" };
import type { Configuration } from "./configuration.ts";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const { argv, env, stdout, stderr } = process;
const [, , ...args] = argv;
const [asked] = args;
const CONFIGURATION = [".env", ...["json", "ts", "mjs", "js"].map((ending) => `precast.config.${ending}`)];
const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

if (major > 20 || (major === 20 && minor >= 19)) {
  await run();
} else {
  stderr.write(`Precast needs Node.js 20.19 or newer, and this is ${process.version}.\n`);
  process.exitCode = 1;
}

/** Runs the command that the arguments name. */
async function run(): Promise<void> {
  const outputError = watchOutput();
  refuseDefaults();
  process.exitCode = asked === "--version" || asked === "-V" ? printVersion() : await runProgram();
  if (asked === "serve" || asked === "watch" || asked === "work") {
    // These run until they are stopped: output that nobody reads must not keep them from ending then.
    setTimeout(() => process.exit(), 2_000).unref();
    return;
  }
  process.once("beforeExit", () => {
    const error = outputError();
    if (error === null) return;
    process.exitCode ||= 1;
    // Not describeFailure: for a full disk it would say that nothing was changed, but the command has done its work.
    const rest = "Everything else was done, unless an error above says otherwise";
    stderr.write(`The output could not be written (${error.message}). ${rest}.\n`);
  });
}

/**
 * Node.js would open a debugger at SIGUSR1, and SIGUSR2 would end the process. To the first process of a container the
 * system sends no default effect, so a command that does not wait for `stopped` would ignore being stopped.
 */
function refuseDefaults(): void {
  for (const signal of ["SIGUSR1", "SIGUSR2"]) process.on(signal, () => {});
  if (process.pid === 1) for (const signal of STOP_SIGNALS) process.on(signal, exitBySignal);
}

function exitBySignal(signal: NodeJS.Signals): void {
  process.exit(128 + constants.signals[signal]);
}

/** The signal then has its usual effect. */
function beforeKilled(cleanUp: () => void): () => void {
  const end = (signal: NodeJS.Signals) => {
    forget();
    try {
      cleanUp();
    } finally {
      if (process.pid === 1) exitBySignal(signal);
      else process.kill(process.pid, signal);
    }
  };
  const forget = () => {
    for (const signal of STOP_SIGNALS) process.removeListener(signal, end);
  };
  for (const signal of STOP_SIGNALS) process.prependListener(signal, end);
  return forget;
}

function printVersion(): number {
  stdout.write(`${PACKAGE.version}\n`);
  return 0;
}

async function runProgram(): Promise<number> {
  // Stacks then name the sources. Reading the maps takes time, and is done only for files that are loaded afterwards.
  if (args.includes("--debug") || env.PRECAST_DEBUG) process.setSourceMapsEnabled(true);
  try {
    const { runCommandLine } = await import("./program.ts");
    return await runCommandLine(args, {
      ...{ env, now: () => new Date(), stopped, beforeKilled, stdout, stderr },
      readConfiguration,
    });
  } catch (error) {
    // The program describes its errors itself, but not that its own files cannot be opened.
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    stderr.write(
      "This process may open too few files to start. Raise the limit (ulimit -n) and run the command again.\n",
    );
    return 1;
  }
}

/** The variables of `.env` join those of the process, where the client of PostgreSQL looks for its own (PGPASSWORD). */
async function readConfiguration(): Promise<Configuration | null> {
  const names = CONFIGURATION.filter((name) => existsSync(name));
  if (names.length === 0) return null;
  const configuration = await (await import("./configuration.ts")).readConfiguration(names, env);
  Object.assign(env, configuration.variables);
  return configuration;
}

/** Returns a function that gives the first error of a write to standard output or error, as on a full disk, or null. */
function watchOutput(): () => Error | null {
  let first: Error | null = null;
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // EPIPE: the reader has closed the pipe (`precast usage | head`). That is no error, and the command finishes its
      // work.
      if (error.code !== "EPIPE") first ??= error;
    });
  }
  return () => first;
}

/**
 * Resolves at the first SIGTERM, SIGINT or SIGHUP. A second SIGTERM or SIGINT has the default effect of the signal. A
 * second SIGHUP has none: of a terminal that is closed, both the system and the shell may send one.
 */
function stopped(): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      for (const signal of STOP_SIGNALS) {
        process.removeListener(signal, stop);
        if (process.pid === 1) process.on(signal, exitBySignal);
      }
      resolve();
    };
    for (const signal of STOP_SIGNALS) process.removeListener(signal, exitBySignal);
    for (const signal of [...STOP_SIGNALS, "SIGHUP"]) process.on(signal, stop);
  });
}
