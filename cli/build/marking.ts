/** By what the database knows a tree: the mark of the build that is under way, and those of the builds that its parts are of. */
import { randomUUID } from "node:crypto";
import type { Begun } from "./selection.ts";
import type { Marking } from "./source.ts";

export function markingOf(begun: readonly Begun[]): Marking {
  const states = begun.flatMap(({ state }) => state ?? []);
  const held = [...new Set(states.map(({ mark }) => mark))];
  return { tree: states[0]?.tree ?? randomUUID(), mark: randomUUID(), held };
}
