/** The apps that a command is for: those of the database by their keys, and those that a tree has. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { segment, textOf } from "../../shared/address.ts";
import type { App } from "../../shared/catalog.ts";
import {
  folderOfState,
  isStateFile,
  readState,
  STATE_FOLDER,
  stateFileOf,
  type TreeState,
} from "../../shared/state.ts";
import { isOf, type Source } from "./source.ts";
import { isFolder, readText } from "./stage/folder.ts";

export class UnknownAppError extends Error {
  constructor(keys: readonly string[], known: readonly string[]) {
    super(`No app has the key ${keys.join(", ")}. Apps in the database: ${known.join(", ") || "none"}.`);
    this.name = "UnknownAppError";
  }
}

/** The apps of these keys, or all. Throws UnknownAppError for a key that no app has. */
export function chooseApps(all: readonly App[], keys: readonly string[] | null): readonly App[] {
  if (keys === null) return all;
  const known = all.map((app) => app.key);
  const unknown = keys.filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new UnknownAppError(unknown, known);
  return all.filter((app) => keys.includes(app.key));
}

/** The keys of the apps that a tree has, in byte order. */
export function builtApps(out: string): string[] {
  return byKey(statesIn(out)).flatMap(({ key, state }) => (state === null ? [] : [key]));
}

/** What a build has left of an app; null where there is nothing that can be read. */
export function stateOf(out: string, key: string): TreeState | null {
  return readState(readText(join(out, stateFileOf(key))) ?? "");
}

/** An app that a tree has; without a state where there is none that can be read. */
export type Begun = { readonly key: string; readonly state: TreeState | null };

/** By their keys, in byte order. */
export function begunApps(out: string): Begun[] {
  const states = statesIn(out);
  const known = states.map(({ key }) => (key === null ? "" : segment(key)));
  const stateless = strangersIn(out, known).map((name) => ({ key: textOf(name), state: null }));
  return byKey([...states, ...stateless]);
}

/** Those of a tree that the database has no more. */
export function goneApps(begun: readonly Begun[], all: readonly { readonly key: string }[]): Begun[] {
  return begun.filter(({ key }) => !all.some((app) => app.key === key));
}

/** The key is null where neither the state nor its name tells it. */
type Found = { readonly key: string | null; readonly state: TreeState | null };

function statesIn(out: string): Found[] {
  const folder = join(out, STATE_FOLDER);
  return stateFilesIn(folder).map((name) => {
    // One that a build takes away meanwhile is as one that cannot be read.
    const state = readState(readText(join(folder, name)) ?? "");
    return { key: state?.app.key ?? textOf(folderOfState(name)), state };
  });
}

/** In byte order: of ASCII, as keys are, a text's own order. */
function byKey(found: readonly Found[]): Begun[] {
  return found
    .filter((begun): begun is Begun => begun.key !== null)
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** Folders of apps in a tree, beside those that are known: their states are lost, or never were. */
export function strangersIn(out: string, known: readonly string[]): string[] {
  const own = new Set(known);
  return namesIn(out).filter((name) => /^[shx]-/.test(name) && !own.has(name) && isFolder(join(out, name, "v1")));
}

/** The names of the states in a folder, in byte order; none where there is no such folder. */
export function stateFilesIn(folder: string): string[] {
  return namesIn(folder).filter(isStateFile).sort();
}

/** A folder that may not be looked into is not one that is not there. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}

export class EmptyDatabaseError extends Error {
  constructor(out: string, keys: readonly string[]) {
    super(
      `The database has no app, and the tree in ${out} is of ${keys.join(", ")}, from another database: nothing was changed. ` +
        "Check --database-url (DATABASE_URL) and --data-dir. If the tree is to go, delete its folder.",
    );
    this.name = "EmptyDatabaseError";
  }
}

/** Whoever has named the wrong database must not lose a tree. Throws EmptyDatabaseError. */
export function refuseEmpty(all: readonly App[], begun: readonly Begun[], out: string, source: Source): void {
  if (all.length > 0) return;
  const others = begun.filter(({ state }) => state === null || !isOf(source, state));
  if (others.length > 0) {
    const keys = others.map(({ key }) => key);
    throw new EmptyDatabaseError(out, keys);
  }
}
