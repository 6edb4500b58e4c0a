/**
 * Carries out the plan of an app, in an order in which no link ever leads to a missing file: writes the journal, uploads
 * files, replaces the manifest, and deletes old files. If a step fails, the error says how far the deploy got.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTags } from "../../shared/api/answer.ts";
import { runConcurrently } from "../../shared/async.ts";
import { digestBytes, namePrivateFile } from "../../shared/tree.ts";
import { findOwner, isStatePath, keysByFolder } from "../../shared/tree-file.ts";
import { describeFailure } from "../errors.ts";
import { UnfinishedTreeError } from "./local-tree.ts";
import {
  type Journal,
  type StoreContents,
  type UploadOptions,
  unpurgedIn,
  writeJournal,
  writeManifest,
} from "./manifest.ts";
import { type Plan, type PlannedFile, touchedBy, unpurgedFor } from "./plan.ts";
import { PRIVATE_HEADERS, putPrivateFile, type Store, type StoreLock } from "./store.ts";

export type ChangeOptions = UploadOptions & {
  readonly out: string;
  readonly concurrency: number;
  /** Number of uploaded files after which the journal is marked. */
  readonly filesPerMark?: number | undefined;
  /** Called before each try of a write. Throws when nothing more may be sent: on a stop signal or a lost lock. */
  readonly throwIfStopped: () => void;
  /** Called for each uploaded file with its size. */
  readonly onUpload?: ((bytes: number) => void) | undefined;
};

/** A deploy failed. The message says why, and how far the deploy got. */
class DeployError extends Error {
  constructor(cause: unknown, explanation: string) {
    super(`${describeFailure(cause)}\n${explanation}`, { cause });
    this.name = "DeployError";
  }
}

export async function explainFailure<T>(explanation: string | (() => string), run: () => Promise<T>): Promise<T> {
  return run().catch((error: unknown) => {
    throw new DeployError(error, typeof explanation === "string" ? explanation : explanation());
  });
}

export type Change = {
  readonly store: Store;
  readonly plan: Plan;
  readonly options: ChangeOptions;
  readonly before: StoreContents;
  /**
   * Whether the store has to change at all. This can be true for an empty plan: the manifest may lack files that an
   * interrupted deploy uploaded.
   */
  readonly hasChanges: boolean;
  /** The journal that the deploy begins with. */
  readonly journal: Journal;
  readonly conditional: boolean;
  readonly filesPerMark: number;
  /** Of manifest and journal, as this deploy has last read or written them. */
  readonly etags: { manifest: string | null; journal: string | null };
  readonly done: { files: number; marked: number; deleted: number };
};

/**
 * An interruption loses the uploads since the last mark. A mark writes the whole journal, so there are no more than ten
 * of them.
 */
const FILES_PER_MARK = 1_000;
const MOST_MARKS = 10;

/** Whether files or the manifest of the app have to change. */
export function needsChange({ writes, removes }: Plan, { uploaded }: StoreContents): boolean {
  return writes.length + removes.length + uploaded.size > 0;
}

export function prepareChange(
  store: Store,
  lock: StoreLock,
  plan: Plan,
  before: StoreContents,
  options: ChangeOptions,
  purging: boolean,
): Change {
  const planned = plan.writes.flat();
  const hasChanges = needsChange(plan, before);
  const { manifest, journal: earlier } = before;
  const touched = new Set(touchedBy(plan));
  // Uploads of interrupted deploys that still count: the manifest lists them only once this deploy has replaced it.
  const uploaded = [...before.uploaded].filter(([path]) => !touched.has(path));
  const writes = planned.map(({ path, sha256, size }) => [path, { sha256, size }] as const);
  const journal: Journal = {
    generation: Math.max(manifest?.generation ?? 0, earlier?.generation ?? 0) + (hasChanges ? 1 : 0),
    deploy: randomUUID(),
    cacheControl: options.cacheControl,
    cdnCacheControl: options.cdnCacheControl,
    writes: new Map([...uploaded, ...writes]),
    uploaded: uploaded.length,
    removes: plan.removes.flat(),
    purging,
    purges: unpurgedFor(plan, before, purging),
    app: plan.key,
  };
  const throwIfStopped = () => {
    options.throwIfStopped();
    lock.check();
  };
  return {
    ...{ store, plan, before, hasChanges, journal, conditional: lock.conditional },
    options: { ...options, throwIfStopped },
    filesPerMark: options.filesPerMark ?? Math.max(FILES_PER_MARK, Math.ceil(planned.length / MOST_MARKS)),
    etags: { ...before.etags },
    done: { files: 0, marked: 0, deleted: 0 },
  };
}

/** Throws DeployError. */
export async function changeStore(change: Change): Promise<void> {
  const { plan, done, journal } = change;
  const [writes, removes] = [plan.writes.flat().length, plan.removes.flat().length];
  const again = "Run the deploy again";
  const all = `All ${writes} files of ${nameApp(plan)} were uploaded`;
  const rest = () => (done.marked === 0 ? "it uploads all of them" : `it does not upload ${done.marked} of them again`);
  // From here on, a later deploy does not trust the manifest for the files in the journal.
  await explainFailure(`Nothing of ${nameApp(plan)} was changed. ${again}.`, () => replaceJournal(change, journal));
  await explainFailure(
    () =>
      `${done.files} of ${writes} files of ${nameApp(plan)} were uploaded, and nothing was deleted. ${again}: ${rest()}.`,
    () => upload(change),
  );
  await explainFailure(
    () => `${all}; the manifest was not replaced, and nothing was deleted. ${again}: ${rest()}.`,
    () => replaceManifest(change),
  );
  await explainFailure(
    () => `${all}; ${done.deleted} of ${removes} were deleted. ${again}: it deletes the rest.`,
    async () => {
      await removeOld(change);
      if (journal.purging && removes > 0) await leaveOwed(change, unpurgedIn(journal));
    },
  );
}

function nameApp({ key, appFolder }: Plan): string {
  return key ?? appFolder;
}

async function upload(change: Change): Promise<void> {
  const { plan, journal, options, filesPerMark, done } = change;
  const apps = keysByFolder(plan.key === null ? [] : [plan.key]);
  for (const step of plan.writes) {
    for (let next = 0; next < step.length; ) {
      const untilMark = step.slice(next, next + filesPerMark - (done.files - done.marked));
      await runConcurrently(untilMark, options.concurrency, async (file) => {
        await uploadFile(change, file, apps);
        done.files += 1;
        options.onUpload?.(file.size);
      });
      next += untilMark.length;
      if (done.files - done.marked < filesPerMark) continue;
      await replaceJournal(change, { ...journal, uploaded: journal.uploaded + done.files });
      done.marked = done.files;
    }
  }
}

async function uploadFile(
  { store, options }: Change,
  { path, sha256 }: PlannedFile,
  apps: ReadonlyMap<string, string>,
): Promise<void> {
  const { out, cacheControl, cdnCacheControl, throwIfStopped } = options;
  const { app, type } = findOwner(path, apps);
  const tags = app === null ? [] : makeTags(app, type);
  const headers = isStatePath(path) ? PRIVATE_HEADERS : { cacheControl, cdnCacheControl, tags };
  await store.put(path, readPlanned(out, path, sha256), { headers, sha256, throwIfStopped });
}

/** Throws UnfinishedTreeError when the file is not the scanned one any more: a deploy must not mix two builds. */
function readPlanned(out: string, path: string, sha256: string): Uint8Array<ArrayBuffer> {
  try {
    const bytes = readFileSync(join(out, path));
    if (digestBytes(bytes).sha256 === sha256) return bytes;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  throw new UnfinishedTreeError(`A build changed ${out} during the deploy.`);
}

/** The manifest of an app that is gone goes as the last of its files. */
async function replaceManifest(change: Change): Promise<void> {
  const { generation, cacheControl, cdnCacheControl } = change.journal;
  const { app } = change.plan;
  if (app === null) return;
  const text = writeManifest({ generation, cacheControl, cdnCacheControl, app: app.key, files: app.files });
  await replacePrivateFile(change, "manifest", text);
}

async function removeOld({ store, plan, options, done }: Change): Promise<void> {
  for (const step of plan.removes) {
    await runConcurrently(step, options.concurrency, async (path) => {
      await store.remove(path, options.throwIfStopped);
      done.deleted += 1;
    });
  }
  if (plan.app === null) await store.remove(namePrivateFile(plan.appFolder, "manifest.json"), options.throwIfStopped);
}

/**
 * The last step of a deploy: removes the journal. A deploy that does not purge leaves one if earlier deploys owe a purge:
 * the next deploy that purges makes up for it.
 */
export async function endJournal(change: Change): Promise<void> {
  const { store, plan, options, before, hasChanges } = change;
  const { purging, purges } = change.journal;
  if (purging || purges.length === 0) {
    if (before.journal !== null || hasChanges)
      await store.remove(namePrivateFile(plan.appFolder, "journal.json"), options.throwIfStopped);
  } else if (hasChanges) {
    await leaveOwed(change, purges);
  }
}

/** Replaces the journal with one that lists nothing but paths to purge: all uploads and deletions are done. */
function leaveOwed(change: Change, purges: readonly string[]): Promise<void> {
  return replaceJournal(change, { ...change.journal, writes: new Map(), uploaded: 0, removes: [], purges });
}

function replaceJournal(change: Change, journal: Journal): Promise<void> {
  return replacePrivateFile(change, "journal", writeJournal(journal));
}

/** Throws when another deploy has replaced the file since this one has read or written it. */
async function replacePrivateFile(change: Change, name: "manifest" | "journal", text: string): Promise<void> {
  const { store, plan, options, conditional, etags } = change;
  const [key, etag] = [namePrivateFile(plan.appFolder, `${name}.json`), etags[name]];
  const condition = etag === null ? ({ kind: "absent" } as const) : ({ kind: "etag", etag } as const);
  const outcome = await putPrivateFile(store, key, text, {
    condition: conditional ? condition : undefined,
    throwIfStopped: options.throwIfStopped,
  });
  if (outcome.kind === "put") {
    etags[name] = outcome.etag;
    return;
  }
  // An earlier try may have succeeded although its response was lost.
  const stored = await store.get(key);
  if (stored === null || !stored.bytes.equals(Buffer.from(text)))
    throw new Error(`Another deploy replaced ${key} in ${store.name} during this one.`);
  etags[name] = stored.etag;
}
