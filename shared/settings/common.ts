/** Settings of every command: where content, tree and media are, and how to print. */
import * as v from "valibot";
import {
  appKey,
  appKeys,
  day,
  flag,
  folder,
  matching,
  mediaAddress,
  orElse,
  orNull,
  postgresUrl,
  setting,
  whole,
} from "./setting.ts";

export const COMMON = {
  databaseUrl: setting(
    "--database-url <url>",
    "DATABASE_URL",
    "address of the PostgreSQL database; without it, the embedded database is used",
    orNull(postgresUrl),
  ),
  dataDir: setting(
    "--data-dir <dir>",
    "PRECAST_DATA_DIR",
    "folder of the embedded database and of the ledger, .precast by default",
    orElse(folder, ".precast"),
  ),
  out: setting("--out <dir>", "PRECAST_OUT", "folder of the tree, out by default", orElse(folder, "out")),
  mediaBaseUrl: setting(
    "--media-base-url <url>",
    "PRECAST_MEDIA_BASE_URL",
    "base URL of media for apps that set none, http://localhost:3000 by default",
    orElse(mediaAddress, "http://localhost:3000"),
  ),
  json: setting(
    "--json",
    "PRECAST_JSON",
    "print one JSON value on standard output, everything else on standard error",
    flag,
  ),
  quiet: setting("--quiet", "PRECAST_QUIET", "print only results and errors", flag),
  debug: setting("--debug", "PRECAST_DEBUG", "print the stack trace of an error", flag),
} as const;

// Settings that choose what a command does: for which apps and days, and how much.

export const CHOOSING = {
  apps: setting("--app <key...>", "PRECAST_APP", "only for these apps", orNull(appKeys)),
  app: setting("--app <key>", "PRECAST_APP", "the app that the request is for", appKey),
  oneApp: setting("--app <key>", "PRECAST_APP", "only for this app", orNull(appKey)),
  prune: setting("--prune", "PRECAST_PRUNE", "delete what the bundle no longer contains", flag),
  dryRun: setting("--dry-run", "PRECAST_DRY_RUN", "report what would change without changing anything", flag),
  full: setting("--full", "PRECAST_FULL", "recompute every answer", flag),
  fix: setting("--fix", "PRECAST_FIX", "apply the safe recommendations, without blocking writers", flag),
  watch: setting("--watch", "PRECAST_WATCH", "build the tree, and rebuild it whenever content changes", flag),
  sample: setting(
    "--sample <number>",
    "PRECAST_SAMPLE",
    "compute this many answers of each app, evenly spread, instead of all",
    orNull(whole(1, 1_000_000_000)),
  ),
  since: setting("--since <date>", "PRECAST_SINCE", "first day, in UTC", orNull(day)),
  until: setting("--until <date>", "PRECAST_UNTIL", "last day, in UTC", orNull(day)),
  csv: setting("--csv", "PRECAST_CSV", "print the rows as CSV on standard output", flag),
} as const;

// Settings of `precast edge`: the addresses in the configuration, and where to write it.

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
