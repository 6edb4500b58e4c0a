/** Is a tree that was changed again and again the one that a build from nothing makes of the same content? */
import { join } from "node:path";
import { runBuild } from "../precast.ts";
import { differences } from "../tree.ts";
import type { Work } from "../work.ts";
import type { Tree } from "./full.ts";

/** Paths at which they differ. */
export async function differencesFromNothing({ place, say }: Work, tree: Tree): Promise<readonly string[]> {
  const scratch = join(place.folder, "scratch");
  say("exact: building from nothing");
  await runBuild(tree.source, scratch, place.folder);
  say("exact: comparing");
  return [...differences(tree.out, scratch)];
}
