/**
 * Moves a finished build into the tree. Renaming the complete stage to `ready` commits the build. Each later step can
 * be repeated, so a build that dies after the commit is completed by the next; one that died earlier is discarded, and a
 * damaged tree is no longer trusted.
 */
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  exists,
  isFolder,
  isLink,
  isOtherDisk,
  makeFolders,
  moveInto,
  removeAll,
  removeEmpty,
  removeFrom,
  yieldToEventLoop,
} from "../../shared/files.ts";
import { CHANGES_FILE, findTopFolder, READY, REMOTE_FILE, STATE_FOLDER, stateFilesIn } from "../../shared/tree.ts";
import { type Change, isWholeList, ownChanges } from "./changes.ts";
import { readRemoteFiles } from "./remote.ts";

/** The folder into which a build writes, relative to the tree. */
export const STAGE = `${STATE_FOLDER}/stage`;
const REPORTED = `${STATE_FOLDER}/${CHANGES_FILE}`;
/** The list of changes that are in place but not reported yet. */
export const PENDING = `${STATE_FOLDER}/carried.json`;

/** Folders of a stage: new files of the tree, and new states of apps (an empty file for an app that is gone). */
export const STAGED_TREE = "tree";
export const STAGED_STATES = "states";

/** Commits the build: if the process dies from here on, the next build completes it. */
export function commitStage(out: string): void {
  renameSync(join(out, STAGE), join(out, READY));
}

/** Publishes the list of changes, as the last step: whoever reads the list finds all changes in place. */
export function reportChanges(out: string): void {
  if (exists(join(out, PENDING))) renameSync(join(out, PENDING), join(out, REPORTED));
}

/** Moves the committed build into the tree. `check` throws once another process has taken over the tree. */
export async function publish(out: string, check: () => void): Promise<void> {
  const ready = join(out, READY);
  const replaced = openReplaced(out);
  const moved = await moveFolders(join(ready, STAGED_TREE), out);
  const present = new Set<(typeof STEPS)[number]>();
  for await (const change of ownChanges(ready, moved)) present.add(chooseStep(change));
  for (const step of STEPS) {
    check();
    if (step === "state") await moveStates(ready, out);
    if (present.has(step)) {
      for await (const change of ownChanges(ready, moved)) {
        if (chooseStep(change) !== step) continue;
        if (change.change === "gone") removeFrom(out, change.file);
        else {
          if (step === "changed") replaced.hold(join(out, change.file));
          moveInto(out, change.file, join(ready, STAGED_TREE, change.file));
          await replaced.release();
        }
      }
    }
  }
  await replaced.settle();
  check();
  renameSync(join(ready, CHANGES_FILE), join(out, PENDING));
  await removeAll(ready);
}

/**
 * With this order, a client that reads meanwhile never follows a reference to a missing file: new entries come before
 * the lists that contain them, new pages before the first page, which contains the number of the last, and the catalog
 * late. Deletions come in the opposite order.
 */
const STEPS = [
  "new entry",
  "new list",
  "changed",
  "state",
  "old catalog",
  "old schema",
  "old first page",
  "old list",
  "old entry",
] as const;

/** Fixes the position in the path, because a type may be called `entry`, too. */
const ENTRY = /^[^/]+\/v1\/[^/]+\/entry\//;

function chooseStep({ change, type, file }: Change): (typeof STEPS)[number] {
  const isEntry = ENTRY.test(file);
  if (change === "added") return isEntry ? "new entry" : "new list";
  if (change === "changed") return "changed";
  if (isEntry) return "old entry";
  if (file.includes("/_schemas")) return type === null ? "old catalog" : "old schema";
  return file.endsWith("/page/1.json") ? "old first page" : "old list";
}

/**
 * Moves the folders of apps and types that the tree lacks as a whole, and any folder in whose place there is a link.
 * Returns those of apps, as `<app>/v1`.
 */
async function moveFolders(staged: string, out: string): Promise<ReadonlySet<string>> {
  const moved = new Set<string>();
  for (const app of foldersIn(staged)) {
    await yieldToEventLoop();
    for (const version of foldersIn(join(staged, app))) {
      const [from, to] = [join(staged, app, version), join(out, app, version)];
      if (moveWhole(from, to)) moved.add(`${app}/${version}`);
      else
        for (const type of foldersIn(from)) {
          if (!moveWhole(join(from, type), join(to, type))) replaceLinks(join(from, type), join(to, type));
        }
    }
  }
  return moved;
}

/** Looks only where folders may be: reading all names of entries would take long. */
function replaceLinks(from: string, to: string): void {
  for (const name of foldersIn(from)) {
    if (isLink(join(to, name))) moveWhole(join(from, name), join(to, name));
    else if (name === "filter") replaceLinks(join(from, name), join(to, name));
  }
}

function moveWhole(from: string, to: string): boolean {
  // Moving files to their places one by one would write them where the link leads.
  if (isLink(to)) unlinkSync(to);
  if (exists(to) || (exists(dirname(to)) && !isFolder(dirname(to)))) return false;
  makeFolders(dirname(to));
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    // On another disk, its files are moved one by one.
    if (isOtherDisk(error)) return false;
    throw error;
  }
}

function foldersIn(folder: string): string[] {
  if (!exists(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** The server learns an app's types from its state: it follows the new files, and precedes the deletion of old ones. */
async function moveStates(ready: string, out: string): Promise<void> {
  const folder = join(ready, STAGED_STATES);
  if (!exists(folder)) return;
  for (const name of readdirSync(folder)) {
    const [from, to] = [join(folder, name), join(out, STATE_FOLDER, name)];
    if (statSync(from).size > 0) renameSync(from, to);
    else rmSync(to, { force: true });
    await yieldToEventLoop();
  }
}

// What a build that died has left.

/**
 * Completes a build that died after its commit, and discards what one that died earlier has left. `died` is whether the
 * last holder of the build lock died: then it may not have reported its changes, and they stay pending.
 */
export async function recover(out: string, died: boolean, check: () => void): Promise<void> {
  const [reported, pending] = [join(out, REPORTED), join(out, PENDING)];
  if (died && !exists(pending) && exists(reported)) renameSync(reported, pending);
  if (exists(join(out, READY, CHANGES_FILE))) await publish(out, check);
  discardStages(out);
}

/** Moves the stage that a dead build has left, under either name, into the trash: the next build cannot use it. */
export function discardStages(out: string): void {
  for (const folder of [STAGE, READY]) if (exists(join(out, folder))) moveToTrash(out, folder);
}

/** Why the tree cannot be trusted, because a power failure has damaged a list; null when it can. */
export function findDamage(out: string): string | null {
  const list = join(out, READY, CHANGES_FILE);
  if (exists(list) && !isWholeList(list)) return "the list of changes of an interrupted build cannot be read";
  return readRemoteFiles(out) === null
    ? "the list of its files that exist only at the deploy target cannot be read"
    : null;
}

/**
 * Empties the states of all apps, so that the server answers live, deploys refuse the tree, and this build or a later one
 * builds each app in full. Removes the lists after that: if the process dies here, the tree is still not trusted.
 */
export async function resetDamagedTree(out: string): Promise<void> {
  const [folder, ready] = [join(out, STATE_FOLDER), join(out, READY)];
  for (const name of [folder, join(ready, STAGED_STATES)].flatMap(stateFilesIn)) {
    writeFileSync(join(folder, name), "");
    // The build that died may have deleted the last file of a folder, but not the folder.
    const appFolder = join(out, findTopFolder(name));
    if (isFolder(appFolder)) await removeEmpty(appFolder);
  }
  keepPending(join(ready, CHANGES_FILE), join(out, PENDING));
  if (readRemoteFiles(out) === null) rmSync(join(folder, REMOTE_FILE));
}

/** Keeps the changes of a damaged list for the next report: some may be in place, and none was reported. */
function keepPending(list: string, pending: string): void {
  if (!exists(list)) return;
  appendFileSync(pending, Buffer.concat([Buffer.from("\n"), readFileSync(list)]));
  rmSync(list);
}

// What a build throws away is collected in a folder of its own and deleted late: file systems write slowly where much has
// just been deleted, and rename slowly where each new file frees the blocks of an old one.

export const TRASH = `${STATE_FOLDER}/trash`;

/** An unused path in the trash, which may still hold files of a build that died. */
function freshName(out: string): string {
  const trash = join(out, TRASH);
  makeFolders(trash);
  return join(trash, randomUUID());
}

/** Number of files that are deleted concurrently, as one batch. */
const BATCH = 128;

/** Takes files that are about to be replaced. */
function openReplaced(out: string) {
  let folder: string | null = null;
  let held: string[] = [];
  let releasing: Promise<unknown> = Promise.resolve();
  let files = 0;

  /** Gives the file a hard link in the trash, so that replacing it frees no blocks. Has no effect where links fail. */
  const hold = (file: string) => {
    folder ??= freshFolder(out);
    const name = join(folder, String(files++));
    try {
      linkSync(file, name);
      held.push(name);
    } catch {
      // Without the link, the blocks are freed when the file is replaced.
    }
  };
  const releaseAll = async () => {
    const names = held;
    held = [];
    await releasing;
    // What could not be deleted is deleted with the whole trash, which reports the error.
    releasing = Promise.allSettled(names.map((name) => unlink(name)));
  };
  /** Deletes replaced files in other threads, a batch at a time. Waits only for the batch before. */
  const release = async () => {
    if (held.length >= BATCH) await releaseAll();
  };
  return { hold, release, settle: () => releaseAll().then(() => releasing) };
}

function freshFolder(out: string): string {
  const folder = freshName(out);
  mkdirSync(folder);
  return folder;
}

/** Moves a folder of the tree into the trash. A container cannot move a folder of its image, so that is deleted. */
function moveToTrash(out: string, folder: string): void {
  try {
    renameSync(join(out, folder), freshName(out));
  } catch (error) {
    if (!isOtherDisk(error)) throw error;
    rmSync(join(out, folder), { recursive: true, force: true });
  }
}

/** A link in the place of a folder that builds write to would lead out of the tree. */
export function removeLinks(out: string): void {
  for (const folder of [STAGE, READY, TRASH]) if (isLink(join(out, folder))) unlinkSync(join(out, folder));
}

export function emptyTrash(out: string): Promise<void> {
  return removeAll(join(out, TRASH));
}
