/** Runs a process and measures it: wall time from its start to its end, and the most memory that it held. */
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

export type Measured = {
  readonly seconds: number;
  /** Bytes; null where it was not measured. */
  readonly peak: number | null;
  readonly stdout: string;
};

/** Runs any program in a folder; it must succeed. */
export async function measure(program: string, args: readonly string[], folder: string): Promise<Measured> {
  return { ...(await run(program, args, folder, {})), peak: null };
}

/** Runs a script with this Node.js, in a folder; it must succeed. */
export async function measureNode(args: readonly string[], folder: string): Promise<Measured> {
  const file = join(folder, "peak");
  const ran = await run(process.execPath, args, folder, { NODE_OPTIONS: PRELOAD, BENCH_PEAK_FILE: file });
  const peaks = readFileSync(file, "utf8").trim().split("\n").map(Number);
  rmSync(file);
  // Every process that the script starts adds a line: together they held at most the sum.
  return { ...ran, peak: peaks.reduce((sum, peak) => sum + peak, 0) };
}

export type Timed = Measured & {
  /** Seconds of user and system time. */
  readonly cpu: number;
};

/** Runs any program in a folder, with these variables in its environment; it must succeed. */
export async function measureTimes(program: string, args: readonly string[], folder: string, env: Env): Promise<Timed> {
  // Node.js does not tell what its children took. The last line of `times` does, for those of the shell.
  const { seconds, stdout } = await run("sh", ["-c", '"$@" && times', "sh", program, ...args], folder, env);
  const [, ...taken] = /(\d+)m([\d.]+)s (\d+)m([\d.]+)s\s*$/.exec(stdout) ?? [];
  const [minutes, userSeconds, systemMinutes, systemSeconds] = taken.map(Number) as [number, number, number, number];
  return { seconds, peak: null, stdout, cpu: 60 * (minutes + systemMinutes) + userSeconds + systemSeconds };
}

/**
 * Runs in the measured process. On Linux not `resourceUsage().maxRSS`: a process begins with what its parent held when
 * it was forked, and this parent may hold more than the child ever does.
 */
const WATCH = `
import { appendFileSync, readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
const peak = () => process.platform === "linux"
  ? Number(/VmHWM:\\s*(\\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))[1])
  : process.resourceUsage().maxRSS;
if (isMainThread) process.on("exit", () => appendFileSync(process.env.BENCH_PEAK_FILE, peak() * 1024 + "\\n"));
`;
const PRELOAD = `--import=data:text/javascript,${encodeURIComponent(WATCH)}`;

type Env = Readonly<Record<string, string>>;

function run(program: string, args: readonly string[], folder: string, more: Env): Promise<Omit<Measured, "peak">> {
  const { PATH = "", HOME = "" } = process.env;
  // Writes out what earlier runs left in the page cache, so that it is not written during this one.
  execFileSync("sync");
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(program, args, {
      cwd: folder,
      env: { PATH, HOME, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const kill = () => void child.kill();
    process.once("exit", kill);
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] += text;
      });
    let seconds = 0;
    child.once("error", reject);
    child.once("exit", () => {
      seconds = (performance.now() - start) / 1_000;
    });
    child.once("close", (code, signal) => {
      process.off("exit", kill);
      if (code === 0) resolve({ seconds, stdout: output.stdout });
      else reject(new Error(`${program} ${args.join(" ")} ended with ${code ?? signal}:\n${output.stderr}`));
    });
  });
}
