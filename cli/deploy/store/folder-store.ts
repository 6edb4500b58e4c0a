/** Stores a tree in a folder, such as that of a web server. Files appear complete; unchanged ones keep their mtime. */
import { hash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { yieldToEventLoop } from "../../build/stage/event-loop.ts";
import { makeNewer, readOrNull, sizeOf } from "../../build/stage/file.ts";
import { filesIn, namesIn, removeFrom } from "../../build/stage/folder.ts";
import { moveInto } from "../../build/stage/move.ts";
import { isTopFolder } from "../tree-file.ts";
import { type Condition, STORE_FOLDER, type Store } from "./store.ts";

/** Folder of files that are being written: inside the target, so that a rename stays on one file system. */
const PARTS = `${STORE_FOLDER}/part`;

export function openFolderStore(folder: string): Store {
  const existingFolders = new Set<string>();
  let parts = 0;

  const get: Store["get"] = async (key) => {
    const bytes = readOrNull(join(folder, key));
    return bytes === null ? null : { bytes, etag: etagOf(bytes), age: null };
  };
  return {
    name: `file://${folder}`,
    get,
    put: async (key, bytes, { condition, throwIfStopped }) => {
      // Otherwise the process would notice no stop signal and not renew the lock.
      await yieldToEventLoop();
      throwIfStopped?.();
      if (condition !== undefined && !isMet(condition, readOrNull(join(folder, key)))) return { kind: "unmet" };
      mkdirSync(join(folder, PARTS), { recursive: true });
      const part = join(folder, PARTS, String(parts++));
      writeFileSync(part, bytes);
      if (sizeOf(join(folder, key)) === bytes.length) makeNewer(part, join(folder, key));
      moveInto(folder, key, part, existingFolders);
      return { kind: "put", etag: etagOf(bytes) };
    },
    list: async function* () {
      // What else is there is somebody else's, and may be closed to this user: a volume has a lost+found.
      for (const name of namesIn(folder)) if (isTopFolder(name)) yield* filesIn(folder, name);
    },
    remove: async (key, throwIfStopped) => {
      await yieldToEventLoop();
      throwIfStopped?.();
      removeFrom(folder, key);
      existingFolders.clear();
    },
  };
}

/** Removes the partly written files that a dead deploy has left. */
export function clearParts(folder: string): void {
  rmSync(join(folder, PARTS), { recursive: true, force: true });
}

function isMet(condition: Condition, before: Buffer | null): boolean {
  return condition.kind === "absent" ? before === null : before !== null && etagOf(before) === condition.etag;
}

function etagOf(bytes: Uint8Array): string {
  return `"${hash("sha256", bytes, "hex")}"`;
}
