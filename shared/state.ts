/**
 * What a build leaves beside the tree for the server and for the next build: one file an app, `.precast/<segment>.json`.
 */
import { segment } from "./address.ts";
import type { App } from "./catalog.ts";

const FORMAT = 3;

export type TreeState = {
  /** The Precast that built the tree: another may render other bytes. */
  readonly version: string;
  /** When the build read the database, ISO 8601 in UTC. */
  readonly built_at: string;
  /** Which database it was, and how that sorts: what cli/build/source.ts reads. */
  readonly source: string;
  /** What the build saw of the database: the text of a `pg_snapshot`. */
  readonly snapshot: string;
  /** UUIDs of the tree, the same for all its apps, and of this build of it: what the database knows it by. */
  readonly tree: string;
  readonly mark: string;
  readonly files: number;
  /** Published entries. */
  readonly entries: number;
  readonly bytes: number;
  /** Published entries by the slug of their type. */
  readonly counts: Readonly<Record<string, number>>;
  readonly app: App;
};

export const STATE_FOLDER = ".precast";

/** Held, relative to the tree, by the build that is writing it. */
export const BUILD_LOCK = `${STATE_FOLDER}/build.lock`;

/** What the last build changed; there is a new one when all else of a build is in place. */
export const CHANGES_FILE = "changes.json";

/** The files of the tree that are not here but where it was deployed; there is none where the tree is whole. */
export const ELSEWHERE_FILE = "elsewhere.json";

/** The state file of an app, relative to the tree. */
export function stateFileOf(appKey: string): string {
  return `${STATE_FOLDER}/${segment(appKey)}.json`;
}

/** Whether a name in the state folder is that of an app's state file. */
export function isStateFile(name: string): boolean {
  return /^[shx]-.*\.json$/.test(name);
}

/** The folder of the app whose state a file is, relative to the tree. */
export function folderOfState(name: string): string {
  return name.slice(0, -".json".length);
}

export function writeState(state: TreeState): string {
  return `${JSON.stringify({ format: FORMAT, ...state }, null, 2)}\n`;
}

/** Null for what another format wrote, or what is broken: the app is built anew. */
export function readState(text: string): TreeState | null {
  try {
    const { format, ...state } = JSON.parse(text) as TreeState & { format: number };
    return format === FORMAT && Array.isArray(state.app?.types) ? state : null;
  } catch {
    return null;
  }
}
