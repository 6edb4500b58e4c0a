/**
 * Takes the answers of a build and writes those that differ from the tree to a stage beside it. The tree itself changes
 * only once all are there, so a build that fails leaves it as it was.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { outputFileSync } from "fs-extra/esm";
import { type Address, nameFile, nameFolder, segment, writeRequest } from "../../shared/api/address.ts";
import { exists, makeFolders, readSize, removeAll } from "../../shared/files.ts";
import { CATALOG, type FileSizes } from "../../shared/tree.ts";
import { findOwner } from "../../shared/tree-file.ts";
import { type Change, type ChangesWriter, openChanges } from "./changes.ts";
import { commitStage, PENDING, publish, STAGE, STAGED_STATES, STAGED_TREE } from "./publish.ts";
import { type ExistingFile, openWriters, type WriteResults } from "./writers.ts";

export type Stage = ReturnType<typeof openStage>;
export type StagedApp = ReturnType<Stage["openApp"]>;

type StageOptions = {
  readonly out: string;
  readonly dryRun: boolean;
  /** Throws once the tree, and with it the stage, belongs to another build. */
  readonly check: () => void;
  readonly builtAt: string;
  /** Called for each file that is put, with the size of its answer; 0 for a file that is deleted. */
  readonly onFile: (bytes: number) => void;
  readonly onChange?: ((change: Change, size: ChangeSize) => void) | undefined;
};

/** In bytes: the file that is written, 0 when it is gone, and by how much the tree grows. */
export type ChangeSize = { readonly written: number; readonly growth: number };

/** Maximum number of batches that wait to be written, which bounds memory. */
const MAX_WAITING_BATCHES = 4;

export function openStage({ out, dryRun, check, builtAt, onFile, onChange }: StageOptions) {
  const folder = join(out, STAGE);
  const place = { tree: out, stage: dryRun ? null : join(folder, STAGED_TREE) };
  const writers = openWriters();
  const buffer = openAnswerBuffer(writers.buffer);
  const waiting: Promise<void>[] = [];
  /** Whether any file or state of the tree is to change. */
  let hasChanges = false;
  const changes = dryRun ? null : openFolder();

  function openFolder(): ChangesWriter {
    makeFolders(folder);
    return openChanges(folder, builtAt, join(out, PENDING));
  }

  const send = async () => {
    check();
    const { items, ends, ...answers } = buffer.take();
    const before = waiting.at(-1);
    const written = writers.write({ ...place, ...answers, ends });
    // Outcomes are noted in the order in which the answers were put, whichever thread finishes first.
    const noted = Promise.all([written, before]).then(([outcomes]) => {
      check();
      for (const [index, { address, onWritten }] of items.entries()) {
        onWritten(address, (ends[index] as number) - (ends[index - 1] ?? 0), outcomes[index] as WriteResults[number]);
      }
    });
    noted.catch(() => {});
    waiting.push(noted);
    if (waiting.length > MAX_WAITING_BATCHES) await waiting.shift();
  };

  /**
   * One app on the stage: reports and counts what becomes of its answers. The files in the folders `ignored`, relative to
   * that of the app, count as absent.
   */
  const openApp = (key: string, ignored: readonly string[] = []) => {
    const root = nameFolder(key);
    const isIgnored = (file: string) => ignored.some((folder) => file.startsWith(`${folder}/`));
    /**
     * What the build did to the files of the app, final once the stage is settled: how many it changed, the size of the
     * answers that were put, and by how much the folder grew.
     */
    const tally = { added: 0, changed: 0, gone: 0, put: openSizes(), growth: openSizes() };

    const recordChange = (change: Change["change"], file: string, address: Address | null, size: ChangeSize) => {
      tally[change] += 1;
      hasChanges = true;
      const type = address === null ? null : findType(address);
      const recorded = { change, app: key, type, request: address === null ? null : writeRequest(address), file };
      changes?.add(recorded);
      onChange?.(recorded, size);
    };
    const onWritten: PendingAnswer["onWritten"] = (address, size, { outcome, replacedSize }) => {
      if (outcome === "same") return;
      tally.growth.add(findType(address), outcome === "added" ? 1 : 0, size - replacedSize);
      recordChange(outcome, `${root}/${nameFile(address)}`, address, { written: size, growth: size - replacedSize });
    };
    /** Deletes a file, given relative to the tree. `address` is null when no request for the file is known. */
    const remove = (file: string, address: Address | null) => {
      const size = readSize(join(out, file));
      if (size === null) return;
      tally.growth.add(address === null ? findOwner(file, NO_APPS).type : findType(address), -1, -size);
      recordChange("gone", file, address, { written: 0, growth: -size });
    };
    /** `compare` is false when the tree has none of the files yet. `onPath` is called with the path of each, in the app. */
    const put = async (rewrites: Iterable<Rewrite>, compare: boolean, onPath?: (path: string) => void) => {
      for (const { address, body, replacedSize } of rewrites) {
        const file = nameFile(address);
        onPath?.(file);
        if (body === null) {
          remove(`${root}/${file}`, address);
          onFile(0);
          continue;
        }
        const existing = replacedSize ?? (compare && !isIgnored(file) ? "unknown" : "none");
        const size = buffer.add(`${root}/${file}`, body, existing, { address, onWritten });
        onFile(size);
        if (buffer.isFull()) await send();
        tally.put.add(findType(address), 1, size);
      }
    };
    /** Stages the app's new state, or null when the app is gone. */
    const stageState = (state: string | null) => {
      hasChanges = true;
      if (dryRun) return;
      check();
      outputFileSync(join(folder, STAGED_STATES, `${segment(key)}.json`), state ?? "");
    };
    return { tally, put, remove, stageState };
  };
  /** Resolves when everything that was put is on the stage. */
  const settle = async () => {
    if (!buffer.isEmpty()) await send();
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next;
  };
  /** Moves the staged files into the tree. */
  const commit = async () => {
    if (changes === null) return;
    await changes.close();
    check();
    commitStage(out);
    await publish(out, check);
  };
  /** Ends the writers and deletes what was not committed. */
  const close = async () => {
    await writers.close();
    if (dryRun) return;
    check();
    await removeAll(folder);
  };
  return { openApp, settle, hasChanges: () => hasChanges, commit, close };
}

const NO_APPS: ReadonlyMap<string, string> = new Map();

/** The slug of the type that a file belongs to; null for the catalog. */
function findType(address: Address): string | null {
  return address.kind === "catalog" ? null : address.slug;
}

/** Sums the number of files and their bytes by type. */
function openSizes() {
  const sizes = new Map<string, { files: number; bytes: number }>();
  const add = (type: string | null, files: number, bytes: number) => {
    const size = sizes.get(type ?? CATALOG) ?? { files: 0, bytes: 0 };
    sizes.set(type ?? CATALOG, size);
    size.files += files;
    size.bytes += bytes;
  };
  return { add, sizes: sizes as ReadonlyMap<string, FileSizes> };
}

/** Number of attempts to remove a stage to which other threads may be writing what they were given before. */
const ATTEMPTS = 10;

/** Removes the stage of a build that is ended, at once. What is committed stays: the next build completes it. */
export function removeStage(out: string): void {
  const stage = join(out, STAGE);
  for (let attempt = 0; attempt < ATTEMPTS && exists(stage); attempt++) {
    try {
      rmSync(stage, { recursive: true, force: true });
    } catch {
      // A thread has just written a file to a folder that was empty.
    }
  }
}

/** A file to write, or to delete when `body` is null. */
export type Rewrite = {
  readonly address: Address;
  /** Text, or its bytes in UTF-8. */
  readonly body: string | Uint8Array | null;
  /** Size in bytes of the file that it replaces, when that is known to differ. */
  readonly replacedSize?: number | undefined;
};

/** What is kept of an answer until it is written: as little as possible, because many wait at once. */
type PendingAnswer = {
  readonly address: Address;
  readonly onWritten: (address: Address, size: number, written: WriteResults[number]) => void;
};

// Gathers answers in one buffer until there are enough to hand over to the writers.

const MAX_FILES = 500;
const MAX_BYTES = 1 << 20;
/** With which the first batch begins, which is the only one of most updates: it grows when it must. */
const FIRST_BYTES = 1 << 14;
/** Maximum number of UTF-8 bytes for one UTF-16 code unit of a JavaScript string. */
const BYTES_PER_UNIT = 3;

const encoder = new TextEncoder();

/** `bufferOf` returns a buffer of at least `size` bytes. What `take` returns is a batch without its folders. */
function openAnswerBuffer(bufferOf: (size: number) => Uint8Array<ArrayBuffer>) {
  const fresh = (bytes: Uint8Array<ArrayBuffer>) => ({
    items: [] as PendingAnswer[],
    paths: [] as string[],
    existing: [] as ExistingFile[],
    ends: [] as number[],
    bytes,
  });
  let buffered = fresh(new Uint8Array(FIRST_BYTES));
  const used = () => buffered.ends.at(-1) ?? 0;

  /** Returns the size of the answer in bytes. */
  const add = (path: string, body: string | Uint8Array, existing: ExistingFile, item: PendingAnswer) => {
    const start = used();
    const needed = start + body.length * BYTES_PER_UNIT;
    if (buffered.bytes.length === 0) buffered.bytes = bufferOf(2 * MAX_BYTES);
    if (needed > buffered.bytes.length) buffered.bytes = enlarge(buffered.bytes, start, 2 * needed);
    const written = copyInto(buffered.bytes.subarray(start), body);
    buffered.items.push(item);
    buffered.paths.push(path);
    buffered.existing.push(existing);
    buffered.ends.push(start + written);
    return written;
  };
  const take = () => {
    const taken = buffered;
    // Not before it is needed: after the last batch it would be made for nothing.
    buffered = fresh(new Uint8Array(0));
    return taken;
  };
  const isFull = () => used() >= MAX_BYTES || buffered.paths.length >= MAX_FILES;
  return { add, take, isFull, isEmpty: () => buffered.paths.length === 0 };
}

function copyInto(bytes: Uint8Array, body: string | Uint8Array): number {
  if (typeof body === "string") return encoder.encodeInto(body, bytes).written;
  bytes.set(body);
  return body.length;
}

function enlarge(bytes: Uint8Array, used: number, size: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(size);
  larger.set(bytes.subarray(0, used));
  return larger;
}
