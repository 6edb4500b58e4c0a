/** What a build that died has left: it is completed or discarded, and a damaged tree is no longer trusted. */
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exists, isFolder, removeEmpty } from "../../shared/files.ts";
import { CHANGES_FILE, findTopFolder, REMOTE_FILE, STATE_FOLDER, stateFilesIn } from "../../shared/tree.ts";
import { isWholeList } from "./changes.ts";
import { moveToTrash, PENDING, publish, READY, REPORTED, STAGE, STAGED_STATES } from "./publish.ts";
import { readRemoteFiles } from "./remote.ts";

/**
 * Completes a build that died after its commit, and discards what one that died earlier has left. `died` is whether the
 * last holder of the build lock died: then it may not have reported its changes, and they stay pending.
 */
export async function recover(out: string, died: boolean, check: () => void): Promise<void> {
  const [reported, pending] = [join(out, REPORTED), join(out, PENDING)];
  if (died && !exists(pending) && exists(reported)) renameSync(reported, pending);
  if (exists(join(out, READY, CHANGES_FILE))) await publish(out, check);
  discardStages(out);
}

/** Moves the stage that a dead build has left, under either name, into the trash: the next build cannot use it. */
export function discardStages(out: string): void {
  for (const folder of [STAGE, READY]) if (exists(join(out, folder))) moveToTrash(out, folder);
}

/** Why the tree cannot be trusted, because a power failure has damaged a list; null when it can. */
export function findDamage(out: string): string | null {
  const list = join(out, READY, CHANGES_FILE);
  if (exists(list) && !isWholeList(list)) return "the list of changes of an interrupted build cannot be read";
  return readRemoteFiles(out) === null
    ? "the list of its files that exist only at the deploy target cannot be read"
    : null;
}

/**
 * Empties the states of all apps, so that the server answers live, deploys refuse the tree, and this build or a later one
 * builds each app in full. Removes the lists after that: if the process dies here, the tree is still not trusted.
 */
export async function resetDamagedTree(out: string): Promise<void> {
  const [folder, ready] = [join(out, STATE_FOLDER), join(out, READY)];
  for (const name of [folder, join(ready, STAGED_STATES)].flatMap(stateFilesIn)) {
    writeFileSync(join(folder, name), "");
    // The build that died may have deleted the last file of a folder, but not the folder.
    const appFolder = join(out, findTopFolder(name));
    if (isFolder(appFolder)) await removeEmpty(appFolder);
  }
  keepPending(join(ready, CHANGES_FILE), join(out, PENDING));
  if (readRemoteFiles(out) === null) rmSync(join(folder, REMOTE_FILE));
}

/** Keeps the changes of a damaged list for the next report: some may be in place, and none was reported. */
function keepPending(list: string, pending: string): void {
  if (!exists(list)) return;
  appendFileSync(pending, Buffer.concat([Buffer.from("\n"), readFileSync(list)]));
  rmSync(list);
}
