/** One app on the stage: takes its answers, and tells and counts what becomes of each. */
import { join } from "node:path";
import { type Address, fileOf, folderOf, requestOf } from "../../../shared/address.ts";
import type { Change } from "./changes.ts";
import { sizeOf } from "./folder.ts";
import type { Kept } from "./kept.ts";
import type { Standing, Written } from "./write.ts";

/** A file to be written, or to go where `body` is null. */
export type Rewrite = {
  readonly address: Address;
  /** Text, or its bytes in UTF-8. */
  readonly body: string | Uint8Array | null;
  /** The size of the file that it replaces, where it is known to differ. */
  readonly replaces?: number | undefined;
};

/** What a build did to the files of an app: `size` is how large all were that were put, `bytes` how much the folder grew. */
export type Tally = { looked: number; size: number; added: number; changed: number; gone: number; bytes: number };

export type StagedApp = {
  /** True once the stage is settled. */
  readonly tally: Readonly<Tally>;
  /** `compare` is false where the tree has nothing yet. `kept` is told which files of the app there are. */
  readonly put: (rewrites: readonly Rewrite[], compare: boolean, kept?: Kept | null) => Promise<void>;
  /** A file that goes, relative to the tree; its address where it is one of the tree's. */
  readonly remove: (file: string, address: Address | null) => void;
  /** The new state, null for an app that is gone. */
  readonly keep: (state: string | null) => void;
};

/** What is kept of an answer until it is written: many wait at once. */
export type Put = {
  readonly address: Address;
  readonly note: (address: Address, size: number, written: Written[number]) => void;
};

/** What the stage does for its apps. */
export type Board = {
  readonly out: string;
  /** Gives the size of the answer. */
  readonly write: (file: string, body: string | Uint8Array, standing: Standing, put: Put) => Promise<number>;
  readonly tell: (change: Change) => void;
  readonly keep: (key: string, state: string) => void;
  /** A file that is looked at and not written. */
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
