/** Checks, at each call, whether the folder of journals can take counts: whether it is writable and its disk has room. */
import { statfs } from "node:fs/promises";
import { makeFolder, needWritable } from "../ledger/folder.ts";
import type { Health } from "./readiness.ts";

export async function readLedgerHealth(folder: string): Promise<Health> {
  try {
    // As for each journal: a folder that was removed is created again.
    await makeFolder(folder);
    await needWritable(folder);
    if (await isFull(folder)) throw new Error(`no space left on the disk of ${folder}`);
    return { ready: true, error: null };
  } catch (error) {
    return { ready: false, error: (error as Error).message };
  }
}

/** File systems without a fixed number of files or blocks report 0 of 0. */
async function isFull(folder: string): Promise<boolean> {
  const { blocks, bavail, files, ffree } = await statfs(folder);
  return (blocks > 0 && bavail === 0) || (files > 0 && ffree === 0);
}
