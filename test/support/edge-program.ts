/** Finds the web servers and caches that are installed, starts them on a free port, and stops them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { holdPort } from "./cli.ts";
import { ask } from "./site.ts";
import { until } from "./until.ts";

export type Running = { readonly url: string; readonly stop: () => Promise<void> };

const FOLDERS = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/** Null where the program is not installed: tests then skip. Continuous integration installs all of them (.ci/run). */
export function findProgram(name: string): string | null {
  return FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

/** Looks where Debian's packages and nginx's own packages install modules. */
export function findNginxModule(file: string): string | null {
  const folders = ["/usr/lib/nginx/modules", "/usr/share/nginx/modules", "/etc/nginx/modules"];
  return folders.map((folder) => join(folder, file)).find((path) => existsSync(path)) ?? null;
}

export async function freePort(): Promise<number> {
  const { port, release } = await holdPort();
  await release();
  return port;
}

/** Resolves when the program answers. Throws with the program's output when it ends before that. */
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

/** True for any HTTP response: `ask` throws a SyntaxError for a body that is not JSON. */
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
