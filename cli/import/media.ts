/** Copies the media of a bundle into the data directory: those that differ, each so that it appears whole. */
import { createHash } from "node:crypto";
import { constants, createReadStream, rmSync, type Stats } from "node:fs";
import { copyFile, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { isFile, makeFolders, moveInto } from "../../shared/files.ts";
import { findMediaFolder, listMedia, nameMediaFolder } from "../../shared/media.ts";
import type { MediaFiles } from "./folder.ts";
import type { MediaChanges } from "./report.ts";

export type MediaPlan = {
  readonly changes: MediaChanges;
  /** Copies what differs. */
  readonly copy: () => Promise<void>;
  /** Deletes what the bundle lacks: to be done last, when nothing names these files any more. */
  readonly prune: () => void;
};

export async function planMedia(
  files: MediaFiles,
  dataDir: string,
  appKey: string,
  prune: boolean,
): Promise<MediaPlan> {
  const root = findMediaFolder(dataDir);
  const pathOf = (name: string) => `${nameMediaFolder(appKey)}/${name}`;
  const differing: (readonly [name: string, file: string])[] = [];
  for (const [name, file] of files) if (!(await isSame(file, join(root, pathOf(name))))) differing.push([name, file]);
  const surplus = prune ? listMedia(dataDir, appKey).filter((name) => !files.has(name)) : [];
  return {
    changes: { copied: differing.length, unchanged: files.size - differing.length, deleted: surplus.length },
    copy: async () => {
      // Nobody else imports this app meanwhile.
      const part = join(root, `.part-${appKey}`);
      if (differing.length > 0) makeFolders(root);
      for (const [name, file] of differing) await copyWhole(file, root, pathOf(name), part);
    },
    prune: () => {
      for (const name of surplus) rmSync(join(root, pathOf(name)), { force: true });
    },
  };
}

async function copyWhole(file: string, root: string, path: string, part: string): Promise<void> {
  const { atimeMs, mtimeMs } = await stat(file);
  await copyFile(file, part, constants.COPYFILE_FICLONE);
  await utimes(part, atimeMs / 1_000, mtimeMs / 1_000);
  moveInto(root, path, part);
}

/** A checkout gives files new times: only then their content is compared. */
async function isSame(file: string, copy: string): Promise<boolean> {
  if (!isFile(copy)) return false;
  const [own, other] = [await stat(file), await stat(copy)];
  if (own.size !== other.size) return false;
  return haveSameTime(own, other) || (await digestFile(file)) === (await digestFile(copy));
}

function haveSameTime(one: Stats, other: Stats): boolean {
  return Math.trunc(one.mtimeMs) === Math.trunc(other.mtimeMs);
}

/** Read in chunks: a video may be larger than the memory. */
async function digestFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
