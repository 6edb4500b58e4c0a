/** The package as it is published, unpacked where nothing of the repository is near. */
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { Place } from "./cli.ts";

const PACKAGE = fileURLToPath(new URL("../../package.json", import.meta.url));
const ROOT = dirname(PACKAGE);

/** Packs the package and unpacks it there, with the dependencies that it names. Returns its folder. */
export async function unpackPackage({ folder, spawn }: Place, into = "package"): Promise<string> {
  // The scripts would compile while other tests run what is compiled.
  const pack = await spawn("npm", ["pack", ROOT, "--ignore-scripts", "--silent"]);
  expect([pack.code, pack.stderr]).toEqual([0, ""]);
  const unpacked = join(folder, into);
  mkdirSync(unpacked, { recursive: true });
  const tar = ["-xf", pack.stdout.trim(), "--strip-components=1", "-C", unpacked];
  expect((await spawn("tar", tar)).code).toBe(0);
  const { dependencies } = JSON.parse(readFileSync(PACKAGE, "utf8")) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) {
    const link = join(unpacked, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), link);
  }
  return unpacked;
}
