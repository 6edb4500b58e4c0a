/** The folder of journals: creates it, checks it, and syncs its entries, without which a power failure loses files. */
import { constants } from "node:fs";
import { access, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Error codes of systems that cannot sync a directory to disk (fsync(2)), or do not let this process do it. */
const SYNC_UNSUPPORTED: readonly unknown[] = ["EACCES", "EINVAL", "EISDIR", "ENOTSUP", "EPERM"];

export function ledgerFolderOf(dataDir: string): string {
  return join(dataDir, "ledger");
}

/** Rejects with the system's error when the folder is not there or this process may not create files in it. */
export async function needWritable(folder: string): Promise<void> {
  await access(folder, constants.W_OK | constants.X_OK);
}

/**
 * Creates the folder and its parents. Returns a function that writes to disk the directory entries that may be new:
 * those in the folder, and those of the folders that were created.
 */
export async function makeFolder(folder: string): Promise<() => Promise<void>> {
  const first = await mkdir(folder, { recursive: true });
  return async () => {
    for (const one of foldersFrom(first === undefined ? folder : dirname(first), folder)) await syncFolder(one);
  };
}

/** The folders from `folder` up to `top`, the deepest first. */
function foldersFrom(top: string, folder: string): string[] {
  return folder === top || dirname(folder) === folder ? [folder] : [folder, ...foldersFrom(top, dirname(folder))];
}

/** Writes a file or a folder to disk, opened with these flags. */
export async function syncPath(path: string, flags: "r" | "r+"): Promise<void> {
  const handle = await open(path, flags);
  await handle.sync().finally(() => handle.close());
}

async function syncFolder(folder: string): Promise<void> {
  try {
    await syncPath(folder, "r");
  } catch (error) {
    if (!SYNC_UNSUPPORTED.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}
