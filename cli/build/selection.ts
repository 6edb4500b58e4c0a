/** The apps that a command is for: those of the database by their keys, and those that a tree has. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { textOf } from "../../shared/address.ts";
import type { App } from "../../shared/catalog.ts";
import { isStateFile, readState, STATE_FOLDER, type TreeState } from "../../shared/state.ts";
import { isOf, type Source } from "./source.ts";

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
  return builtStates(out).map(({ app }) => app.key);
}

export function builtStates(out: string): TreeState[] {
  return statesIn(out).flatMap(({ state }) => state ?? []);
}

/** With those whose state cannot be read. */
export function begunApps(out: string): string[] {
  return statesIn(out).map(({ key }) => key);
}

type Stated = { readonly key: string; readonly state: TreeState | null };

/** By their keys in byte order: of ASCII, as keys are, a text's own order. */
function statesIn(out: string): Stated[] {
  const folder = join(out, STATE_FOLDER);
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter(isStateFile);
  return names
    .map((name) => {
      const state = readState(readFileSync(join(folder, name), "utf8"));
      return { key: state?.app.key ?? textOf(name.slice(0, -".json".length)), state };
    })
    .filter((stated): stated is Stated => stated.key !== null)
    .sort((one, other) => (one.key < other.key ? -1 : 1));
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
export function refuseEmpty(all: readonly App[], out: string, source: Source): void {
  if (all.length > 0) return;
  const others = statesIn(out).filter(({ state }) => state === null || !isOf(source, state));
  if (others.length > 0) {
    const keys = others.map(({ key }) => key);
    throw new EmptyDatabaseError(out, keys);
  }
}
