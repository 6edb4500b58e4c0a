/**
 * Lists that a power failure has cut: of the trees that they tell of nothing is known any more. Their states are emptied, so
 * that the server answers live, no deploy takes them, and builds compute all of them, this one or those that follow.
 */
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHANGES_FILE, ELSEWHERE_FILE, folderOfState, STATE_FOLDER } from "../../shared/state.ts";
import { readElsewhere } from "./elsewhere.ts";
import { stateFilesIn } from "./selection.ts";
import { isWholeList } from "./stage/changes.ts";
import { exists, isFolder, removeEmpty } from "./stage/folder.ts";
import { CARRIED, READY, STAGED_STATES } from "./stage/publish.ts";

/** Why nothing can be told of the tree; null where it can. */
export function distrustOf(out: string): string | null {
  const list = join(out, READY, CHANGES_FILE);
  if (exists(list) && !isWholeList(list)) return "the list of changes of a build that did not end cannot be read";
  return readElsewhere(out) === null ? "the list of its files that are where it was deployed cannot be read" : null;
}

/** Whoever dies on the way leaves one of the lists, or states that nobody can read. */
export function putAsideCut(out: string): void {
  const [folder, ready] = [join(out, STATE_FOLDER), join(out, READY)];
  for (const name of [folder, join(ready, STAGED_STATES)].flatMap(stateFilesIn)) {
    writeFileSync(join(folder, name), "");
    // Whoever died may have deleted the last file of a folder, and not the folder.
    const top = join(out, folderOfState(name));
    if (isFolder(top)) removeEmpty(top);
  }
  carry(join(ready, CHANGES_FILE), join(out, CARRIED));
  if (readElsewhere(out) === null) rmSync(join(folder, ELSEWHERE_FILE));
}

/** Some of it may be done, and nobody was told. */
function carry(list: string, carried: string): void {
  if (!exists(list)) return;
  appendFileSync(carried, Buffer.concat([Buffer.from("\n"), readFileSync(list)]));
  rmSync(list);
}
