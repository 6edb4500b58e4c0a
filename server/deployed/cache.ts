/**
 * Keeps deployed files on disk, named by their digests, within a limit. All processes that use the folder share it, and so
 * does the next one. What was not read for long goes first: files are kept in the newest of two numbered folders, a file
 * that is read in the older one moves there, and when the newest is half as large as the limit, it becomes the older one.
 */
import { randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { access, appendFile, mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { removeAll } from "../../shared/files.ts";
import { digestBytes } from "../../shared/tree.ts";

export type FileCache = {
  /** Null when it is not kept, or damaged. */
  readonly read: (sha256: string) => Promise<Buffer | null>;
  /** It then counts as read. */
  readonly has: (sha256: string) => Promise<boolean>;
  readonly keep: (sha256: string, bytes: Buffer) => Promise<void>;
};

/** Grows by one byte for each block of a file that is put into its folder, whichever process puts it there. */
const TALLY = "tally";
const BLOCK = 4_096;

/** `onError` is told why a file could not be kept. */
export function openFileCache(folder: string, maxBytes: number, onError: (error: unknown) => void): FileCache {
  const nameOf = (generation: number, sha256: string) =>
    join(folder, String(generation), sha256.slice(0, 2), sha256.slice(2));

  /** The newest first. */
  async function listGenerations(): Promise<number[]> {
    const names = await readdir(folder).catch(() => []);
    return names.flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : [])).sort((one, other) => other - one);
  }

  /** The folder for a file of this size, which is counted there. */
  async function makeRoom(size: number): Promise<number> {
    const generations = await listGenerations();
    const newest = generations[0] ?? 0;
    const blocks = Math.ceil(size / BLOCK);
    const used = (await stat(join(folder, String(newest), TALLY)).catch(() => null))?.size ?? 0;
    const isFull = used > 0 && (used + blocks) * BLOCK > maxBytes / 2;
    const chosen = isFull ? newest + 1 : newest;
    await mkdir(join(folder, String(chosen)), { recursive: true });
    await appendFile(join(folder, String(chosen), TALLY), Buffer.alloc(blocks, "."));
    if (isFull) void removeOld(generations.slice(1)).catch(onError);
    return chosen;
  }

  async function removeOld(generations: readonly number[]): Promise<void> {
    for (const generation of generations) await removeAll(join(folder, String(generation)));
  }

  async function put(sha256: string, size: number, move: (to: string) => Promise<void>): Promise<void> {
    const to = nameOf(await makeRoom(size), sha256);
    await mkdir(dirname(to), { recursive: true });
    await move(to);
  }

  async function find(sha256: string): Promise<{ readonly path: string; readonly isOld: boolean } | null> {
    for (const [age, generation] of (await listGenerations()).entries()) {
      const path = nameOf(generation, sha256);
      if (await access(path).then(isTrue, isFalse)) return { path, isOld: age > 0 };
    }
    return null;
  }

  /** Moves it to the newest, where another process may have moved it already. */
  async function stay(path: string, sha256: string): Promise<void> {
    const move = async ({ size }: Stats) => put(sha256, size, (to) => rename(path, to));
    await stat(path)
      .then(move)
      .catch(() => {});
  }

  return {
    has: async (sha256) => {
      const found = await find(sha256);
      if (found?.isOld) await stay(found.path, sha256);
      return found !== null;
    },
    read: async (sha256) => {
      const found = await find(sha256);
      const bytes = found === null ? null : await readFile(found.path).catch(() => null);
      // A power failure may have left it empty or cut.
      if (found === null || bytes === null || digestBytes(bytes).sha256 !== sha256) return null;
      if (found.isOld) await stay(found.path, sha256);
      return bytes;
    },
    keep: async (sha256, bytes) => {
      const write = async (to: string) => {
        const part = `${to}.${randomUUID()}`;
        await writeFile(part, bytes);
        await rename(part, to);
      };
      await put(sha256, bytes.length, write).catch(onError);
    },
  };
}

const isTrue = () => true;
const isFalse = () => false;
