/** One app on the stage: takes its answers, and reports and counts what becomes of each. */
import { join } from "node:path";
import { type Address, fileOf, folderOf, requestOf } from "../../../shared/address.ts";
import type { Change } from "./changes.ts";
import { sizeOf } from "./folder.ts";
import type { Kept } from "./kept.ts";
import type { Standing, Written } from "./write.ts";

/** A file to write, or to delete when `body` is null. */
export type Rewrite = {
  readonly address: Address;
  /** Text, or its bytes in UTF-8. */
  readonly body: string | Uint8Array | null;
  /** Size in bytes of the file that it replaces, when that is known to differ. */
  readonly replaces?: number | undefined;
};

/**
 * What a build did to the files of an app. `looked` is the number of answers that were put, `size` is their total size
 * in bytes, and `bytes` is by how many bytes the folder grew.
 */
export type Tally = { looked: number; size: number; added: number; changed: number; gone: number; bytes: number };

export type StagedApp = {
  /** Final once the stage is settled. */
  readonly tally: Readonly<Tally>;
  /** `compare` is false when the tree has none of the files yet. `kept` takes the paths of all files that are put. */
  readonly put: (rewrites: readonly Rewrite[], compare: boolean, kept?: Kept | null) => Promise<void>;
  /** Deletes a file, given relative to the tree. `address` is null when no request for the file is known. */
  readonly remove: (file: string, address: Address | null) => void;
  /** Stages the app's new state, or null when the app is gone. */
  readonly keep: (state: string | null) => void;
};

/** What is kept of an answer until it is written: as little as possible, because many wait at once. */
export type Put = {
  readonly address: Address;
  readonly note: (address: Address, size: number, written: Written[number]) => void;
};

/** What a staged app needs from its stage. */
export type Board = {
  readonly out: string;
  /** Resolves with the size of the answer in bytes. */
  readonly write: (file: string, body: string | Uint8Array, standing: Standing, put: Put) => Promise<number>;
  readonly tell: (change: Change) => void;
  readonly keep: (key: string, state: string) => void;
  /** Called for a file that is processed but not written. */
  readonly skip: () => void;
};

export function openStagedApp(key: string, { out, write, tell, keep, skip }: Board): StagedApp {
  const root = folderOf(key);
  const tally: Tally = { looked: 0, size: 0, added: 0, changed: 0, gone: 0, bytes: 0 };

  const tellOf = (change: Change["change"], file: string, address: Address | null) => {
    tally[change] += 1;
    const type = address === null || address.kind === "catalog" ? null : address.slug;
    tell({ change, app: key, type, request: address === null ? null : requestOf(address), file });
  };
  const note: Put["note"] = (address, size, { outcome, before }) => {
    if (outcome === "same") return;
    tally.bytes += size - before;
    tellOf(outcome, `${root}/${fileOf(address)}`, address);
  };
  const remove = (file: string, address: Address | null) => {
    const size = sizeOf(join(out, file));
    if (size === null) return;
    tally.bytes -= size;
    tellOf("gone", file, address);
  };
  const put: StagedApp["put"] = async (rewrites, compare, kept = null) => {
    for (const { address, body, replaces } of rewrites) {
      kept?.add(fileOf(address));
      if (body === null) {
        remove(`${root}/${fileOf(address)}`, address);
        skip();
      } else {
        const standing = replaces ?? (compare ? "unknown" : "none");
        tally.size += await write(`${root}/${fileOf(address)}`, body, standing, { address, note });
        tally.looked += 1;
      }
    }
  };
  return { tally, put, remove, keep: (state) => keep(key, state ?? "") };
}
