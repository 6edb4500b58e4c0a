/** Reads the tree that a build wrote: which apps it has, and the files of their answers. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileOf, folderOf } from "../shared/address.ts";
import { etagOf } from "../shared/answer.ts";
import type { App } from "../shared/catalog.ts";
import type { AppTree } from "../shared/respond.ts";
import { readState, stateFileOf } from "../shared/state.ts";

export type Tree = { readonly findTree: (appKey: string) => Promise<AppTree | null> };

/** A state file as it was read, and by what to see that it has changed. */
type Known = { readonly version: string; readonly app: App | null };

const MISSING = ["ENOENT", "ENOTDIR", "ENAMETOOLONG"];

/** A finished build shows at once: each request looks whether the state of its app is still the one that was read. */
export function openTree(out: string): Tree {
  const known = new Map<string, Known>();

  async function findApp(appKey: string): Promise<App | null> {
    const file = join(out, stateFileOf(appKey));
    const found = await orMissing(stat(file, { bigint: true }));
    if (found === null) {
      known.delete(appKey);
      return null;
    }
    const version = `${found.ino} ${found.mtimeNs} ${found.size}`;
    const before = known.get(appKey);
    if (before?.version === version) return before.app;
    const text = await orMissing(readFile(file, "utf8"));
    const app = text === null ? null : (readState(text)?.app ?? null);
    known.set(appKey, { version, app });
    return app;
  }

  return {
    findTree: async (appKey) => {
      const app = await findApp(appKey);
      if (app === null) return null;
      const folder = join(out, folderOf(appKey));
      return {
        app,
        read: async (address) => {
          const bytes = await orMissing(readFile(join(folder, fileOf(address))));
          return bytes === null ? null : { bytes, etag: etagOf(bytes) };
        },
      };
    },
  };
}

async function orMissing<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (MISSING.includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}
