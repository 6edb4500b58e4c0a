/** A small disk (a tmpfs) that a test can fill. */
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryRoot } from "./postgres.ts";
import { mountDisk, unmountDisk } from "./root.ts";

export type Disk = {
  readonly folder: string;
  /** Writes a file that leaves `left` megabytes free. */
  readonly fill: (left: number) => void;
  /** The free megabytes. */
  readonly free: () => number;
  /** Deletes the file that `fill` wrote. */
  readonly empty: () => void;
  readonly remove: () => void;
};

const MEGABYTE = 1_024 * 1_024;

export function openDisk(megabytes: number): Disk {
  const folder = mkdtempSync(join(temporaryRoot(), "precast-disk-"));
  mountDisk(folder, `size=${megabytes}m`);
  chmodSync(folder, 0o755);
  const filler = join(folder, "filler");
  const empty = () => rmSync(filler, { force: true });
  const free = () => {
    const { bavail, bsize } = statfsSync(folder);
    return (bavail * bsize) / MEGABYTE;
  };
  const fill = (left: number) => {
    try {
      writeFileSync(filler, Buffer.alloc(Math.max(0, free() - left) * MEGABYTE, 1));
    } catch (error) {
      // A database on the disk has written meanwhile: it is as full as was asked, or fuller.
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  };
  return {
    folder,
    fill,
    free,
    empty,
    remove: () => {
      unmountDisk(folder);
      rmSync(folder, { recursive: true });
    },
  };
}
