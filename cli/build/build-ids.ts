/** Chooses the UUIDs with which the database records a build: of the tree, of this build and of earlier builds. */
import { randomUUID } from "node:crypto";
import type { TreeApp } from "./selection.ts";
import type { BuildIds } from "./source.ts";

export function chooseBuildIds(treeApps: readonly TreeApp[]): BuildIds {
  const states = treeApps.flatMap(({ state }) => state ?? []);
  const earlierMarks = [...new Set(states.map(({ mark }) => mark))];
  return { tree: states[0]?.tree ?? randomUUID(), mark: randomUUID(), earlierMarks };
}
