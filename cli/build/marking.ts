/** By what the database knows a tree: the mark of the build that is under way, and those of the builds that its parts are of. */
import { randomUUID } from "node:crypto";
import { builtStates } from "./selection.ts";
import type { Marking } from "./source.ts";

export function markingOf(out: string): Marking {
  const states = builtStates(out);
  const held = [...new Set(states.map(({ mark }) => mark))];
  return { tree: states[0]?.tree ?? randomUUID(), mark: randomUUID(), held };
}
