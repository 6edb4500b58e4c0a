/** Settings that choose what a command does: for which apps and days, and how much. */
import { appKey, appKeys, day, flag, orNull, setting, whole } from "./setting.ts";

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
