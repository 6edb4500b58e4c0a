/** Runs a server as a process: starts it, finds its URL, measures it from outside, and stops it. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../support/until.ts";
import { cpuOf, memoryOf, sumOf } from "./proc.ts";

export type Served = {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** Milliseconds from its start until it took connections. */
  readonly start: number;
  /** Seconds of user and system time so far, of the process and its descendants. Null where they cannot be read. */
  readonly cpu: () => number | null;
  /** Resident bytes of the process and its descendants. */
  readonly memory: () => number | null;
  /** Resolves with the exit code; null where a signal ended it. */
  readonly stop: () => Promise<number | null>;
};

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** Starts a Node.js program that prints `{"url":…}` on a line once it listens. `flags` are those of Node.js. */
export async function startNode(
  name: string,
  script: string,
  args: readonly string[],
  folder: string,
  flags: readonly string[] = [],
): Promise<Served> {
  const begun = performance.now();
  const child = start(name, process.execPath, [...flags, script, ...args], folder);
  const url = await urlOf(name, child, folder);
  return handle(name, child, url, performance.now() - begun);
}

/** Starts the compiled `precast serve` on a free port. */
export function startPrecast(
  name: string,
  args: readonly string[],
  folder: string,
  flags: readonly string[] = [],
): Promise<Served> {
  return startNode(name, MAIN, ["serve", ...args, "--port", "0", "--json", "--quiet"], folder, flags);
}

/** Starts a TypeScript program from its source. */
export function startSource(name: string, script: string, args: readonly string[], folder: string): Promise<Served> {
  return startNode(name, script, args, folder, ["--import", import.meta.resolve("tsx")]);
}

/** Starts any program; the caller has chosen its port. */
export async function startProgram(
  name: string,
  program: string,
  args: readonly string[],
  url: string,
  folder: string,
): Promise<Served> {
  const begun = performance.now();
  const child = start(name, program, args, folder);
  await until(`${name} to listen`, async () => {
    if (child.exitCode !== null) throw failure(name, child, folder);
    return answers(url);
  });
  return handle(name, child, url, performance.now() - begun);
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  );
}

function start(name: string, program: string, args: readonly string[], folder: string): ChildProcess {
  const { PATH = "", HOME = "" } = process.env;
  // A file and not a pipe, so that nothing has to be read from it in the measured time.
  const log = openSync(logOf(name, folder), "a");
  const child = spawn(program, args, { cwd: folder, env: { PATH, HOME }, stdio: ["ignore", "pipe", log] });
  closeSync(log);
  const kill = () => void child.kill();
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  return child;
}

function logOf(name: string, folder: string): string {
  return join(folder, `${name.replace(/\W+/g, "-")}.log`);
}

function failure(name: string, child: ChildProcess, folder: string): Error {
  return new Error(
    `${name} ended with ${child.exitCode ?? child.signalCode}:\n${readFileSync(logOf(name, folder), "utf8")}`,
  );
}

function urlOf(name: string, child: ChildProcess, folder: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("error", reject);
    child.once("exit", () => reject(failure(name, child, folder)));
    child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      const found = /^\{"url":"([^"]+)"/m.exec(text);
      if (found !== null) resolve(found[1] as string);
    });
  });
}

function handle(name: string, child: ChildProcess, url: string, start: number): Served {
  const pid = child.pid as number;
  return {
    name,
    url,
    start,
    pid,
    cpu: () => sumOf(pid, cpuOf),
    memory: () => sumOf(pid, memoryOf),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      return child.exitCode;
    },
  };
}

/** Node.js flags with which a process writes a CPU profile when it ends. */
export function profiling(folder: string | null, name: string): readonly string[] {
  if (folder === null) return [];
  return ["--cpu-prof", `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name.replace(/\W+/g, "-")}.cpuprofile`];
}

/** Whether `precast serve` has an option of that name. */
export function hasOption(name: string): boolean {
  const help = execFileSync(process.execPath, [MAIN, "serve", "--help"], { encoding: "utf8" });
  return help.includes(`${name} `);
}
