/**
 * Lists the apps of the database that a tree lacks, because it was built with --app: what a deploy finds of them at its
 * target is not surplus.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { App } from "../../shared/catalog.ts";
import { STATE_FOLDER } from "../../shared/state.ts";
import type { TreeApp } from "./selection.ts";
import { exists } from "./stage/file.ts";

/** Absent when the tree has every app. */
const OTHERS = `${STATE_FOLDER}/others.json`;

/** Whether the tree has every app that the database had at the last build. */
export function hasAllApps(out: string): boolean {
  return !exists(join(out, OTHERS));
}

/** Keys of the apps that the tree still lacks when those that are chosen are built. */
export function othersOf(all: readonly App[], chosen: readonly App[], treeApps: readonly TreeApp[]): string[] {
  const keys = new Set([...chosen, ...treeApps].map(({ key }) => key));
  return all.map(({ key }) => key).filter((key) => !keys.has(key));
}

export function writeOthers(out: string, keys: readonly string[]): void {
  if (keys.length === 0) rmSync(join(out, OTHERS), { force: true });
  else writeFileSync(join(out, OTHERS), `${JSON.stringify(keys)}\n`);
}
