/** Scans the tree to deploy: checks that it is finished and complete, and computes the SHA-256 of each file. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nameFolder, segment } from "../../shared/api/address.ts";
import { isWholeBody } from "../../shared/api/answer.ts";
import { isLocalAddress } from "../../shared/api/catalog.ts";
import { mediaFolder } from "../../shared/api/entry.ts";
import { exists, filesIn, isFile, readText } from "../../shared/files.ts";
import { findHolder } from "../../shared/lock.ts";
import {
  BUILD_LOCK,
  CHANGES_FILE,
  digestBytes,
  type FileDigest,
  type FileDigests,
  nameStateFile,
  READY,
  readStateAt,
  STATE_FOLDER,
  stateFilesIn,
  type TreeState,
  unknownFoldersIn,
} from "../../shared/tree.ts";
import { isTreeFile } from "../../shared/tree-file.ts";
import { readBuildTime } from "../builder/changes.ts";
import { hasAllApps, readRemoteFiles } from "../builder/remote.ts";

/** An app of the tree. */
export type LocalApp = {
  readonly key: string;
  /** By path relative to the tree, sorted. Includes the state file, and the files in `elsewhere`. */
  readonly files: FileDigests;
  readonly state: TreeState;
};

export type LocalTree = {
  /** By key, sorted. */
  readonly apps: ReadonlyMap<string, LocalApp>;
  /** Paths of files that this tree lacks, because they exist only where it was deployed. */
  readonly remote: ReadonlySet<string>;
  /** Whether the tree has every app of its database: one that was built with --app may lack some. */
  readonly hasAllApps: boolean;
  /** When the last build of the tree began; null when that is unknown. */
  readonly builtAt: string | null;
  /** Paths of files with addresses of media that lead to the reader's own machine. */
  readonly localMedia: readonly string[];
};

/** The local tree cannot be deployed: it is missing, unfinished or not as it was built. */
export class UnfinishedTreeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UnfinishedTreeError";
  }
}

/** Throws UnfinishedTreeError when the tree is being built, was never built or is not as it was built. */
export async function scanTree(out: string): Promise<LocalTree> {
  refuseUnderWay(out);
  const states = readStates(out);
  const digests = readRemoteFiles(out);
  if (digests === null) throw notBuilt(out);
  const absent = digestsByFolder(digests);
  const apps: LocalApp[] = [];
  const localMedia: string[] = [];
  for (const state of states) {
    const key = state.app.key;
    const own = new Map(absent.get(nameFolder(key)));
    const local = isLocalAddress(state.app.media_base_url) ? JSON.stringify(mediaFolder(state.app)).slice(1, -1) : null;
    for await (const file of filesIn(join(out, nameFolder(key)))) {
      const path = `${nameFolder(key)}/${file}`;
      if (!isTreeFile(path)) continue;
      const bytes = readWhole(out, path);
      own.set(path, digestBytes(bytes));
      if (local !== null && bytes.includes(local)) localMedia.push(path);
    }
    own.set(nameStateFile(key), digestBytes(readFileSync(join(out, nameStateFile(key)))));
    if (own.size - 1 !== state.files)
      throw notAsBuilt(out, `${key} has ${own.size - 1} files, but its build left ${state.files}`);
    apps.push({ key, files: inOrder(own), state });
  }
  refuseUnderWay(out);
  if (JSON.stringify(readStates(out)) !== JSON.stringify(states)) throw underWay(out, null);
  const remote = new Set([...digests.keys()].filter((path) => !isFile(join(out, path))));
  const byKey = apps.sort((one, other) => (one.key < other.key ? -1 : 1)).map((app) => [app.key, app] as const);
  const builtAt = readBuildTime(join(out, STATE_FOLDER, CHANGES_FILE));
  return { apps: new Map(byKey), remote, hasAllApps: hasAllApps(out), builtAt, localMedia };
}

/** Sorts files by their paths. */
function inOrder(files: Iterable<readonly [path: string, digest: FileDigest]>): FileDigests {
  return new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function readWhole(out: string, path: string): Buffer {
  const bytes = readFileSync(join(out, path));
  if (isWholeBody(bytes)) return bytes;
  throw notAsBuilt(out, `${path} is empty, truncated or edited`);
}

function notAsBuilt(out: string, why: string): UnfinishedTreeError {
  return new UnfinishedTreeError(`${out} differs from what was built: ${why}. Run \`precast build --full\`.`);
}

function digestsByFolder(digests: FileDigests): ReadonlyMap<string, readonly (readonly [string, FileDigest])[]> {
  const folders = new Map<string, (readonly [string, FileDigest])[]>();
  for (const [path, digest] of digests) {
    const folder = path.split("/", 2).join("/");
    const some = folders.get(folder) ?? [];
    some.push([path, digest]);
    folders.set(folder, some);
  }
  return folders;
}

function refuseUnderWay(out: string): void {
  const holder = findHolder(join(out, BUILD_LOCK));
  if (holder !== null) throw underWay(out, holder);
  if (exists(join(out, READY))) {
    throw new UnfinishedTreeError(`A build of ${out} was interrupted. Run \`precast build\` to complete it.`);
  }
}

function underWay(out: string, holder: string | null): UnfinishedTreeError {
  const who = holder === null ? "A build" : `A build (${holder})`;
  return new UnfinishedTreeError(`${who} is changing ${out}. Wait for it to end, then deploy.`);
}

function readStates(out: string): TreeState[] {
  const folder = join(out, STATE_FOLDER);
  const names = stateFilesIn(folder);
  // An empty tree is probably a mistake: built from the wrong database, or a folder that was never built.
  if (names.length === 0 && unknownFoldersIn(out, []).length === 0)
    throw new UnfinishedTreeError(
      `${out} has no finished build of any app. Run \`precast build\` first. An empty tree is never deployed: if the last app was deleted, delete its files at the target yourself.`,
    );
  const states = names.map((name) => readStateAt(`${STATE_FOLDER}/${name}`, readText(join(folder, name)) ?? ""));
  const known = states.filter((state) => state !== null);
  if (known.length === 0 || known.length < states.length) throw notBuilt(out);
  const folders = known.map(({ app }) => segment(app.key));
  const [unknownFolder] = unknownFoldersIn(out, folders);
  if (unknownFolder !== undefined)
    throw new UnfinishedTreeError(
      `${join(out, unknownFolder)} does not belong to any finished build. Run \`precast build\`, or delete the folder if the database has no such app.`,
    );
  return known;
}

function notBuilt(out: string): UnfinishedTreeError {
  return new UnfinishedTreeError(`Not every app in ${out} has a finished build. Run \`precast build\` first.`);
}
