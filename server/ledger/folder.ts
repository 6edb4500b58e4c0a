/** The folder of journals: made where it is missing, and its names written to the disk, without which no file in it can be found. */
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/** What systems say that cannot write a folder to the disk by itself (fsync(2)), or do not let this process. */
const NOT_HERE: readonly unknown[] = ["EACCES", "EINVAL", "EISDIR", "ENOTSUP", "EPERM"];

/** Gives what writes the names to the disk, as far as they are new: that of the folder itself, and what is in it. */
export async function makeFolder(folder: string): Promise<() => Promise<void>> {
  const first = await mkdir(folder, { recursive: true });
  return async () => {
    for (const one of foldersFrom(first === undefined ? folder : dirname(first), folder)) await syncFolder(one);
  };
}

/** The deepest first. */
function foldersFrom(top: string, folder: string): string[] {
  return folder === top || dirname(folder) === folder ? [folder] : [folder, ...foldersFrom(top, dirname(folder))];
}

async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder);
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (!NOT_HERE.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}
