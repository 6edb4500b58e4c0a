/**
 * Reads a tree where it was deployed: in a bucket, a folder or at a CDN. A file is that of the deploy in force when its
 * digest is the one in the manifest. Files are kept on this machine by their digests, so that a deploy leaves those that
 * it does not change.
 */
import { join } from "node:path";
import { type Address, nameFile, nameFolder } from "../../shared/api/address.ts";
import { makeEtag } from "../../shared/api/answer.ts";
import type { AppTree } from "../../shared/api/respond.ts";
import { digestBytes } from "../../shared/tree.ts";
import { openSingleFlight } from "../live/share.ts";
import type { Tree } from "../tree.ts";
import { openFileCache } from "./cache.ts";
import { type TreeStore, watchStore } from "./store.ts";
import { openVersions, type Version } from "./versions.ts";

export type DeployedTreeOptions = {
  readonly store: TreeStore;
  /** Folder for what is kept on this machine. */
  readonly folder: string;
  /** Limit of that, in bytes. */
  readonly maxBytes: number;
  /** Milliseconds after a deploy within which answers are those of the new tree. */
  readonly refresh: number;
  readonly hasApp: (appKey: string) => Promise<boolean>;
  readonly report: (news: string) => void;
};

export type DeployedTree = Tree & { readonly isAway: () => boolean };

type ReadFile = Awaited<ReturnType<AppTree["read"]>>;

export function openDeployedTree(options: DeployedTreeOptions): DeployedTree {
  const { folder, maxBytes, refresh, hasApp, report } = options;
  const store = watchStore(options.store, report);
  const cache = openFileCache(join(folder, "files"), maxBytes, (error) => report((error as Error).message));
  // Notes tell of one store: another one may have other deploys of the same apps.
  const notes = join(folder, `notes-${digestBytes(Buffer.from(store.name)).sha256.slice(0, 16)}`);
  const versions = openVersions({ store, cache, folder: notes, refresh, hasApp, report });
  const fetches = openSingleFlight<Buffer | null | "unreadable">();

  return {
    findTree: async (appKey) => {
      const version = await versions.find(appKey);
      if (version === null) return null;
      const { app, isCurrentOnDisk } = version;
      return { app, isCurrentOnDisk, read: (address) => readFile(version, address) };
    },
    isAway: store.isAway,
  };

  async function readFile(version: Version, address: Address): Promise<ReadFile> {
    const manifest = await version.readManifest();
    if (manifest === null) return "unreadable";
    const path = `${nameFolder(version.appKey)}/${nameFile(address)}`;
    const listed = manifest.find(path);
    if (listed === null && !version.isMixed) return null;
    const expected = version.found.get(path) ?? (version.isMixed ? null : listed);
    const kept = expected === null ? null : await cache.read(expected);
    const fetch = () => fetchFile(version, address, path, listed);
    const bytes = kept ?? (await fetches.share(path, version, new AbortController().signal, fetch));
    if (bytes === null || bytes === "unreadable") return bytes;
    return { bytes, etag: makeEtag(bytes), isCurrent: version.isCurrent };
  }

  async function fetchFile(version: Version, { kind }: Address, path: string, listed: string | null) {
    const got = await store.get(path, null).catch(() => "same" as const);
    if (got === "same") return "unreadable";
    if (got === null && listed === null) return null;
    const sha256 = got === null ? null : digestBytes(got.bytes).sha256;
    if (sha256 !== listed) {
      // A deploy may just have ended.
      await versions.check(version.appKey);
      if (!version.isCurrentOnDisk()) return "unreadable";
    }
    if (got === null || sha256 === null) return "unreadable";
    if (sha256 !== listed && !(await isUsable(version, kind))) return "unreadable";
    if (sha256 !== listed || version.isMixed) version.found.set(path, sha256);
    await cache.keep(sha256, got.bytes);
    return got.bytes;
  }

  /**
   * Whether a file of a deploy that has not ended may be shown. Its entries are uploaded first: older lists may lead to
   * them. A newer list may only lead to newer entries: they are all uploaded then, but what is kept of them may be older,
   * so that from then on the version counts as mixed, and every file is asked for anew. Catalog and schemas come last,
   * together with the state that the app has to be read by.
   */
  async function isUsable(version: Version, kind: Address["kind"]): Promise<boolean> {
    if (store.mayLag || kind === "catalog" || kind === "schema") return false;
    if (kind === "entry" || version.isMixed) return true;
    await versions.mix(version);
    return false;
  }
}
