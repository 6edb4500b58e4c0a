/** Settings of every command: where content, tree and media are, and how to print. */
import { flag, folder, mediaAddress, orElse, orNull, postgresUrl, setting } from "./setting.ts";

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
