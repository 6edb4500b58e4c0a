/** The server of a soak: `precast serve` with several workers, watched and hurt from outside. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../../support/until.ts";

const MAIN = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));

export type SoakServer = {
  readonly url: string;
  /** The processes that answer, the oldest first. */
  readonly workers: () => number[];
  /** SIGKILL to one of them; resolves when another has taken its place. */
  readonly killWorker: (pid: number) => Promise<void>;
  /** Bytes of memory that a process holds. */
  readonly memoryOf: (pid: number) => number;
  /** Told to stop, it gives its exit code. */
  readonly stop: () => Promise<number | null>;
  /** What it said on standard error. */
  readonly log: () => string;
};

export async function startServer(args: readonly string[], folder: string): Promise<SoakServer> {
  const file = join(folder, "serve.log");
  const log = openSync(file, "a");
  const child = spawn(process.execPath, [MAIN, "serve", ...args, "--port", "0", "--json", "--quiet"], {
    cwd: folder,
    stdio: ["ignore", "pipe", log],
  });
  closeSync(log);
  const url = await urlOf(child, () => readFileSync(file, "utf8"));
  const pid = child.pid as number;
  const workers = () => childrenOf(pid);
  const wanted = workers().length;
  const ended = once(child, "exit");
  return {
    url,
    workers,
    killWorker: async (victim) => {
      process.kill(victim, "SIGKILL");
      await until("another worker", () => !workers().includes(victim) && workers().length === wanted);
    },
    memoryOf,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
      return child.exitCode;
    },
    log: () => readFileSync(file, "utf8"),
  };
}

function urlOf(child: ChildProcess, log: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", (code) => reject(new Error(`precast serve ended with ${code}:\n${log()}`)));
    child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      const found = /^\{"url":"([^"]+)"/m.exec(text);
      if (found !== null) resolve(found[1] as string);
    });
  });
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [] : text.split(" ").map(Number);
}

function memoryOf(pid: number): number {
  const found = /VmRSS:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return found === null ? 0 : Number(found[1]) * 1_024;
}
