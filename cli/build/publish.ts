/**
 * Puts a finished build in place: a stage that is complete gets the name `ready`, and from then on the build is done, come
 * what may. Each step can be taken again, so a build that dies here is finished by the next.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { STATE_FOLDER } from "../../shared/state.ts";
import { CHANGES_FILE, readChanges } from "./changes.ts";
import { exists, isFolder, moveInto, removeFrom } from "./folder.ts";

/** Where a build writes, and what that is called once it is complete; relative to the tree. */
export const STAGE = `${STATE_FOLDER}/stage`;
const READY = `${STATE_FOLDER}/ready`;

/** Below a stage: the new files of the tree, and the new states of the apps. An app that is gone has an empty one. */
export const STAGED_TREE = "tree";
export const STAGED_STATES = "states";

/** From here on the build is done. */
export function commitStage(out: string): void {
  renameSync(join(out, STAGE), join(out, READY));
}

export function isPending(out: string): boolean {
  return exists(join(out, READY, CHANGES_FILE));
}

/** Finishes what a build that died had committed, and forgets what one had not. */
export function recover(out: string): void {
  rmSync(join(out, STAGE), { recursive: true, force: true });
  if (isPending(out)) publish(out);
  else rmSync(join(out, READY), { recursive: true, force: true });
}

/**
 * Entries come before the lists that name them, those before the catalog, and what is gone goes last: nobody who reads
 * meanwhile follows a link into nothing. The changes are in that order.
 */
export function publish(out: string): void {
  const ready = join(out, READY);
  const moved = moveFolders(join(ready, STAGED_TREE), out);
  const made = new Set<string>();
  let statesMoved = false;
  for (const { change, file } of readChanges(ready, moved)) {
    if (change === "gone") {
      if (!statesMoved) moveStates(ready, out);
      statesMoved = true;
      removeFrom(out, file);
    } else moveInto(out, file, join(ready, STAGED_TREE, file), made);
  }
  if (!statesMoved) moveStates(ready, out);
  renameSync(join(ready, CHANGES_FILE), join(out, STATE_FOLDER, CHANGES_FILE));
  rmSync(ready, { recursive: true, force: true });
}

/** Folders of apps and types that the tree lacks are moved whole. Gives the apps' that were. */
function moveFolders(staged: string, out: string): ReadonlySet<string> {
  const moved = new Set<string>();
  for (const app of foldersIn(staged)) {
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
  renameSync(from, to);
  return true;
}

function foldersIn(folder: string): string[] {
  if (!exists(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** The server reads the state to know an app's types: it comes after the files it speaks of and before they go. */
function moveStates(ready: string, out: string): void {
  const folder = join(ready, STAGED_STATES);
  if (!exists(folder)) return;
  for (const name of readdirSync(folder)) {
    const [from, to] = [join(folder, name), join(out, STATE_FOLDER, basename(name))];
    if (statSync(from).size > 0) renameSync(from, to);
    else rmSync(to, { force: true });
  }
}
