/**
 * Puts a finished build in place: a stage that is complete gets the name `ready`, and from then on the build is done, come
 * what may. Each step can be taken again, so a build that dies here is finished by the next.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CHANGES_FILE, STATE_FOLDER } from "../../../shared/state.ts";
import { breathe } from "./breath.ts";
import { type Change, ownChanges } from "./changes.ts";
import { exists, isFolder, isOtherDisk, moveInto, removeAll, removeFrom } from "./folder.ts";
import { openReplaced, putAside } from "./trash.ts";

/** Where a build writes, and what that is called once it is complete; relative to the tree. */
export const STAGE = `${STATE_FOLDER}/stage`;
export const READY = `${STATE_FOLDER}/ready`;
const TOLD = `${STATE_FOLDER}/${CHANGES_FILE}`;
/** The changes that are made and not told yet. */
export const CARRIED = `${STATE_FOLDER}/carried.json`;

/** Below a stage: the new files of the tree, and the new states of the apps. An app that is gone has an empty one. */
export const STAGED_TREE = "tree";
export const STAGED_STATES = "states";

/** From here on the build is done. */
export function commitStage(out: string): void {
  renameSync(join(out, STAGE), join(out, READY));
}

function isPending(out: string): boolean {
  return exists(join(out, READY, CHANGES_FILE));
}

/**
 * Finishes what a build that died had committed, and puts aside what one had not. `died` is whether the last build ended
 * before it could tell its changes.
 */
export async function recover(out: string, died: boolean, check: () => void): Promise<void> {
  const [told, carried] = [join(out, TOLD), join(out, CARRIED)];
  if (died && !exists(carried) && exists(told)) renameSync(told, carried);
  if (isPending(out)) await publish(out, check);
  putAsideBegun(out);
}

/** What a build that died has left of its own: of no use to a tree that it does not belong to. */
export function putAsideBegun(out: string): void {
  for (const folder of [STAGE, READY]) if (exists(join(out, folder))) putAside(out, folder);
}

/** The last thing of a build: whoever reads the changes finds them true. */
export function tellChanges(out: string): void {
  if (exists(join(out, CARRIED))) renameSync(join(out, CARRIED), join(out, TOLD));
}

/** Puts the committed build in place. `check` throws where another does by now. */
export async function publish(out: string, check: () => void): Promise<void> {
  const ready = join(out, READY);
  const replaced = openReplaced(out);
  const moved = await moveFolders(join(ready, STAGED_TREE), out);
  const made = new Set<string>();
  const present = new Set<(typeof STEPS)[number]>();
  for await (const change of ownChanges(ready, moved)) present.add(stepOf(change));
  for (const step of STEPS) {
    check();
    if (step === "state") await moveStates(ready, out);
    if (present.has(step)) {
      for await (const change of ownChanges(ready, moved)) {
        if (stepOf(change) !== step) continue;
        if (change.change === "gone") removeFrom(out, change.file);
        else {
          if (step === "changed") replaced.hold(join(out, change.file));
          moveInto(out, change.file, join(ready, STAGED_TREE, change.file), made);
          await replaced.release();
        }
      }
    }
  }
  await replaced.settle();
  check();
  renameSync(join(ready, CHANGES_FILE), join(out, CARRIED));
  await removeAll(ready);
}

/**
 * In this order nobody who reads meanwhile follows a link into nothing: entries come before the lists that name them, new
 * pages before the first, which tells the last, and the catalog late; what goes does so the other way round.
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

/** A type may be called so, too. */
const ENTRY = /^[^/]+\/v1\/[^/]+\/entry\//;

function stepOf({ change, type, file }: Change): (typeof STEPS)[number] {
  const isEntry = ENTRY.test(file);
  if (change === "added") return isEntry ? "new entry" : "new list";
  if (change === "changed") return "changed";
  if (isEntry) return "old entry";
  if (file.includes("/_schemas")) return type === null ? "old catalog" : "old schema";
  return file.endsWith("/page/1.json") ? "old first page" : "old list";
}

/** Folders of apps and types that the tree lacks are moved whole. Gives the apps' that were. */
async function moveFolders(staged: string, out: string): Promise<ReadonlySet<string>> {
  const moved = new Set<string>();
  for (const app of foldersIn(staged)) {
    await breathe();
    for (const version of foldersIn(join(staged, app))) {
      const [from, to] = [join(staged, app, version), join(out, app, version)];
      if (moveWhole(from, to)) moved.add(`${app}/${version}`);
      else for (const type of foldersIn(from)) moveWhole(join(from, type), join(to, type));
    }
  }
  return moved;
}

function moveWhole(from: string, to: string): boolean {
  if (exists(to) || (exists(dirname(to)) && !isFolder(dirname(to)))) return false;
  mkdirSync(dirname(to), { recursive: true });
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    // Its files are, one by one.
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

/** The server reads the state to know an app's types: it comes after the files it speaks of and before they go. */
async function moveStates(ready: string, out: string): Promise<void> {
  const folder = join(ready, STAGED_STATES);
  if (!exists(folder)) return;
  for (const name of readdirSync(folder)) {
    const [from, to] = [join(folder, name), join(out, STATE_FOLDER, basename(name))];
    if (statSync(from).size > 0) renameSync(from, to);
    else rmSync(to, { force: true });
    await breathe();
  }
}
