/** What the configuration of an edge is made from: the apps it knows, and where tree and origin are. */
import { resolve } from "node:path";
import { folderOf } from "../../shared/address.ts";
import type { CachePolicy } from "../../shared/answer.ts";
import type { Settings } from "../../shared/config.ts";
import { builtApps } from "../build/selection.ts";

export type Edge = {
  readonly apps: readonly EdgeApp[];
  /** Where `precast serve` is: scheme and host. */
  readonly origin: URL;
  /** The folder of the tree as it was named, and its absolute path. */
  readonly folder: string;
  readonly out: string;
  /** Where a static host serves the tree; null where nobody said. */
  readonly treeUrl: string | null;
  readonly policy: CachePolicy;
};

/** `folder` is the app's in the tree, without the version. */
export type EdgeApp = { readonly key: string; readonly folder: string };

/** `name` is a path below the folder that they are written into. */
export type EdgeFile = { readonly name: string; readonly text: string };

export const EDGE_SETTINGS = ["apps", "origin", "treeUrl", "cacheControl", "cdnCacheControl", "cacheTags"] as const;

/** Of an edge on the machine of `precast serve`, which listens there unless told otherwise. */
const BESIDE = "http://127.0.0.1:3000";

/**
 * `far` is an edge on machines of its own. Throws where nobody has said how it reaches the origin, where it is to send
 * tags and can't, and where no app is known: an edge without one would send all to the origin.
 */
export function readEdge(
  settings: Settings<(typeof EDGE_SETTINGS)[number] | "out">,
  { far, tags = false }: { readonly far: boolean; readonly tags?: boolean },
): Edge {
  if (far && settings.origin === null)
    throw new Error(
      "This edge runs on other machines. Give the address where it reaches `precast serve`: --origin URL.",
    );
  if (settings.cacheTags && !tags)
    throw new Error("This edge sends no tags with files. Leave --cache-tags (PRECAST_CACHE_TAGS) out.");
  const keys = settings.apps ?? builtApps(settings.out);
  if (keys.length === 0)
    throw new Error(`${settings.out} holds no tree. Build it (precast build), or name the apps: --app KEY.`);
  const apps = [...new Set(keys)].sort().map((key) => ({ key, folder: folderOf(key).replace(/\/.*/, "") }));
  const policy = { browsers: settings.cacheControl, cdns: settings.cdnCacheControl, tagged: settings.cacheTags };
  return {
    apps,
    origin: new URL(settings.origin ?? BESIDE),
    folder: settings.out,
    out: resolve(settings.out),
    treeUrl: settings.treeUrl,
    policy,
  };
}
