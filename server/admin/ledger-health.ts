/** Checks, at each call, whether the folder of journals can take counts: whether it is writable and its disk has room. */
import { mkdir, statfs } from "node:fs/promises";
import { needWritable } from "../ledger/folder.ts";

/** `error` says why no counts can be stored; null when they can. */
export type LedgerHealth = { readonly ready: boolean; readonly error: string | null };

export async function readLedgerHealth(folder: string): Promise<LedgerHealth> {
  try {
    // As for each journal: a folder that was removed is created again.
    await mkdir(folder, { recursive: true });
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
