/** Creates the folder of journals, and syncs directory entries, without which a power failure loses files. */
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/** Error codes of systems that cannot sync a directory to disk (fsync(2)), or do not let this process do it. */
const SYNC_UNSUPPORTED: readonly unknown[] = ["EACCES", "EINVAL", "EISDIR", "ENOTSUP", "EPERM"];

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

async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder);
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (!SYNC_UNSUPPORTED.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}
