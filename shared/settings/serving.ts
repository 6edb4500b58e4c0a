/** Settings of a server: where it listens, what resources it may use, and how its answers may be cached. */

import * as z from "zod";
import { DEFAULT_CACHE_POLICY } from "../api/answer.ts";
import { postgresUrl, setting } from "./common.ts";
import { flag, integer, matching, optional, several } from "./zod.ts";

/** Separated by blanks, not commas: a password in a URL may contain a comma, but no blank. */
const postgresUrls = () => several(/\s+/, postgresUrl()).default([]);
/** An IPv6 address may stand in brackets, as it does in a URL. */
const host = () =>
  matching(/\S/, "must be an address such as 127.0.0.1, 0.0.0.0 or ::").transform((text) =>
    text.replace(/^\[(.*)\]$/, "$1"),
  );
const NO_PROXY = "must be an IP address or a range of them, such as 10.0.0.0/8";
/** Separated by blanks or commas. */
const proxies = () => several(/[\s,]+/, z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], NO_PROXY)).default([]);
/** Not only blanks, which would be sent as an empty header. */
const header = () => matching(/^(?=.*\S)[\x20-\x7e]+$/, "must be a header value of printable ASCII characters");

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const SERVING = {
  readDatabaseUrl: setting(
    "--read-database-url <url...>",
    "streaming replicas of --database-url that answer live queries; for several, repeat the flag or separate the addresses with spaces",
    () => postgresUrls(),
  ),
  maxReplicaLag: setting(
    "--max-replica-lag <seconds>",
    "maximum lag of a replica in seconds, 5 by default; the primary answers in place of a replica that is further behind",
    () => integer(1, 3_600).default(5),
  ),
  host: setting("--host <address>", "address to listen on, 127.0.0.1 by default", () => host().default("127.0.0.1")),
  port: setting("--port <number>", "port to listen on, 3000 by default, 0 for any", () =>
    integer(0, 65_535).default(3000),
  ),
  adminPort: setting(
    "--admin-port <number>",
    "port for /healthz, /readyz and /metrics, 0 for any; without it, no admin port is opened",
    () => optional(integer(0, 65_535)),
  ),
  adminHost: setting("--admin-host <address>", "address that the admin port listens on, 127.0.0.1 by default", () =>
    host().default("127.0.0.1"),
  ),
  mediaPort: setting(
    "--media-port <number>",
    "port that shows the media of imported bundles, 0 for any; without it, none is opened",
    () => optional(integer(0, 65_535)),
  ),
  mediaHost: setting("--media-host <address>", "address that the media port listens on, 127.0.0.1 by default", () =>
    host().default("127.0.0.1"),
  ),
  studio: setting("--studio", "show the studio below /studio/ of the admin port", () => flag()),
  logLevel: setting(
    "--log-level <level>",
    `level of the log on standard error: ${LOG_LEVELS.join(", ")}; info by default, warn with --quiet; requests are logged at info`,
    () => optional(z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(", ")}`)),
  ),
  workers: setting("--workers <number>", "number of processes that answer on the port, 1 by default", () =>
    integer(1, 256).default(1),
  ),
  drain: setting(
    "--drain <seconds>",
    "seconds that open requests may take once the server is told to stop, 10 by default",
    () => integer(0, 3_600).default(10),
  ),
  maxConnections: setting(
    "--max-connections <number>",
    "maximum number of client connections, for all workers together, 10000 by default",
    () => integer(1, 1_000_000).default(10000),
  ),
  connections: setting(
    "--connections <number>",
    "maximum number of concurrent live queries on PostgreSQL, and on each replica, for all workers together, 10 by default; each ledger uses one more connection",
    () => integer(1, 1_000).default(10),
  ),
  queue: setting(
    "--queue <number>",
    "maximum number of live queries that wait for others to end, for all workers together, 200 by default; further ones are refused at once",
    () => integer(0, 100_000).default(200),
  ),
  memoryCache: setting(
    "--memory-cache <megabytes>",
    "memory for repeated answers, a quarter of it for answers from the database, for all workers together, 64 MB by default, 0 for none",
    () => integer(0, 1_000_000).default(64),
  ),
  trustedProxy: setting(
    "--trusted-proxy <addresses...>",
    "addresses of proxies (10.0.0.7, 10.0.0.0/8) whose X-Forwarded-For the log believes; without it, the log shows the address of the connection",
    () => proxies(),
  ),
  ledgerSync: setting(
    "--ledger-sync",
    "sync each count to the disk before its answer is sent, so that it also survives a power failure",
    () => flag(),
  ),
  tree: setting(
    "--tree <address>",
    "answer free requests from the tree that was deployed to s3://bucket/prefix or file:///folder, or from the address https://host/path of a CDN that shows all of it, instead of from --out",
    () => optional(z.string()),
  ),
  treeRefresh: setting(
    "--tree-refresh <seconds>",
    "seconds after a deploy within which answers from --tree are the new ones, 5 by default",
    () => integer(1, 3_600).default(5),
  ),
  treeCache: setting(
    "--tree-cache <megabytes>",
    "room in --data-dir for files of --tree, for all workers together, 1000 MB by default",
    () => integer(1, 10_000_000).default(1000),
  ),
  treePaths: setting(
    "--tree-paths",
    "also answer requests for the paths of the tree's files, for a CDN that asks this server for what its bucket lacks",
    () => flag(),
  ),
  cacheControl: setting("--cache-control <value>", "Cache-Control of free answers", () =>
    header().default(DEFAULT_CACHE_POLICY.browsers),
  ),
  cdnCacheControl: setting("--cdn-cache-control <value>", "CDN-Cache-Control of free answers", () =>
    header().default(DEFAULT_CACHE_POLICY.cdns),
  ),
  cacheTags: setting(
    "--cache-tags",
    "send free answers with the tags (Cache-Tag) that `precast deploy --purge cloudflare` purges",
    () => flag(),
  ),
} as const;
