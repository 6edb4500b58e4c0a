/**
 * Takes the answers of a build and puts those that differ from the tree on a stage beside it. Nothing of the tree is
 * touched before all are there: a build that fails leaves the tree as it was.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Address, fileOf, folderOf, requestOf, segment } from "../../../shared/address.ts";
import { type Change, type ChangesWriter, openChanges } from "./changes.ts";
import { sizeOf } from "./folder.ts";
import type { Kept } from "./kept.ts";
import { openLoad } from "./load.ts";
import { CARRIED, commitStage, publish, STAGE, STAGED_STATES, STAGED_TREE } from "./publish.ts";
import type { Standing, Written } from "./write.ts";
import { openWriters } from "./writers.ts";

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

export type Stage = {
  readonly openApp: (key: string) => StagedApp;
  /** Resolves when all that was put is on the stage. */
  readonly settle: () => Promise<void>;
  /** Is there anything that the tree does not have? */
  readonly isPending: () => boolean;
  /** Makes the build the tree. */
  readonly commit: () => void;
  /** Forgets what was not committed. */
  readonly close: () => Promise<void>;
};

export type StageOptions = {
  readonly out: string;
  readonly dryRun: boolean;
  readonly builtAt: string;
  /** Called with each file that is put, and the size of its answer: 0 for one that goes. */
  readonly onFile: (bytes: number) => void;
  readonly onChange: (change: Change) => void;
};

/** So many loads may wait to be written; with it memory is bounded. */
const MAX_WAITING = 4;

export function openStage({ out, dryRun, builtAt, onFile, onChange }: StageOptions): Stage {
  const folder = join(out, STAGE);
  const place = { tree: out, stage: dryRun ? null : join(folder, STAGED_TREE) };
  const writers = openWriters();
  const load = openLoad<Put>(writers.buffer);
  const waiting: Promise<void>[] = [];
  let pending = false;
  const changes = dryRun ? null : openFolder();

  function openFolder(): ChangesWriter {
    mkdirSync(folder, { recursive: true });
    return openChanges(folder, builtAt, join(out, CARRIED));
  }

  const send = async () => {
    const { items, ends, ...answers } = load.take();
    const before = waiting.at(-1);
    const written = writers.write({ ...place, ...answers, ends });
    // Noted in the order in which they were put, whichever thread is done first.
    const noted = Promise.all([written, before]).then(([outcomes]) => {
      for (const [index, { address, note }] of items.entries()) {
        note(address, (ends[index] as number) - (ends[index - 1] ?? 0), outcomes[index] as Written[number]);
      }
    });
    noted.catch(() => {});
    waiting.push(noted);
    if (waiting.length > MAX_WAITING) await waiting.shift();
  };

  function openApp(key: string): StagedApp {
    const root = folderOf(key);
    const tally: Tally = { looked: 0, size: 0, added: 0, changed: 0, gone: 0, bytes: 0 };
    const note = (change: Change["change"], file: string, address: Address | null) => {
      tally[change] += 1;
      pending = true;
      const type = address === null || address.kind === "catalog" ? null : address.slug;
      const request = address === null ? null : requestOf(address);
      const noted = { change, app: key, type, request, file };
      changes?.add(noted);
      onChange(noted);
    };
    const noteWritten: Put["note"] = (address, size, { outcome, before }) => {
      if (outcome === "same") return;
      tally.bytes += size - before;
      note(outcome, `${root}/${fileOf(address)}`, address);
    };
    const remove = (file: string, address: Address | null) => {
      const size = sizeOf(join(out, file));
      if (size === null) return;
      tally.bytes -= size;
      note("gone", file, address);
    };
    const write = async (address: Address, body: string | Uint8Array, standing: Standing) => {
      const file = `${root}/${fileOf(address)}`;
      const size = load.add(file, body, standing, { address, note: noteWritten });
      tally.looked += 1;
      tally.size += size;
      onFile(size);
      if (load.isFull()) await send();
    };
    const put = async (rewrites: readonly Rewrite[], compare: boolean, kept: Kept | null = null) => {
      for (const { address, body, replaces } of rewrites) {
        kept?.add(fileOf(address));
        if (body !== null) await write(address, body, replaces ?? (compare ? "unknown" : "none"));
        else {
          remove(`${root}/${fileOf(address)}`, address);
          onFile(0);
        }
      }
    };
    const keep = (state: string | null) => {
      if (dryRun) return;
      pending = true;
      mkdirSync(join(folder, STAGED_STATES), { recursive: true });
      writeFileSync(join(folder, STAGED_STATES, `${segment(key)}.json`), state ?? "");
    };
    return { tally, put, remove, keep };
  }

  const settle = async () => {
    if (!load.isEmpty()) await send();
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next;
  };
  const commit = () => {
    if (changes === null) return;
    changes.close();
    commitStage(out);
    publish(out);
  };
  const close = async () => {
    await writers.close();
    if (!dryRun) rmSync(folder, { recursive: true, force: true });
  };
  return { openApp, settle, isPending: () => pending, commit, close };
}

/** What is kept of an answer until it is written: many wait at once. */
type Put = {
  readonly address: Address;
  readonly note: (address: Address, size: number, written: Written[number]) => void;
};
