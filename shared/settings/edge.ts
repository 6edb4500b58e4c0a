/** Settings of `precast edge`: the addresses in the configuration, and where to write it. */
import * as v from "valibot";
import { folder, matching, orNull, setting } from "./setting.ts";

const NO_ORIGIN = "must be an address without a path, such as https://api.example.com";
/** Must have no path of its own: requests are forwarded to the origin with theirs. */
const originAddress = v.pipe(matching(/^https?:\/\/[a-zA-Z0-9.[\]:-]+\/?$/, NO_ORIGIN), v.url(NO_ORIGIN));

const NO_TREE = "must be an address such as https://tree.example.com";
const treeAddress = v.pipe(matching(/^https?:\/\/[^/\s?#]+[^\s?#"]*$/, NO_TREE), v.url(NO_TREE));

export const EDGE = {
  origin: setting(
    "--origin <url>",
    "PRECAST_ORIGIN",
    "address of the `precast serve` that answers requests for which the tree has no file; http://127.0.0.1:3000 by default for an edge on the same machine",
    orNull(originAddress),
  ),
  treeUrl: setting(
    "--tree-url <url>",
    "PRECAST_TREE_URL",
    "address at which a static host serves the files of the tree, for targets that do not store the files themselves",
    orNull(treeAddress),
  ),
  write: setting(
    "--write <dir>",
    "PRECAST_WRITE",
    "write the files into this folder instead of printing them; files that people change are left as they are",
    orNull(folder),
  ),
} as const;
