/**
 * Handles a list that a power failure has damaged: the tree cannot be trusted then. The states of all its apps are
 * emptied, so that the server answers live, deploys refuse the tree, and this build or a later one builds each app in
 * full.
 */
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHANGES_FILE, ELSEWHERE_FILE, STATE_FOLDER, topFolderOf } from "../../shared/state.ts";
import { readElsewhere } from "./elsewhere.ts";
import { stateFilesIn } from "./selection.ts";
import { isWholeList } from "./stage/changes.ts";
import { exists, isFolder } from "./stage/file.ts";
import { removeEmpty } from "./stage/folder.ts";
import { CARRIED, READY, STAGED_STATES } from "./stage/publish.ts";

/** Why the tree cannot be trusted; null when it can. */
export function damageOf(out: string): string | null {
  const list = join(out, READY, CHANGES_FILE);
  if (exists(list) && !isWholeList(list)) return "the list of changes of an interrupted build cannot be read";
  return readElsewhere(out) === null
    ? "the list of its files that exist only at the deploy target cannot be read"
    : null;
}

/** Empties the states before it removes the lists: if the process dies here, the tree is still not trusted. */
export function resetDamagedTree(out: string): void {
  const [folder, ready] = [join(out, STATE_FOLDER), join(out, READY)];
  for (const name of [folder, join(ready, STAGED_STATES)].flatMap(stateFilesIn)) {
    writeFileSync(join(folder, name), "");
    // The build that died may have deleted the last file of a folder, but not the folder.
    const appFolder = join(out, topFolderOf(name));
    if (isFolder(appFolder)) removeEmpty(appFolder);
  }
  carryOver(join(ready, CHANGES_FILE), join(out, CARRIED));
  if (readElsewhere(out) === null) rmSync(join(folder, ELSEWHERE_FILE));
}

/** Keeps the changes of a damaged list for the next report: some may be in place, and none was reported. */
function carryOver(list: string, carried: string): void {
  if (!exists(list)) return;
  appendFileSync(carried, Buffer.concat([Buffer.from("\n"), readFileSync(list)]));
  rmSync(list);
}
