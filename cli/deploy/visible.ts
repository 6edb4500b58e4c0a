/** Waits until clients see what was deployed: polls the public address, through the CDN, with the keys of the apps. */
import { setTimeout as sleep } from "node:timers/promises";
import { nameFolder } from "../../shared/api/address.ts";
import { digestBytes, type FileDigest } from "../../shared/tree.ts";
import { describeTreeFile, keysByFolder, type TreeFile } from "../../shared/tree-file.ts";
import { RemoteFault } from "./http.ts";
import type { LocalTree } from "./local-tree.ts";

type VisibleOptions = {
  /** URL with `{path}` (path and query of the request) or `{file}` (path in the tree); else `{path}` is appended. */
  readonly address: string;
  /** Seconds to wait for all files. */
  readonly limit: number;
  /** Seconds that one request may take. */
  readonly timeout: number;
  readonly now: () => Date;
  readonly out: string;
  /** Throws when the process is told to stop. */
  readonly throwIfStopped: () => void;
};

/** Milliseconds. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5_000;

type DeployedTree = Pick<LocalTree, "apps">;

/** Throws RemoteFault when a file is not visible after `limit` seconds. */
export async function waitVisible(
  tree: DeployedTree,
  changed: readonly TreeFile[],
  options: VisibleOptions,
): Promise<void> {
  const start = options.now().getTime();
  const files = filesToProbe(tree, changed, options.out);
  for (const file of files) {
    const sha256 = findDigest(tree, file)?.sha256 ?? "";
    let seen = "";
    for (let wait = FIRST_PAUSE; ; wait = Math.min(LONGEST_PAUSE, 2 * wait)) {
      options.throwIfStopped();
      const left = options.limit - (options.now().getTime() - start) / 1_000;
      if (left <= 0) throw notSeen(publicUrl(options.address, file), seen, options.limit);
      seen = await probe(file, sha256, options, left);
      if (seen === SEEN) break;
      await sleep(Math.min(wait, left * 1_000));
    }
  }
}

/** Files to check: the catalog of each app and, if there is one, another changed file of that app. */
function filesToProbe(tree: DeployedTree, changed: readonly TreeFile[], out: string): TreeFile[] {
  const keys = [...tree.apps.keys()];
  const apps = keysByFolder(keys);
  return keys.flatMap((app) => {
    const catalog = describeTreeFile(out, `${nameFolder(app)}/_schemas.json`, apps);
    const other = changed.find((file) => file.app === app && file.type !== null && isThere(tree, file));
    return other === undefined ? [catalog] : [other, catalog];
  });
}

function isThere(tree: DeployedTree, file: TreeFile): boolean {
  return file.request !== null && findDigest(tree, file) !== undefined;
}

function findDigest({ apps }: DeployedTree, { app, path }: TreeFile): FileDigest | undefined {
  return app === null ? undefined : apps.get(app)?.files.get(path);
}

const SEEN = "seen";

/** Returns SEEN if the response is the deployed file, otherwise words that say what it is instead. */
async function probe(
  file: TreeFile,
  sha256: string,
  { address, timeout }: VisibleOptions,
  left: number,
): Promise<string> {
  const signal = AbortSignal.timeout(Math.ceil(Math.min(timeout, left) * 1_000));
  try {
    const headers = { "x-app-key": file.app ?? "", accept: "application/json" };
    // A redirect could lead anywhere, and the key of the app would follow it.
    const response = await fetch(publicUrl(address, file), { headers, signal, redirect: "manual" });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200) return `it answers with ${response.status}`;
    return digestBytes(bytes).sha256 === sha256 ? SEEN : "it returns different content";
  } catch (error) {
    if (signal.aborted) return "it does not answer in time";
    const cause = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
    return `it cannot be reached (${cause.code ?? cause.message})`;
  }
}

function publicUrl(address: string, { path, request }: TreeFile): string {
  const filled = address.replaceAll("{path}", request ?? "").replaceAll("{file}", path);
  return filled === address ? `${address.replace(/\/$/, "")}${request}` : filled;
}

function notSeen(url: string, seen: string, limit: number): RemoteFault {
  const what = `After ${limit} seconds, ${url} still does not return what was deployed: ${seen}.`;
  return new RemoteFault(`${what} All files are deployed. Purge the CDN, or raise --wait-limit.`);
}
