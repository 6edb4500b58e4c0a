/** Checks that a tree after many changes is the one that a build from nothing makes of the same content. */
import { join } from "node:path";
import { runBuild } from "../precast.ts";
import { differences } from "../tree.ts";
import type { Work } from "../work.ts";
import type { Tree } from "./full.ts";

/** The paths at which the two trees differ. */
export async function differencesFromNothing({ place, say }: Work, tree: Tree): Promise<readonly string[]> {
  const scratch = join(place.folder, "scratch");
  say("exact: building from nothing");
  await runBuild(tree.source, scratch, place.folder);
  say("exact: comparing");
  return [...differences(tree.out, scratch)];
}
