/** Chooses the UUIDs with which the database records a build: of the tree, of this build and of earlier builds. */
import { randomUUID } from "node:crypto";
import type { Begun } from "./selection.ts";
import type { Marking } from "./source.ts";

export function markingOf(begun: readonly Begun[]): Marking {
  const states = begun.flatMap(({ state }) => state ?? []);
  const held = [...new Set(states.map(({ mark }) => mark))];
  return { tree: states[0]?.tree ?? randomUUID(), mark: randomUUID(), held };
}
