/** One app on the stage: takes its answers, and reports and counts what becomes of each. */
import { join } from "node:path";
import { type Address, fileOf, folderOf, requestOf } from "../../../shared/address.ts";
import type { Change } from "./changes.ts";
import { sizeOf } from "./file.ts";
import type { PutPaths } from "./put-paths.ts";
import type { ExistingFile, WriteResults } from "./write.ts";

/** A file to write, or to delete when `body` is null. */
export type Rewrite = {
  readonly address: Address;
  /** Text, or its bytes in UTF-8. */
  readonly body: string | Uint8Array | null;
  /** Size in bytes of the file that it replaces, when that is known to differ. */
  readonly replacedSize?: number | undefined;
};

/**
 * What a build did to the files of an app. `putFiles` and `putBytes` are the number and the total size of the answers
 * that were put, and `growth` is by how many bytes the folder grew.
 */
export type Tally = {
  putFiles: number;
  putBytes: number;
  added: number;
  changed: number;
  gone: number;
  growth: number;
};

export type StagedApp = {
  /** Final once the stage is settled. */
  readonly tally: Readonly<Tally>;
  /** `compare` is false when the tree has none of the files yet. `putPaths` takes the paths of what is put. */
  readonly put: (rewrites: Iterable<Rewrite>, compare: boolean, putPaths?: PutPaths | null) => Promise<void>;
  /** Deletes a file, given relative to the tree. `address` is null when no request for the file is known. */
  readonly remove: (file: string, address: Address | null) => void;
  /** Stages the app's new state, or null when the app is gone. */
  readonly stageState: (state: string | null) => void;
};

/** What is kept of an answer until it is written: as little as possible, because many wait at once. */
export type PendingAnswer = {
  readonly address: Address;
  readonly onWritten: (address: Address, size: number, written: WriteResults[number]) => void;
};

/** What a staged app needs from its stage. */
export type StageContext = {
  readonly out: string;
  /** Resolves with the size of the answer in bytes. */
  readonly write: (
    file: string,
    body: string | Uint8Array,
    existing: ExistingFile,
    pending: PendingAnswer,
  ) => Promise<number>;
  readonly addChange: (change: Change) => void;
  readonly stageState: (key: string, state: string) => void;
  /** Called for a file that is processed but not written. */
  readonly skip: () => void;
};

export function openStagedApp(key: string, { out, write, addChange, stageState, skip }: StageContext): StagedApp {
  const root = folderOf(key);
  const tally: Tally = { putFiles: 0, putBytes: 0, added: 0, changed: 0, gone: 0, growth: 0 };

  const recordChange = (change: Change["change"], file: string, address: Address | null) => {
    tally[change] += 1;
    const type = address === null || address.kind === "catalog" ? null : address.slug;
    addChange({ change, app: key, type, request: address === null ? null : requestOf(address), file });
  };
  const onWritten: PendingAnswer["onWritten"] = (address, size, { outcome, replacedSize }) => {
    if (outcome === "same") return;
    tally.growth += size - replacedSize;
    recordChange(outcome, `${root}/${fileOf(address)}`, address);
  };
  const remove = (file: string, address: Address | null) => {
    const size = sizeOf(join(out, file));
    if (size === null) return;
    tally.growth -= size;
    recordChange("gone", file, address);
  };
  const put: StagedApp["put"] = async (rewrites, compare, putPaths = null) => {
    for (const { address, body, replacedSize } of rewrites) {
      putPaths?.add(fileOf(address));
      if (body === null) {
        remove(`${root}/${fileOf(address)}`, address);
        skip();
      } else {
        const existing = replacedSize ?? (compare ? "unknown" : "none");
        tally.putBytes += await write(`${root}/${fileOf(address)}`, body, existing, { address, onWritten });
        tally.putFiles += 1;
      }
    }
  };
  return { tally, put, remove, stageState: (state) => stageState(key, state ?? "") };
}
