/** Settings of a server: where it listens, what resources it may use, and how its answers may be cached. */
import * as v from "valibot";
import { DEFAULT_CACHE_POLICY } from "../api/answer.ts";
import { flag, header, host, orElse, orNull, postgresUrl, setting, several, whole } from "./setting.ts";

/** Separated by blanks, not commas: a password in a URL may contain a comma, but no blank. */
const postgresUrls = v.pipe(
  v.optional(several(/\s+/, postgresUrl)),
  v.transform((urls) => urls ?? []),
);

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const SERVING = {
  readDatabaseUrl: setting(
    "--read-database-url <url...>",
    "PRECAST_READ_DATABASE_URL",
    "streaming replicas of --database-url that answer live queries; for several, repeat the flag or separate the addresses with spaces",
    postgresUrls,
  ),
  maxReplicaLag: setting(
    "--max-replica-lag <seconds>",
    "PRECAST_MAX_REPLICA_LAG",
    "maximum lag of a replica in seconds, 5 by default; the primary answers in place of a replica that is further behind",
    orElse(whole(1, 3_600), "5"),
  ),
  host: setting(
    "--host <address>",
    "PRECAST_HOST",
    "address to listen on, 127.0.0.1 by default",
    orElse(host, "127.0.0.1"),
  ),
  port: setting(
    "--port <number>",
    "PRECAST_PORT",
    "port to listen on, 3000 by default, 0 for any",
    orElse(whole(0, 65_535), "3000"),
  ),
  adminPort: setting(
    "--admin-port <number>",
    "PRECAST_ADMIN_PORT",
    "port for /healthz, /readyz and /metrics, 0 for any; without it, no admin port is opened",
    orNull(whole(0, 65_535)),
  ),
  adminHost: setting(
    "--admin-host <address>",
    "PRECAST_ADMIN_HOST",
    "address that the admin port listens on, 127.0.0.1 by default",
    orElse(host, "127.0.0.1"),
  ),
  logLevel: setting(
    "--log-level <level>",
    "PRECAST_LOG_LEVEL",
    `level of the log on standard error: ${LOG_LEVELS.join(", ")}; info by default, warn with --quiet; requests are logged at info`,
    orNull(v.picklist(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(", ")}`)),
  ),
  workers: setting(
    "--workers <number>",
    "PRECAST_WORKERS",
    "number of processes that answer on the port, 1 by default",
    orElse(whole(1, 256), "1"),
  ),
  drain: setting(
    "--drain <seconds>",
    "PRECAST_DRAIN",
    "seconds that open requests may take once the server is told to stop, 10 by default",
    orElse(whole(0, 3_600), "10"),
  ),
  maxConnections: setting(
    "--max-connections <number>",
    "PRECAST_MAX_CONNECTIONS",
    "maximum number of client connections, for all workers together, 10000 by default",
    orElse(whole(1, 1_000_000), "10000"),
  ),
  connections: setting(
    "--connections <number>",
    "PRECAST_CONNECTIONS",
    "maximum number of concurrent live queries on PostgreSQL, and on each replica, for all workers together, 10 by default; each ledger uses one more connection",
    orElse(whole(1, 1_000), "10"),
  ),
  queue: setting(
    "--queue <number>",
    "PRECAST_QUEUE",
    "maximum number of live queries that wait for others to end, for all workers together, 200 by default; further ones are refused at once",
    orElse(whole(0, 100_000), "200"),
  ),
  memoryCache: setting(
    "--memory-cache <megabytes>",
    "PRECAST_MEMORY_CACHE",
    "memory for repeated answers, a quarter of it for answers from the database, for all workers together, 64 MB by default, 0 for none",
    orElse(whole(0, 1_000_000), "64"),
  ),
  ledgerSync: setting(
    "--ledger-sync",
    "PRECAST_LEDGER_SYNC",
    "sync each count to the disk before its answer is sent, so that it also survives a power failure",
    flag,
  ),
  treePaths: setting(
    "--tree-paths",
    "PRECAST_TREE_PATHS",
    "also answer requests for the paths of the tree's files, for a CDN that asks this server for what its bucket lacks",
    flag,
  ),
  cacheControl: setting(
    "--cache-control <value>",
    "PRECAST_CACHE_CONTROL",
    "Cache-Control of free answers",
    orElse(header, DEFAULT_CACHE_POLICY.browsers),
  ),
  cdnCacheControl: setting(
    "--cdn-cache-control <value>",
    "PRECAST_CDN_CACHE_CONTROL",
    "CDN-Cache-Control of free answers",
    orElse(header, DEFAULT_CACHE_POLICY.cdns),
  ),
  cacheTags: setting(
    "--cache-tags",
    "PRECAST_CACHE_TAGS",
    "send free answers with the tags (Cache-Tag) that `precast deploy --purge cloudflare` purges",
    flag,
  ),
} as const;
