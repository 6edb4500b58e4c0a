/** Selects the apps that a command works on: apps of the database by key, and apps that a tree has. */
import { join } from "node:path";
import { isSegment, segment, textOfSegment } from "../../shared/address.ts";
import type { App } from "../../shared/catalog.ts";
import { isStateFile, readState, STATE_FOLDER, stateFileOf, type TreeState, topFolderOf } from "../../shared/state.ts";
import { isSourceOf, type Source } from "./source.ts";
import { isFolder, readText } from "./stage/file.ts";
import { namesIn } from "./stage/folder.ts";

export class UnknownAppError extends Error {
  constructor(keys: readonly string[], known: readonly string[]) {
    super(`No app has the key ${keys.join(", ")}. Apps in the database: ${known.join(", ") || "none"}.`);
    this.name = "UnknownAppError";
  }
}

/** The apps with these keys, or all for null. Throws UnknownAppError for a key that no app has. */
export function chooseApps(all: readonly App[], keys: readonly string[] | null): readonly App[] {
  if (keys === null) return all;
  const known = all.map((app) => app.key);
  const unknown = keys.filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new UnknownAppError(unknown, known);
  return all.filter((app) => keys.includes(app.key));
}

/** Keys of the apps of a tree whose state can be read, in byte order. */
export function builtAppKeys(out: string): string[] {
  return byKey(statesIn(out)).flatMap(({ key, state }) => (state === null ? [] : [key]));
}

/** The state that the last build of an app has left; null when there is none or it cannot be read. */
export function stateOf(out: string, key: string): TreeState | null {
  return readState(readText(join(out, stateFileOf(key))) ?? "");
}

/** An app that a tree has. `state` is null when there is none or it cannot be read. */
export type TreeApp = { readonly key: string; readonly state: TreeState | null };

/** All apps of a tree whose key is known, with or without a state, in byte order of their keys. */
export function appsOfTree(out: string): TreeApp[] {
  const states = statesIn(out);
  const known = states.map(({ key }) => (key === null ? "" : segment(key)));
  const stateless = unknownFoldersIn(out, known).map((name) => ({ key: textOfSegment(name), state: null }));
  return byKey([...states, ...stateless]);
}

/** Apps that the tree has and the database no longer has. */
export function removedApps(treeApps: readonly TreeApp[], all: readonly { readonly key: string }[]): TreeApp[] {
  return treeApps.filter(({ key }) => !all.some((app) => app.key === key));
}

/** `key` is null when the state cannot be read and the file name contains only a hash of the key. */
type FoundState = { readonly key: string | null; readonly state: TreeState | null };

function statesIn(out: string): FoundState[] {
  const folder = join(out, STATE_FOLDER);
  return stateFilesIn(folder).map((name) => {
    // A state file that a build deletes meanwhile counts as one that cannot be read.
    const state = readState(readText(join(folder, name)) ?? "");
    return { key: state?.app.key ?? textOfSegment(topFolderOf(name)), state };
  });
}

/** Drops apps without a key and sorts the others in byte order: keys are ASCII, so comparing strings is enough. */
function byKey(found: readonly FoundState[]): TreeApp[] {
  return found.filter((app): app is TreeApp => app.key !== null).sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** Names of the app folders of a tree that are not in `known`: their states are lost or never existed. */
export function unknownFoldersIn(out: string, known: readonly string[]): string[] {
  const knownNames = new Set(known);
  return namesIn(out).filter((name) => isSegment(name) && !knownNames.has(name) && isFolder(join(out, name, "v1")));
}

/** Names of the state files in a folder, in byte order; none when the folder does not exist. */
export function stateFilesIn(folder: string): string[] {
  return namesIn(folder).filter(isStateFile).sort();
}

export class EmptyDatabaseError extends Error {
  constructor(out: string, keys: readonly string[]) {
    super(
      `The database has no app, but the tree in ${out} contains ${keys.join(", ")} from another database. Nothing was changed. ` +
        "Check --database-url (DATABASE_URL) and --data-dir. To remove the tree, delete its folder.",
    );
    this.name = "EmptyDatabaseError";
  }
}

/**
 * Throws EmptyDatabaseError when the database has no app, and the tree has one that may be from another database: a
 * wrong address must not delete a tree.
 */
export function refuseEmptyDatabase(
  all: readonly App[],
  treeApps: readonly TreeApp[],
  out: string,
  source: Source,
): void {
  if (all.length > 0) return;
  const others = treeApps.filter(({ state }) => state === null || !isSourceOf(source, state));
  if (others.length > 0) {
    const keys = others.map(({ key }) => key);
    throw new EmptyDatabaseError(out, keys);
  }
}
