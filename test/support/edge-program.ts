/** The web servers and caches that a test runs as they are installed: found, started on a free port, ended. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { holdPort } from "./cli.ts";
import { ask } from "./site.ts";
import { until } from "./until.ts";

export type Running = { readonly url: string; readonly stop: () => Promise<void> };

const FOLDERS = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/** Null where it is not installed: continuous integration has them all (.ci/run). */
export function findProgram(name: string): string | null {
  return FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

/** Debian's place for nginx modules, and that of nginx's own packages. */
export function findNginxModule(file: string): string | null {
  const folders = ["/usr/lib/nginx/modules", "/usr/share/nginx/modules", "/etc/nginx/modules"];
  return folders.map((folder) => join(folder, file)).find((path) => existsSync(path)) ?? null;
}

export async function freePort(): Promise<number> {
  const { port, release } = await holdPort();
  await release();
  return port;
}

/** Resolves when it answers. What it says goes into the error if it never does. */
export async function startProgram(
  program: string,
  args: readonly string[],
  port: number,
  cwd: string,
  answers: (url: string) => Promise<boolean> = answersHttp,
): Promise<Running> {
  const { PATH = "" } = process.env;
  const env = { PATH, HOME: cwd, XDG_DATA_HOME: cwd, XDG_CONFIG_HOME: cwd };
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const url = `http://127.0.0.1:${port}`;
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (said += text));
  await until(`${program} to answer`, async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: ${said}`);
    return answers(url);
  });
  return { url, stop: () => end(child) };
}

/** Whatever the body is. */
function answersHttp(url: string): Promise<boolean> {
  return ask(url, "/").then(
    () => true,
    (error: Error) => error instanceof SyntaxError,
  );
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}
