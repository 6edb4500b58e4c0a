/**
 * The settings of Precast: each is a flag and an environment variable, described once. Reading them gives typed values,
 * or all problems at once.
 */
import { z } from "zod";
import { DEFAULT_CACHE_POLICY } from "./answer.ts";
import { APP_KEY } from "./catalog.ts";

export type Setting<T> = {
  /** As commander spells flags: `--out <dir>`. Null for a secret: others of the machine can read a command line. */
  readonly flags: string | null;
  readonly env: string;
  /** A second variable, for where the first is not set. */
  readonly envToo?: string;
  readonly describes: string;
  readonly schema: z.ZodType<T>;
};

export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

const optionalText = z
  .string()
  .optional()
  .transform((text) => text ?? null);

const setting = <T>(flags: string, env: string, describes: string, schema: z.ZodType<T>): Setting<T> => ({
  flags,
  env,
  describes,
  schema,
});

/** What proves who somebody is: in the environment alone, and never printed. */
const secret = (env: string, describes: string): Setting<string | null> => ({
  flags: null,
  env,
  describes,
  schema: optionalText,
});

const flag = z
  .union([z.boolean(), z.enum(["true", "1", "false", "0"])], { error: "must be true or false" })
  .optional()
  .transform((value) => value === true || value === "true" || value === "1");

const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`);

const appKey = z.string().regex(APP_KEY, "must be an app key: letters, digits, '_' and '-', at most 128");
const appKeys = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(/[\s,]+/).filter((key) => key !== ""))])
  .pipe(z.array(appKey));
const day = z.iso.date("must be a date such as 2026-01-20");
const webAddress = z.string().regex(/^https?:\/\/[^/\s]+\S*$/, "must be an address such as https://media.example.com");
const NO_ORIGIN = "must be an address without a path, such as https://api.example.com";
/** Requests go there with the path that they came with, so it has none of its own. */
const originAddress = z
  .string()
  .regex(/^https?:\/\/[a-zA-Z0-9.[\]:-]+\/?$/, NO_ORIGIN)
  .refine((url) => URL.canParse(url), NO_ORIGIN);
const optionalAddress = webAddress.optional().transform((url) => url ?? null);
const method = z.string().regex(/^[A-Z]+$/, "must be a method such as POST");
const header = z.string().regex(/^[\x20-\x7e]+$/, "must be the value of a header");

const POSTGRES_URL = /^postgres(ql)?:\/\//;
const NO_POSTGRES_URL = "must begin with postgres:// or postgresql://";
/** A password may hold a comma, and no blank. */
const postgresUrls = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(/\s+/).filter((url) => url !== ""))])
  .pipe(z.array(z.string().regex(POSTGRES_URL, NO_POSTGRES_URL)));

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const SETTINGS = {
  databaseUrl: setting(
    "--database-url <url>",
    "DATABASE_URL",
    "PostgreSQL to read; without it the embedded database",
    z
      .string()
      .regex(POSTGRES_URL, NO_POSTGRES_URL)
      .optional()
      .transform((url) => url ?? null),
  ),
  readDatabaseUrl: setting(
    "--read-database-url <url...>",
    "PRECAST_READ_DATABASE_URL",
    "streaming replicas of --database-url that take live queries; more than one by repeating the flag, or with blanks between them",
    postgresUrls.optional().transform((urls) => urls ?? []),
  ),
  maxReplicaLag: setting(
    "--max-replica-lag <seconds>",
    "PRECAST_MAX_REPLICA_LAG",
    "seconds for which a replica may lack what was written, 5 by default; the database itself answers in place of one that is further behind",
    whole(1, 3_600).default(5),
  ),
  dataDir: setting(
    "--data-dir <dir>",
    "PRECAST_DATA_DIR",
    "folder of the embedded database and of the ledger, .precast by default",
    z.string().default(".precast"),
  ),
  out: setting("--out <dir>", "PRECAST_OUT", "folder of the tree, out by default", z.string().default("out")),
  mediaBaseUrl: setting(
    "--media-base-url <url>",
    "PRECAST_MEDIA_BASE_URL",
    "where media of apps that set no address are, http://localhost:3000 by default",
    webAddress.default("http://localhost:3000"),
  ),
  json: setting(
    "--json",
    "PRECAST_JSON",
    "print one JSON value on standard output, everything else on standard error",
    flag,
  ),
  quiet: setting("--quiet", "PRECAST_QUIET", "print results and errors alone", flag),
  debug: setting("--debug", "PRECAST_DEBUG", "print the stack of an error", flag),
  apps: setting(
    "--app <key...>",
    "PRECAST_APP",
    "these apps alone",
    appKeys.optional().transform((keys) => keys ?? null),
  ),
  app: setting("--app <key>", "PRECAST_APP", "the app that is asked", appKey),
  oneApp: setting(
    "--app <key>",
    "PRECAST_APP",
    "this app alone",
    appKey.optional().transform((key) => key ?? null),
  ),
  prune: setting("--prune", "PRECAST_PRUNE", "delete what the bundle no longer has", flag),
  dryRun: setting("--dry-run", "PRECAST_DRY_RUN", "say what would change, and change nothing", flag),
  full: setting("--full", "PRECAST_FULL", "compute every answer anew", flag),
  fix: setting("--fix", "PRECAST_FIX", "do what is safe, without blocking writers", flag),
  watch: setting("--watch", "PRECAST_WATCH", "build the tree, and again whenever content changes", flag),
  host: setting(
    "--host <address>",
    "PRECAST_HOST",
    "address to listen on, 127.0.0.1 by default",
    z.string().default("127.0.0.1"),
  ),
  port: setting(
    "--port <number>",
    "PRECAST_PORT",
    "port to listen on, 3000 by default, 0 for any",
    whole(0, 65_535).default(3_000),
  ),
  adminPort: setting(
    "--admin-port <number>",
    "PRECAST_ADMIN_PORT",
    "port for /healthz, /readyz and /metrics, 0 for any; without it there is none",
    whole(0, 65_535)
      .optional()
      .transform((port) => port ?? null),
  ),
  adminHost: setting(
    "--admin-host <address>",
    "PRECAST_ADMIN_HOST",
    "address that the admin port listens on, 127.0.0.1 by default",
    z.string().default("127.0.0.1"),
  ),
  logLevel: setting(
    "--log-level <level>",
    "PRECAST_LOG_LEVEL",
    `what the log on standard error tells: ${LOG_LEVELS.join(", ")}; info by default, warn with --quiet; requests are told at info`,
    z
      .enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(", ")}` })
      .optional()
      .transform((level) => level ?? null),
  ),
  workers: setting(
    "--workers <number>",
    "PRECAST_WORKERS",
    "processes that answer on the port, 1 by default",
    whole(1, 256).default(1),
  ),
  drain: setting(
    "--drain <seconds>",
    "PRECAST_DRAIN",
    "seconds that open requests may take once the server is told to stop, 10 by default",
    whole(0, 3_600).default(10),
  ),
  maxConnections: setting(
    "--max-connections <number>",
    "PRECAST_MAX_CONNECTIONS",
    "clients that may be connected, of all workers together, 10000 by default",
    whole(1, 1_000_000).default(10_000),
  ),
  connections: setting(
    "--connections <number>",
    "PRECAST_CONNECTIONS",
    "live queries at once on PostgreSQL, and on each replica, of all workers together, 10 by default; each ledger has a connection of its own beside them",
    whole(1, 1_000).default(10),
  ),
  queue: setting(
    "--queue <number>",
    "PRECAST_QUEUE",
    "live queries that may wait for others to end, of all workers together, 200 by default; more are refused at once",
    whole(0, 100_000).default(200),
  ),
  memoryCache: setting(
    "--memory-cache <megabytes>",
    "PRECAST_MEMORY_CACHE",
    "memory for answers that are asked for again, a quarter of it for those of the database, of all workers together, 64 MB by default, 0 for none",
    whole(0, 1_000_000).default(64),
  ),
  ledgerSync: setting(
    "--ledger-sync",
    "PRECAST_LEDGER_SYNC",
    "answer counted requests when their counts would survive a power failure, and not only the end of the process",
    flag,
  ),
  cacheControl: setting(
    "--cache-control <value>",
    "PRECAST_CACHE_CONTROL",
    "Cache-Control of free answers",
    header.default(DEFAULT_CACHE_POLICY.browsers),
  ),
  cdnCacheControl: setting(
    "--cdn-cache-control <value>",
    "PRECAST_CDN_CACHE_CONTROL",
    "CDN-Cache-Control of free answers",
    header.default(DEFAULT_CACHE_POLICY.cdns),
  ),
  treePaths: setting(
    "--tree-paths",
    "PRECAST_TREE_PATHS",
    "answer the paths of the tree's files as well, for a CDN that asks this server for what its bucket lacks",
    flag,
  ),
  sample: setting(
    "--sample <number>",
    "PRECAST_SAMPLE",
    "compute so many answers of each app, evenly spread, instead of all",
    whole(1, 1_000_000_000)
      .optional()
      .transform((size) => size ?? null),
  ),
  since: setting(
    "--since <date>",
    "PRECAST_SINCE",
    "first day, in UTC",
    day.optional().transform((date) => date ?? null),
  ),
  until: setting(
    "--until <date>",
    "PRECAST_UNTIL",
    "last day, in UTC",
    day.optional().transform((date) => date ?? null),
  ),
  origin: setting(
    "--origin <url>",
    "PRECAST_ORIGIN",
    "where `precast serve` answers what is no file; on the same machine http://127.0.0.1:3000 by default",
    originAddress.optional().transform((url) => url ?? null),
  ),
  treeUrl: setting(
    "--tree-url <url>",
    "PRECAST_TREE_URL",
    "where a static host serves the files of the tree, for targets that have no files of their own",
    z
      .string()
      .regex(/^https?:\/\/[^/\s?#]+[^\s?#"]*$/, "must be an address such as https://tree.example.com")
      .refine((url) => URL.canParse(url), "must be an address such as https://tree.example.com")
      .optional()
      .transform((url) => url ?? null),
  ),
  write: setting(
    "--write <dir>",
    "PRECAST_WRITE",
    "write the files into this folder instead of printing them",
    z
      .string()
      .optional()
      .transform((folder) => folder ?? null),
  ),
  csv: setting("--csv", "PRECAST_CSV", "print the rows as CSV on standard output", flag),
  concurrency: setting(
    "--concurrency <number>",
    "PRECAST_CONCURRENCY",
    "requests to the store at once, 16 by default",
    whole(1, 256).default(16),
  ),
  maxDelete: setting(
    "--max-delete <number>",
    "PRECAST_MAX_DELETE",
    "refuse to delete more files than this, 256 by default",
    whole(0, 1_000_000_000).default(256),
  ),
  force: setting(
    "--force",
    "PRECAST_FORCE",
    "upload every file, whatever the store is known to have, and delete however many are too many",
    flag,
  ),
  retries: setting(
    "--retries <number>",
    "PRECAST_RETRIES",
    "times that a request is sent again after a fault that may pass, 7 by default",
    whole(0, 100).default(7),
  ),
  timeout: setting(
    "--timeout <seconds>",
    "PRECAST_TIMEOUT",
    "seconds that a request may take, 30 by default; large bodies may take longer",
    whole(1, 3_600).default(30),
  ),
  endpoint: setting(
    "--endpoint <url>",
    "AWS_ENDPOINT_URL",
    "address of an S3-compatible store; without it Amazon's of the region",
    optionalAddress,
  ),
  region: {
    ...setting("--region <name>", "AWS_REGION", "region of the bucket, us-east-1 by default", optionalText),
    envToo: "AWS_DEFAULT_REGION",
  },
  pathStyle: setting(
    "--path-style",
    "PRECAST_PATH_STYLE",
    "name the bucket in the path (https://host/bucket/key) and not in the host; so it is anyway where the host is an IP address",
    flag,
  ),
  accessKeyId: secret("AWS_ACCESS_KEY_ID", "who asks the store"),
  secretAccessKey: secret("AWS_SECRET_ACCESS_KEY", "the secret that belongs to AWS_ACCESS_KEY_ID"),
  sessionToken: secret("AWS_SESSION_TOKEN", "the token of credentials that are lent for a while"),
  purge: setting(
    "--purge <how>",
    "PRECAST_PURGE",
    "have a CDN forget what has changed: cloudflare, fastly, cloudfront, or an address with {path}, {url} and {key} that is called for each request",
    z
      .string()
      .regex(
        /^(cloudflare|fastly|cloudfront|https?:\/\/[^/\s]+\S*)$/,
        "must be cloudflare, fastly, cloudfront or an address",
      )
      .optional()
      .transform((how) => how ?? null),
  ),
  purgeMethod: setting(
    "--purge-method <method>",
    "PRECAST_PURGE_METHOD",
    "method with which the address of --purge is called, POST by default",
    method.default("POST"),
  ),
  purgeHeader: secret("PRECAST_PURGE_HEADER", "a header that the address of --purge wants, as `Name: value`"),
  purgeEndpoint: setting(
    "--purge-endpoint <url>",
    "PRECAST_PURGE_ENDPOINT",
    "address of the CDN's API, where it is not the usual one",
    optionalAddress,
  ),
  cloudflareZone: setting(
    "--cloudflare-zone <id>",
    "CLOUDFLARE_ZONE_ID",
    "zone that --purge cloudflare is for",
    optionalText,
  ),
  cloudflareToken: secret("CLOUDFLARE_API_TOKEN", "may purge the zone's cache"),
  fastlyService: setting(
    "--fastly-service <id>",
    "FASTLY_SERVICE_ID",
    "service that --purge fastly is for",
    optionalText,
  ),
  fastlyToken: secret("FASTLY_API_TOKEN", "may purge the service by keys"),
  cloudfrontDistribution: setting(
    "--cloudfront-distribution <id>",
    "CLOUDFRONT_DISTRIBUTION_ID",
    "distribution that --purge cloudfront is for",
    optionalText,
  ),
  waitVisible: setting(
    "--wait-visible <url>",
    "PRECAST_WAIT_VISIBLE",
    "wait until this address shows what was deployed: the start of the API's addresses, or an address with {path} or {file}",
    optionalAddress,
  ),
  waitLimit: setting(
    "--wait-limit <seconds>",
    "PRECAST_WAIT_LIMIT",
    "seconds that --wait-visible waits, 120 by default",
    whole(1, 86_400).default(120),
  ),
  state: setting(
    "--state <target>",
    "PRECAST_STATE",
    "where the tree was deployed to, s3://bucket/prefix or file:///folder: without a tree here, that one is fetched first",
    optionalText,
  ),
} as const;

export type SettingName = keyof typeof SETTINGS;
type ValueOf<S> = S extends Setting<infer T> ? T : never;
export type Settings<N extends SettingName> = { readonly [name in N]: ValueOf<(typeof SETTINGS)[name]> };

/** The settings that every command has. */
export const COMMON = [
  "databaseUrl",
  "dataDir",
  "out",
  "mediaBaseUrl",
  "json",
  "quiet",
  "debug",
] as const satisfies SettingName[];
export type CommonName = (typeof COMMON)[number];

/**
 * `flags` by the attribute names that commander makes of the flags. A flag goes before its environment variable, an empty
 * variable counts as not set. Throws ConfigError with all problems.
 */
export function readSettings<N extends SettingName>(
  names: readonly N[],
  flags: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): Settings<N> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const { env: first, envToo, schema } = SETTINGS[name] as Setting<unknown>;
    const variable = envToo !== undefined && !env[first] && env[envToo] ? envToo : first;
    const flag = flags[attributeOf(name)];
    const given = flag ?? (env[variable] || undefined);
    const result = schema.safeParse(given);
    if (result.success) values[name] = result.data;
    else if (given === undefined) problems.push(`${flagOf(name)} is missing (or ${variable} in the environment)`);
    else problems.push(`${flag === undefined ? variable : flagOf(name)} ${problemOf(result.error)}`);
  }
  problems.push(...conflictsOf(values));
  if (problems.length > 0) throw new ConfigError(problems);
  return values as Settings<N>;
}

/** What is right in itself and does not go together. Values that are wrong are not there. */
function conflictsOf({ databaseUrl, readDatabaseUrl }: Partial<Settings<SettingName>>): readonly string[] {
  if (databaseUrl !== null || !readDatabaseUrl?.length) return [];
  return [`${flagOf("readDatabaseUrl")} needs --database-url: the embedded database has no replicas`];
}

function problemOf(error: z.ZodError): string {
  const message = error.issues[0]?.message ?? "";
  return message.startsWith("must") ? message : "is not valid";
}

function flagOf(name: SettingName): string {
  const { flags, env } = SETTINGS[name] as Setting<unknown>;
  return flags?.split(" ")[0] ?? env;
}

/** `--data-dir <dir>` is `dataDir`. */
function attributeOf(name: SettingName): string {
  return flagOf(name)
    .slice(2)
    .replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
