/** Runs the compiled program and measures it. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Measured, measureNode } from "./measure.ts";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** Where the content is, as flags: `--database-url` or `--data-dir`. */
export type Source = readonly string[];

export type Built = Measured & {
  /** How the apps were built, and why; empty when the program does not say. */
  readonly mode: string;
  readonly reason: string;
  readonly written: number;
};

export type Finding = { readonly check: string; readonly remedy: string };

type Report = {
  readonly mode?: string;
  readonly reason?: string;
  readonly written: number;
};

/** Runs a command line in a folder. */
export function runPrecast(args: readonly string[], folder: string): Promise<Measured> {
  return measureNode([MAIN, ...args, "--json", "--quiet"], folder);
}

/** What `precast doctor` finds, whose exit code 2 says that there is advice. */
export function runDoctor(source: Source, folder: string): Finding[] {
  const args = [MAIN, "doctor", ...source, "--json", "--quiet"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  if (status !== 0 && status !== 2) throw new Error(`precast doctor: exit code ${status}\n${stderr}`);
  return (JSON.parse(stdout) as { readonly findings: Finding[] }).findings;
}

export async function runBuild(source: Source, out: string, folder: string): Promise<Built> {
  const measured = await runPrecast(["build", ...source, "--out", out], folder);
  const { apps } = JSON.parse(measured.stdout) as { apps: readonly Report[] };
  const told = (name: "mode" | "reason") => [...new Set(apps.flatMap((app) => app[name] ?? []))].join(", ");
  const written = apps.reduce((sum, app) => sum + app.written, 0);
  return { ...measured, mode: told("mode"), reason: told("reason"), written };
}
