/** Programs as a person runs them in a shell: in a group that signals reach as a whole, or on a terminal of their own. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";

type Session = {
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;
  /** Standard output and standard error. */
  readonly output: () => string;
  /** Resolves when the output matches; rejects when the program ends without a match. */
  readonly printed: (pattern: RegExp) => Promise<RegExpExecArray>;
  readonly type: (keys: string) => void;
  /** Sends a signal to the program and all that it has started. */
  readonly signal: (signal: NodeJS.Signals) => void;
};

/** `script` gives a command a terminal; that of other systems has other options. */
export const NO_TERMINAL = process.platform === "linux" && existsSync("/usr/bin/script") ? null : "Linux with `script`";

const running = new Set<ChildProcess>();

/** Kills what still runs, as after a failed test. */
export function endSessions(): void {
  for (const child of running) kill(child, "SIGKILL");
  running.clear();
}

function kill({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(-pid, signal);
}

/** No package is fetched, and a server takes any port. */
export function startSession(
  program: string,
  args: readonly string[],
  cwd: string,
  stdin: "ignore" | "pipe" = "ignore",
): Session {
  const { PATH = "", HOME = "" } = process.env;
  const env = { PATH, HOME, TERM: "xterm", PRECAST_PORT: "0", npm_config_offline: "true" };
  const child = spawn(program, args, { cwd, env, detached: true, stdio: [stdin, "pipe", "pipe"] });
  running.add(child);
  let output = "";
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      for (const watch of watchers) watch();
    });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  const printed = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const watch = () => {
        const found = pattern.exec(output);
        if (found !== null) resolve(found);
      };
      watchers.add(watch);
      ended.then((code) => reject(new Error(`${program} ended with ${code} before ${pattern}: ${output}`)), reject);
      watch();
    });
  const type = (keys: string) => void child.stdin?.write(keys);
  return { ended, printed, output: () => output, type, signal: (signal) => kill(child, signal) };
}

/** The terminal has 80 columns: without a size, programs would write one letter a line. */
export function startOnTerminal(command: string, cwd: string): Session {
  return startSession("script", ["-qec", `stty cols 80 rows 24; exec ${command}`, "/dev/null"], cwd, "pipe");
}
