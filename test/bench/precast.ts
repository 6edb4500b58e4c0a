/** Runs the compiled program and measures it. */
import { fileURLToPath } from "node:url";
import { type Measured, measureNode } from "./measure.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** Where the content is, as flags: `--database-url` or `--data-dir`. */
export type Source = readonly string[];

export type Built = Measured & {
  /** How the apps were built, and why; empty when the program does not say. */
  readonly mode: string;
  readonly reason: string;
  readonly written: number;
};

type Report = {
  readonly mode?: string;
  readonly reason?: string;
  readonly written: number;
};

/** Runs a command line in a folder. */
export function runPrecast(args: readonly string[], folder: string): Promise<Measured> {
  return measureNode([MAIN, ...args, "--json", "--quiet"], folder);
}

export async function runBuild(source: Source, out: string, folder: string): Promise<Built> {
  const measured = await runPrecast(["build", ...source, "--out", out], folder);
  const { apps } = JSON.parse(measured.stdout) as { apps: readonly Report[] };
  const told = (name: "mode" | "reason") => [...new Set(apps.flatMap((app) => app[name] ?? []))].join(", ");
  const written = apps.reduce((sum, app) => sum + app.written, 0);
  return { ...measured, mode: told("mode"), reason: told("reason"), written };
}
