/** Reads from the folder, at each call, whether there is a tree, for how many apps, and when it was last built. */
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { CHANGES_FILE, ELSEWHERE_FILE, isStateFile, STATE_FOLDER } from "../../shared/state.ts";

export type TreeHealth = { readonly ready: boolean; readonly apps: number; readonly built_at: string | null };

/** Bytes read of the last build's list of changes, which begins with the time of the build and may be long. */
const BEGINNING = 256;

export async function readTreeHealth(out: string): Promise<TreeHealth> {
  const names = await readdir(join(out, STATE_FOLDER)).catch((): string[] => []);
  const apps = names.filter(isStateFile).length;
  // The server does not use a tree that lacks files which exist only where it was deployed.
  return {
    ready: apps > 0 && !names.includes(ELSEWHERE_FILE),
    apps,
    built_at: await readBuiltAt(join(out, STATE_FOLDER, CHANGES_FILE)),
  };
}

async function readBuiltAt(file: string): Promise<string | null> {
  const handle = await open(file).catch(() => null);
  if (handle === null) return null;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(BEGINNING), 0, BEGINNING, 0);
    return /"built_at":"([^"]+)"/.exec(buffer.toString("utf8", 0, bytesRead))?.[1] ?? null;
  } finally {
    await handle.close();
  }
}
