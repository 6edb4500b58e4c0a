/**
 * Defines what a build stores beside the tree for the server and the next build: a state file for each app,
 * `.precast/<segment>.json`, and the names of the other files.
 */
import { segment } from "./address.ts";
import { APP_KEY, type App } from "./catalog.ts";

const FORMAT = 3;

export type TreeState = {
  /** Version of Precast that built the tree. Another version may render other bytes. */
  readonly version: string;
  /** Time at which the build read the database, ISO 8601 in UTC. */
  readonly built_at: string;
  /** Identifies the database and the version of its collation; cli/build/source.ts reads it. */
  readonly source: string;
  /** The snapshot in which the build read the database: the text of a `pg_snapshot`. */
  readonly snapshot: string;
  /** UUID of the tree, the same for all its apps. */
  readonly tree: string;
  /** UUID of the build. The database stores it too: one that lacks it may lack content that the build read. */
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

/** Lock file of the process that is writing the tree, relative to the tree. */
export const BUILD_LOCK = `${STATE_FOLDER}/build.lock`;

/** Lists what the last build changed. A build replaces it last, so a new one means that the build has ended. */
export const CHANGES_FILE = "changes.json";

/** Lists the files that exist only where the tree was deployed. Absent when the local tree is complete. */
export const ELSEWHERE_FILE = "elsewhere.json";

/** The state file of an app, relative to the tree. */
export function stateFileOf(appKey: string): string {
  return `${STATE_FOLDER}/${segment(appKey)}.json`;
}

/** Whether a file name in the state folder is that of an app's state file. */
export function isStateFile(name: string): boolean {
  return /^[shx]-[a-z0-9_-]*\.json$/.test(name);
}

/** The top folder of an app, relative to the tree, by the name of its state file. */
export function topFolderOf(name: string): string {
  return name.slice(0, -".json".length);
}

export function writeState(state: TreeState): string {
  return `${JSON.stringify({ format: FORMAT, ...state }, null, 2)}\n`;
}

/**
 * Null when the text is broken or has another format: the app is then built in full. The text may come from a bucket, and
 * keys are written into configurations, so that a key with other characters counts as broken.
 */
export function readState(text: string): TreeState | null {
  try {
    const { format, ...state } = JSON.parse(text) as TreeState & { format: number };
    const isWhole = APP_KEY.test(state.app?.key ?? "") && Array.isArray(state.app?.types);
    return format === FORMAT && isWhole ? state : null;
  } catch {
    return null;
  }
}
