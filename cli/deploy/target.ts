/** Opens the target of a deploy, which is written `s3://bucket/prefix` or `file:///folder`. */
import { hash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { removeSync } from "fs-extra/esm";
import { textOfSegment } from "../../shared/api/address.ts";
import { openLimit } from "../../shared/async.ts";
import { ConfigError, type Settings } from "../../shared/config.ts";
import { filesIn, namesIn, readOrNull, removeFrom, writeAtomic, yieldToEventLoop } from "../../shared/files.ts";
import { type Lock, LockedError, takeLock } from "../../shared/lock.ts";
import { namePrivateFile } from "../../shared/tree.ts";
import { isTopFolder } from "../../shared/tree-file.ts";
import { CREDENTIAL_SETTINGS, credentialsIn, missingCredentials, type RetryPolicy } from "./http.ts";
import { takeLease } from "./lease.ts";
import { openPurge, PURGE_SETTINGS, type Purge, type PurgeSettings } from "./purge.ts";
import { openS3Store } from "./s3.ts";
import { type Condition, DeployLockedError, STORE_FOLDER, type Store, type StoreLock } from "./store.ts";

/** The settings that opening a store needs. */
export const STORE_SETTINGS = [
  "concurrency",
  "endpoint",
  "region",
  "pathStyle",
  "retries",
  "timeout",
  ...CREDENTIAL_SETTINGS,
] as const;
/** The settings of commands that publish without being asked each time. */
export const PUBLISHING_SETTINGS = [
  "allowLocalMedia",
  "cacheControl",
  "cdnCacheControl",
  ...STORE_SETTINGS,
  ...PURGE_SETTINGS,
] as const;

export type StoreSettings = Settings<(typeof STORE_SETTINGS)[number] | "out">;

export type Target = {
  readonly store: Store;
  /** Takes the lock of the app with this folder. Throws DeployLockedError when another deploy has it. */
  readonly takeAppLock: (appFolder: string) => Promise<StoreLock>;
  /** Takes a lock at a key of the store. */
  readonly takeLock: (key: string) => Promise<StoreLock>;
};

/** Throws ConfigError for an invalid target or missing credentials. */
export function openTarget(text: string, settings: StoreSettings, retryPolicy: RetryPolicy): Target {
  if (/^\w+:\/\/[^/]*@/.test(text)) {
    throw new ConfigError([
      "A target must not contain a user name or password: specify s3://bucket/prefix or file:///folder.",
    ]);
  }
  if (text.startsWith("s3://")) return openBucket(text, settings, retryPolicy);
  if (text.startsWith("file:")) return openFolder(folderIn(text, settings.out));
  throw new ConfigError([
    `${text || "An empty text"} is not a valid target: specify s3://bucket/prefix or file:///folder.`,
  ]);
}

type TargetAndPurge = { readonly target: Target; readonly purge: Purge | null };

/** Opens the target and the purge. Throws one ConfigError with the problems of both, before anything is deployed. */
export function openTargetAndPurge(
  text: string,
  settings: StoreSettings & PurgeSettings,
  now: () => Date,
  throwIfStopped: () => void,
): TargetAndPurge {
  const { timeout, retries } = settings;
  const problems = new Set<string>();
  const collectProblems = <T>(open: () => T): T | null => {
    try {
      return open();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const problem of error.problems) problems.add(problem);
      return null;
    }
  };
  const target = collectProblems(() => openTarget(text, settings, { timeout, retries, now }));
  const purge = collectProblems(() => openPurge(settings, { timeout, retries, now, throwIfStopped }));
  if (target === null || problems.size > 0) throw new ConfigError([...problems]);
  return { target, purge };
}

function openBucket(text: string, settings: StoreSettings, retryPolicy: RetryPolicy): Target {
  const [, bucket = "", prefix = ""] = /^s3:\/\/([^/]*)\/?(.*)$/.exec(text) ?? [];
  const { endpoint, region, pathStyle } = settings;
  const problems = [
    ...(/^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i.test(bucket)
      ? []
      : [
          `${text} has no valid bucket name: specify s3://bucket/prefix, with a bucket name of 3 to 63 letters, digits, '.', '-' and '_' that begins and ends with a letter or digit.`,
        ]),
    ...(prefix.split("/").some((part) => part === "." || part === "..")
      ? [
          `${text} has '.' or '..' in its prefix, which the normalisation of URLs removes: specify a prefix without them.`,
        ]
      : []),
    ...missingCredentials(settings),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  const credentials = credentialsIn(settings);
  const place = {
    bucket,
    prefix: prefix.replace(/^\/+|\/+$/g, ""),
    endpoint,
    region: region ?? "us-east-1",
    pathStyle,
  };
  const store = openS3Store({ ...place, credentials, retryPolicy });
  let isConditional: boolean | null = null;
  const take = async (key: string, name: string) => {
    const { now } = retryPolicy;
    const lock = await takeLease({ store, key, name, now, timeout: settings.timeout, isConditional });
    isConditional = lock.conditional;
    return lock;
  };
  // A lease is renewed however many uploads wait for their turn.
  return withLocks(limitRequests(store, settings.concurrency), take);
}

/** Many apps may be deployed at the same time. */
function limitRequests(store: Store, concurrency: number): Store {
  const limit = openLimit(concurrency);
  return {
    ...store,
    get: (key) => limit(() => store.get(key)),
    put: (key, bytes, options) => limit(() => store.put(key, bytes, options)),
    remove: (key, throwIfStopped) => limit(() => store.remove(key, throwIfStopped)),
  };
}

function withLocks(store: Store, take: (key: string, name: string) => Promise<StoreLock>): Target {
  return {
    store,
    takeLock: (key) => take(key, store.name),
    takeAppLock: (appFolder) =>
      take(namePrivateFile(appFolder, "deploy.lock"), `${textOfSegment(appFolder) ?? appFolder} in ${store.name}`),
  };
}

function folderIn(text: string, out: string): string {
  const problem = (why: string) => new ConfigError([`${text} is not a valid target: ${why}`]);
  if (!/^file:\/(\/(localhost)?\/|(?!\/))/.test(text)) throw problem("specify file:///folder, with three slashes.");
  const folder = pathIn(text);
  if (folder === null) throw problem("in its path, write % as %25, ? as %3F, # as %23 and \\ as %5C.");
  const [here, there] = [`${resolveLinks(out)}${sep}`, `${resolveLinks(folder)}${sep}`];
  if (here.startsWith(there) || there.startsWith(here))
    throw problem("it overlaps with the tree in --out. Specify another folder.");
  return folder;
}

/** Null for a path that is no path in a URL, or that a URL would cut off or change: it would be another folder. */
function pathIn(text: string): string | null {
  try {
    return /[?#\\\p{Cc}]|%00/u.test(text) ? null : fileURLToPath(text);
  } catch {
    return null;
  }
}

/** The absolute path with all symbolic links resolved, as far as it exists. */
function resolveLinks(path: string): string {
  const whole = resolve(path);
  return existsSync(whole) || dirname(whole) === whole
    ? realpathSync(whole)
    : join(resolveLinks(dirname(whole)), whole.slice(dirname(whole).length));
}

function openFolder(folder: string): Target {
  const store = openFolderStore(folder);
  return withLocks(store, async (key, name) => {
    const lock = takeFolderLock(join(folder, key), name);
    try {
      // Partly written files that a dead deploy has left.
      removeSync(join(folder, nameParts(key)));
    } catch (error) {
      lock.release();
      throw error;
    }
    const check = () => {
      if (!lock.isHeld())
        throw new DeployLockedError(`Another deploy has taken over ${name}, or somebody has removed its lock.`);
    };
    return { check, conditional: true, release: async () => lock.release() };
  });
}

function takeFolderLock(path: string, name: string): Lock {
  try {
    return takeLock(path);
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    const message = `Another deploy (${error.holder}) holds the lock of ${name}. Wait for it to end, then deploy again.`;
    throw new DeployLockedError(message);
  }
}

// Stores a tree in a folder, such as that of a web server. Files appear complete; unchanged ones keep their mtime.

/** Folder of files that are being written: inside the target, so that a rename stays on one file system. */
function nameParts(key: string): string {
  const [top = "", app = ""] = key.split("/", 2);
  return top === STORE_FOLDER ? `${STORE_FOLDER}/part/${app.replace(/\.json$/, "")}` : `${STORE_FOLDER}/part/${top}`;
}

export function openFolderStore(folder: string): Store {
  let parts = 0;

  const get: Store["get"] = async (key) => {
    const bytes = readOrNull(join(folder, key));
    return bytes === null ? null : { bytes, etag: hashBytes(bytes), age: null };
  };
  return {
    name: `file://${folder}`,
    get,
    getIfChanged: async (key, etag) => {
      const stored = await get(key);
      return stored !== null && stored.etag === etag ? "same" : stored;
    },
    put: async (key, bytes, { condition, throwIfStopped }) => {
      // Otherwise the process would notice no stop signal and not renew the lock.
      await yieldToEventLoop();
      throwIfStopped?.();
      if (condition !== undefined && !isMet(condition, readOrNull(join(folder, key)))) return { kind: "unmet" };
      writeAtomic(folder, key, bytes, join(folder, nameParts(key), String(parts++)));
      return { kind: "put", etag: hashBytes(bytes) };
    },
    list: async function* (prefix) {
      // What else is there is somebody else's, and may be closed to this user: a volume has a lost+found.
      const names = prefix === "" ? namesIn(folder).filter(isTopFolder) : [prefix.slice(0, -1)];
      for (const name of names) yield* filesIn(folder, name);
    },
    remove: async (key, throwIfStopped) => {
      await yieldToEventLoop();
      throwIfStopped?.();
      removeFrom(folder, key);
    },
  };
}

function isMet(condition: Condition, before: Buffer | null): boolean {
  return condition.kind === "absent" ? before === null : before !== null && hashBytes(before) === condition.etag;
}

function hashBytes(bytes: Uint8Array): string {
  return `"${hash("sha256", bytes, "hex")}"`;
}

/** What to say of a store after its name, when a lock is not `conditional`. */
export const UNCONDITIONAL =
  "does not honour conditional writes (If-Match, If-None-Match): two deploys that start at the same time can interfere with each other. Run only one at a time.";
