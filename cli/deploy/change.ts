/**
 * Carries out a plan, in an order in which no link ever leads to a missing file: writes the journal, uploads files,
 * replaces the manifest, and deletes old files. If a step fails, the error says how far the deploy got.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { tagsOf } from "../../shared/api/answer.ts";
import { runConcurrently } from "../../shared/async.ts";
import { digestOf, isStatePath, keysByFolder, ownerOf } from "../../shared/tree.ts";
import type { FileProgress } from "../builder/build.ts";
import { describeFailure } from "../errors.ts";
import {
  type Checkpoints,
  JOURNAL,
  journalOf,
  openCheckpoints,
  type StoreChange,
  unpurgedIn,
  writeJournal,
  writeOwed,
} from "./journal.ts";
import { UnfinishedTreeError } from "./local-tree.ts";
import { MANIFEST, type PlannedFile, type UploadOptions, writeManifest } from "./manifest.ts";
import { type FileHeaders, PRIVATE_HEADERS, putPrivateFile, type Store } from "./store.ts";

export type StoreChangeOptions = UploadOptions & {
  readonly out: string;
  readonly concurrency: number;
  /** Number of uploaded files after which a checkpoint is written. */
  readonly filesPerCheckpoint?: number | undefined;
  /** Called before each try of a write. Throws when nothing more may be sent: on a stop signal or a lost lock. */
  readonly throwIfStopped: () => void;
  readonly onProgress?: ((progress: FileProgress) => void) | undefined;
};

/** Whether the store honours conditional writes (`If-Match`, `If-None-Match`). */
type Conditional = { readonly conditional: boolean };

type Work = StoreChange & {
  readonly store: Store;
  readonly options: StoreChangeOptions & Conditional;
  readonly done: { files: number; bytes: number; deleted: number };
  readonly checkpoints: Checkpoints;
};

/** A checkpoint costs two requests (write, delete). An interruption loses the uploads since the last one: seconds. */
const FILES_PER_CHECKPOINT = 1_000;

/** A deploy failed. The message says why, and how far the deploy got. */
export class DeployError extends Error {
  constructor(cause: unknown, explanation: string) {
    super(`${describeFailure(cause)}\n${explanation}`, { cause });
    this.name = "DeployError";
  }
}

/** Returns the number of checkpoint files that this deploy has written. Throws DeployError. */
export async function changeStore(
  store: Store,
  change: StoreChange,
  options: StoreChangeOptions & Conditional,
): Promise<number> {
  const done = { files: 0, bytes: 0, deleted: 0 };
  const { plan, deploy } = change;
  const { filesPerCheckpoint = FILES_PER_CHECKPOINT, throwIfStopped } = options;
  const checkpoints = openCheckpoints(store, { deploy, filesPerCheckpoint, throwIfStopped });
  const work: Work = { store, options, done, checkpoints, ...change };
  const [writes, removes] = [plan.writes.flat().length, plan.removes.flat().length];
  const again = "Run the deploy again";
  await explainFailure(`Nothing was changed. ${again}.`, () => beginJournal(work));
  await explainFailure(
    () => `${done.files} of ${writes} files were uploaded, and nothing was deleted. ${again}: ${restOf(work)}.`,
    () => upload(work),
  );
  await explainFailure(
    () =>
      `All ${writes} files were uploaded; the manifest was not replaced, and nothing was deleted. ${again}: ${restOf(work)}.`,
    () => replaceManifest(work),
  );
  await explainFailure(
    () =>
      `All ${writes} files were uploaded; ${done.deleted} of ${removes} were deleted. ${again}: it deletes the rest.`,
    async () => {
      await removeOld(work);
      if (change.purging && removes > 0)
        await writeOwed(store, change, unpurgedIn(journalOf(change)), options.throwIfStopped);
    },
  );
  return checkpoints.progress().checkpointCount;
}

function restOf({ checkpoints }: Work): string {
  const { files } = checkpoints.progress();
  return files === 0 ? "it uploads all of them" : `it does not upload ${files} of them again`;
}

export async function explainFailure<T>(explanation: string | (() => string), run: () => Promise<T>): Promise<T> {
  return run().catch((error: unknown) => {
    throw new DeployError(error, typeof explanation === "string" ? explanation : explanation());
  });
}

/** Writes the journal. From here on, a later deploy does not trust the manifest for the files in it. */
async function beginJournal(work: Work): Promise<void> {
  await replacePrivateFile(work, JOURNAL, writeJournal(journalOf(work)), work.before.etags.journal);
}

async function upload(work: Work): Promise<void> {
  const { plan, options, done } = work;
  const total = plan.writes.flat().length;
  const apps = keysByFolder(work.tree.apps);
  for (const step of plan.writes) {
    await runConcurrently(step, options.concurrency, async (file) => {
      await uploadFile(work, file, isStatePath(file.path) ? PRIVATE_HEADERS : headersOf(file.path, apps, options));
      done.files += 1;
      done.bytes += file.size;
      options.onProgress?.({ done: done.files, total, bytes: done.bytes });
      await work.checkpoints.add(file.path, { sha256: file.sha256, size: file.size });
    });
  }
}

function headersOf(
  path: string,
  apps: ReadonlyMap<string, string>,
  { cacheControl, cdnCacheControl }: UploadOptions,
): FileHeaders {
  const { app, type } = ownerOf(path, apps);
  return { cacheControl, cdnCacheControl, tags: app === null ? [] : tagsOf(app, type) };
}

async function uploadFile(work: Work, { path, sha256 }: PlannedFile, headers: FileHeaders): Promise<void> {
  const bytes = readPlanned(work.options.out, path, sha256);
  await work.store.put(path, bytes, { headers, sha256, throwIfStopped: work.options.throwIfStopped });
}

/** Throws UnfinishedTreeError when the file is not the scanned one any more: a deploy must not mix two builds. */
function readPlanned(out: string, path: string, sha256: string): Uint8Array<ArrayBuffer> {
  try {
    const bytes = readFileSync(join(out, path));
    if (digestOf(bytes).sha256 === sha256) return bytes;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  throw new UnfinishedTreeError(`A build changed ${out} during the deploy.`);
}

async function replaceManifest(work: Work): Promise<void> {
  const { tree, before, generation, options } = work;
  const { cacheControl, cdnCacheControl } = options;
  const { apps, files } = tree;
  const text = writeManifest({ generation, cacheControl, cdnCacheControl, apps, files });
  await replacePrivateFile(work, MANIFEST, text, before.etags.manifest);
}

/** `etag` is that of the version that this deploy has read, null if there was none. Throws if it was replaced since. */
async function replacePrivateFile(work: Work, key: string, text: string, etag: string | null): Promise<void> {
  const { store, options } = work;
  const condition = etag === null ? ({ kind: "absent" } as const) : ({ kind: "etag", etag } as const);
  const { kind } = await putPrivateFile(store, key, text, {
    condition: options.conditional ? condition : undefined,
    throwIfStopped: options.throwIfStopped,
  });
  if (kind === "put") return;
  // An earlier try may have succeeded although its response was lost.
  if ((await store.get(key))?.bytes.equals(Buffer.from(text))) return;
  throw new Error(`Another deploy replaced ${key} in ${store.name} during this one.`);
}

async function removeOld(work: Work): Promise<void> {
  const { store, plan, options, done } = work;
  for (const step of plan.removes) {
    await runConcurrently(step, options.concurrency, async (path) => {
      await store.remove(path, options.throwIfStopped);
      done.deleted += 1;
    });
  }
}
