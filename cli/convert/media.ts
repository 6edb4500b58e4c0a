/** Gives each file of a source a name of its own in the bundle's folder of media, and copies it there. */
import { createHash } from "node:crypto";
import { basename, extname, isAbsolute, join, relative, resolve } from "node:path";
import { copy } from "fs-extra/esm";
import { isFile } from "../../shared/files.ts";
import { MEDIA } from "../import/folder.ts";

/** Where sites keep what stands at their root. */
const SITE_FOLDERS = ["", "static", "public"];

export type Media = {
  /** The name of the file in the bundle. `path` is null for a file that the source lacks, which `address` tells apart. */
  readonly place: (path: string | null, name: string, address: string | null) => string;
  /** The path of the file that a relative address in a folder of the source leads to; null when there is none. */
  readonly find: (folder: string, address: string) => string | null;
  /** Copies all files that have got a name, and resolves to their number. */
  readonly copyAll: (bundle: string) => Promise<number>;
  /** Addresses of files that the source lacks, by their names. */
  readonly missing: ReadonlyMap<string, string | null>;
};

/** `roots` are the folders that files may be taken from: an address must not lead elsewhere. */
export function openMedia(roots: readonly string[]): Media {
  /** What has each name: a path, or an address. */
  const owners = new Map<string, string>();
  const paths = new Map<string, string>();
  const missing = new Map<string, string | null>();

  function place(path: string | null, name: string, address: string | null): string {
    const owner = path ?? address ?? name;
    const wanted = cleanName(name);
    const free = (owners.get(wanted) ?? owner) === owner ? wanted : addDigest(wanted, relativeTo(roots, owner));
    owners.set(free, owner);
    if (path !== null) paths.set(free, path);
    else missing.set(free, address);
    return free;
  }

  return {
    place,
    missing,
    find: (folder, address) => {
      const [plain = ""] = address.split(/[?#]/);
      if (plain === "" || /^([a-z][a-z0-9+.-]*:|\/\/)/i.test(address)) return null;
      const decoded = decodeOrKeep(plain);
      const near = decoded.startsWith("/")
        ? roots.flatMap((root) => SITE_FOLDERS.map((below) => join(root, below, decoded)))
        : [resolve(folder, decoded)];
      return near.find((path) => roots.some((root) => isBelow(root, path)) && isFile(path)) ?? null;
    },
    copyAll: async (bundle) => {
      for (const [name, path] of paths)
        await copy(path, join(bundle, MEDIA, name), { preserveTimestamps: true, dereference: false });
      return paths.size;
    },
  };
}

/** The address of a file in answers: contract.md section 2. */
export function mediaAddress(base: string, appKey: string, name: string): string {
  return `${base.replace(/\/+$/, "")}/${appKey}/cms/media/${encodeURIComponent(name)}`;
}

function cleanName(name: string): string {
  const clean = basename(name.replaceAll("\\", "/"))
    .replaceAll(/\p{Cc}/gu, "")
    .replace(/^\.+/, "");
  return clean === "" ? "file" : clean;
}

function addDigest(name: string, owner: string): string {
  const ending = extname(name);
  const digest = createHash("sha256").update(owner).digest("hex").slice(0, 8);
  return `${name.slice(0, name.length - ending.length)}-${digest}${ending}`;
}

/** The same wherever the source lies. */
function relativeTo(roots: readonly string[], path: string): string {
  const root = roots.find((one) => isBelow(one, path));
  return root === undefined ? path : relative(root, path);
}

function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== "" && !way.startsWith("..") && !isAbsolute(way);
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
