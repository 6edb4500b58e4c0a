/** Runs workers as processes, and measures them from outside: memory, CPU, and their connections to the database. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { MAIN } from "../precast.ts";
import { cpuOf, memoryOf } from "../proc.ts";

export type Usage = {
  /** Seconds of CPU of all workers so far. */
  readonly cpu: number;
  /** Publications of all workers so far. */
  readonly publications: number;
};

export type Fleet = {
  readonly usage: () => Usage;
  /** Resident bytes of the largest worker now. */
  readonly memory: () => number;
  /** The most bytes that a worker, and connections that all of them have had since the last call. */
  readonly peaks: () => { readonly memory: number; readonly connections: number };
  /** Rejects when a worker ends by itself. */
  readonly failed: Promise<never>;
  readonly stop: () => Promise<void>;
};

type FleetOptions = {
  readonly workers: number;
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Each worker has a folder below it. */
  readonly folder: string;
  /** A connection of the benchmark to the same database. */
  readonly client: Client;
};

const INTERVAL = 250;

export function startFleet({ workers, flags, env, folder, client }: FleetOptions): Fleet {
  let isStopping = false;
  const running = Array.from({ length: workers }, (_, number) => startWorker(flags, env, join(folder, `${number}`)));
  const failed = Promise.race(
    running.map(async ({ ended }) => {
      const message = await ended;
      return isStopping ? new Promise<never>(() => {}) : Promise.reject(new Error(`A worker has ended:\n${message}`));
    }),
  );
  failed.catch(() => {});
  const memory = () => Math.max(...running.map(({ pid }) => memoryOf(pid)));
  let peaks = { memory: 0, connections: 0 };
  const sampling = (async () => {
    while (!isStopping) {
      const { rows } = await client.query<{ count: number }>(CONNECTIONS);
      if (isStopping) return;
      const connections = (rows[0]?.count ?? 0) - 1;
      peaks = { memory: Math.max(peaks.memory, memory()), connections: Math.max(peaks.connections, connections) };
      await sleep(INTERVAL);
    }
  })().catch(() => {});
  return {
    usage: () => ({
      cpu: running.reduce((sum, { pid }) => sum + cpuOf(pid), 0),
      publications: running.reduce((sum, { published }) => sum + published(), 0),
    }),
    memory,
    peaks: () => {
      const had = peaks;
      peaks = { memory: 0, connections: 0 };
      return had;
    },
    failed,
    stop: async () => {
      isStopping = true;
      await sampling;
      for (const { stop } of running) stop();
      await Promise.all(running.map(({ ended }) => ended));
    },
  };
}

const CONNECTIONS = "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE datname = current_database()";

function startWorker(flags: readonly string[], env: Readonly<Record<string, string>>, dataDir: string) {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [MAIN, "work", ...flags, "--data-dir", dataDir, "--json"], {
    env: { PATH, HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  let lines = 0;
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines += text.split("\n").length - 1;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-10_000);
  });
  const ended = once(child, "close").then(() => {
    process.off("exit", kill);
    return errors;
  });
  return { pid: child.pid as number, published: () => lines, ended, stop: () => void child.kill("SIGTERM") };
}
