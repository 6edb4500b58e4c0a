/**
 * Defines what a setting is and how its text becomes a value, and the settings of every command, those that choose what
 * a command does, and those of `precast edge`.
 */
import type { ZodType } from "zod";
import * as z from "zod";
import { APP_KEY, isMediaBaseUrl, LOCAL_MEDIA } from "../api/catalog.ts";
import { isDate } from "../api/value.ts";
import { flag, integer, matching, optional, several } from "./zod.ts";

export type Setting<T = unknown> = {
  /** In commander's syntax: `--out <dir>`. Null for a secret: other users of the machine can read command lines. */
  readonly flags: string | null;
  /** The first of these variables that is set counts. */
  readonly env: readonly [string, ...string[]];
  readonly describes: string;
  /** Made when it is needed: a command reads few of all settings. */
  readonly schema: () => ZodType<T>;
};

/** The variable of `--max-delete` is PRECAST_MAX_DELETE, unless other variables are given. */
export function setting<T>(flags: string, describes: string, schema: () => ZodType<T>, ...env: string[]): Setting<T> {
  const [name = ""] = flags.slice(2).split(" ");
  const [first = `PRECAST_${name.toUpperCase().replaceAll("-", "_")}`, ...others] = env;
  return { flags, env: [first, ...others], describes, schema };
}

const SEVERAL_HOSTS =
  "names several hosts, and Precast connects to one: name the primary, or a proxy that finds it (HAProxy, PgBouncer); " +
  "replicas that answer live queries go into --read-database-url";

/** `postgres://a,b/db`, or `?host=a,b`. A password may contain a comma. */
function hasSeveralHosts(url: string): boolean {
  const [, hosts = "", query = ""] = /^\w+:\/\/(?:[^/?]*@)?([^/?]*)[^?]*\??(.*)$/s.exec(url) ?? [];
  return [hosts, new URLSearchParams(query).get("host") ?? ""].some((host) => host.includes(","));
}

/** An address without a host, as in `user@/name`, means a Unix socket; URL.canParse would refuse it. */
export const postgresUrl = () =>
  matching(/^postgres(ql)?:\/\//, "must begin with postgres:// or postgresql://")
    .refine((url) => !hasSeveralHosts(url), SEVERAL_HOSTS)
    .refine(
      (url) => URL.canParse(url.replace("@/", "@localhost/")),
      "must be an address such as postgres://user:password@host:5432/name; in a password, / is written %2F, # %23, ? %3F, " +
        "@ %40 and % %25",
    );

const folder = () => matching(/./s, "must be the name of a folder");
const file = () => matching(/./s, "must be the name of a file");
const mediaAddress = () =>
  z.string().refine(isMediaBaseUrl, "must be an address such as https://media.example.com, without ? and #");
const day = () => z.string().refine(isDate, "must be a date such as 2026-01-20");
const appKey = () =>
  matching(APP_KEY, "must be an app key: at most 128 letters, digits, '_' and '-', beginning with a letter or digit");
const appKeys = () => several(/[\s,]+/, appKey()).refine((keys) => keys.length > 0, "must name at least one app");

export const COMMON = {
  databaseUrl: setting(
    "--database-url <url>",
    "address of the PostgreSQL database; without it, the embedded database is used",
    () => optional(postgresUrl()),
    "DATABASE_URL",
  ),
  dataDir: setting("--data-dir <dir>", "folder of the embedded database and of the ledger, .precast by default", () =>
    folder().default(".precast"),
  ),
  out: setting("--out <dir>", "folder of the tree, out by default", () => folder().default("out")),
  mediaBaseUrl: setting(
    "--media-base-url <url>",
    `base URL of media for apps that set none, ${LOCAL_MEDIA} by default`,
    () => optional(mediaAddress()),
  ),
  json: setting("--json", "print one JSON value on standard output, everything else on standard error", () => flag()),
  quiet: setting("--quiet", "print only results and errors", () => flag()),
  debug: setting("--debug", "print the stack trace of an error", () => flag()),
} as const;

/** Gigabytes: a hundred times the tree of 100,000 entries, and less than most disks have. */
export const DEFAULT_MAX_SIZE = 50;

/** Settings that choose what a command does: for which apps and days, and how much. */
export const CHOOSING = {
  apps: setting("--app <key...>", "only for these apps", () => optional(appKeys())),
  app: setting("--app <key>", "the app that the request is for; may be left out when there is only one", () =>
    optional(appKey()),
  ),
  sql: setting("--sql", "print the SQL of the answer, and its values", () => flag()),
  plan: setting("--plan", "print the steps of the query's plan", () => flag()),
  oneApp: setting("--app <key>", "only for this app", () => optional(appKey())),
  types: setting("--type <slug...>", "only these content types", () => optional(several(/[\s,]+/, z.string()))),
  prune: setting("--prune", "delete what the bundle no longer contains", () => flag()),
  strict: setting(
    "--strict",
    "exit with 2 when something cannot be carried over, or is missing; nothing is imported then",
    () => flag(),
  ),
  dryRun: setting("--dry-run", "report what would change without changing anything", () => flag()),
  full: setting("--full", "recompute every answer", () => flag()),
  maxSize: setting(
    "--max-size <gigabytes>",
    `refuse to build a tree that would be larger than this, ${DEFAULT_MAX_SIZE} GB by default`,
    () => integer(1, 1_000_000).default(DEFAULT_MAX_SIZE),
  ),
  fix: setting("--fix", "apply the safe recommendations, without blocking writers", () => flag()),
  watch: setting("--watch", "build the tree, and rebuild it whenever content changes", () => flag()),
  sample: setting("--sample <number>", "compute this many answers of each app, evenly spread, instead of all", () =>
    optional(integer(1, 1_000_000_000)),
  ),
  since: setting("--since <date>", "first day, in UTC", () => optional(day())),
  until: setting("--until <date>", "last day, in UTC", () => optional(day())),
  by: setting(
    "--by <what>",
    "group by shape (the default), type, or field: by types and the names of the fields that requests filter, sort and populate by",
    () => z.enum(["shape", "type", "field"], "must be shape, type or field").default("shape"),
  ),
  summary: setting("--summary <file>", "append what was done to this file, as a table in Markdown", () =>
    optional(file()),
  ),
  csv: setting("--csv", "print the rows as CSV on standard output", () => flag()),
} as const;

const NO_ORIGIN = "must be an address without a path, such as https://api.example.com";
/** Must have no path of its own: requests are forwarded to the origin with theirs. */
const originAddress = () => z.url(NO_ORIGIN).regex(/^https?:\/\/[a-zA-Z0-9.[\]:-]+\/?$/, NO_ORIGIN);

const NO_TREE = "must be an address such as https://tree.example.com";
const treeAddress = () => z.url(NO_TREE).regex(/^https?:\/\/[^/\s?#]+[^\s?#"]*$/, NO_TREE);

/** Settings of `precast edge`: the addresses in the configuration, and where to write it. */
export const EDGE = {
  origin: setting(
    "--origin <url>",
    "address of the `precast serve` that answers requests for which the tree has no file; http://127.0.0.1:3000 by default for an edge on the same machine",
    () => optional(originAddress()),
  ),
  treeUrl: setting(
    "--tree-url <url>",
    "address at which a static host serves the files of the tree, for targets that do not store the files themselves",
    () => optional(treeAddress()),
  ),
  write: setting(
    "--write <dir>",
    "write the files into this folder instead of printing them; files that people change are left as they are",
    () => optional(folder()),
  ),
} as const;

export const TEMPLATE_NAMES = ["blog", "shop", "docs", "empty"] as const;
export type TemplateName = (typeof TEMPLATE_NAMES)[number];

/** Settings of `precast init`. */
export const INIT = {
  template: setting(
    "--template <name>",
    `content to begin with: ${TEMPLATE_NAMES.join(", ")}; blog by default where nobody can be asked`,
    () => optional(z.enum(TEMPLATE_NAMES, `must be one of ${TEMPLATE_NAMES.join(", ")}`)),
  ),
} as const;

export const TYPES_LANGUAGES = ["ts", "json-schema", "swift", "kotlin", "dart"] as const;
export type TypesLanguage = (typeof TYPES_LANGUAGES)[number];

/** Settings of `precast types`, and of `precast openapi`. */
export const TYPES = {
  lang: setting("--lang <language>", `${TYPES_LANGUAGES.join(", ")}; ts (TypeScript) by default`, () =>
    z.enum(TYPES_LANGUAGES, `must be one of ${TYPES_LANGUAGES.join(", ")}`).default("ts"),
  ),
  values: setting("--values", "make select fields unions of the values that entries have", () => flag()),
  typesFile: setting(
    "--write <file>",
    "write the types into this file instead of printing them",
    () => optional(file()),
    "PRECAST_TYPES_FILE",
  ),
  openapiFile: setting(
    "--write <file>",
    "write the document into this file instead of printing it",
    () => optional(file()),
    "PRECAST_OPENAPI_FILE",
  ),
  check: setting("--check", "compare the file of --write with what would be written, and write nothing", () => flag()),
} as const;

/** Settings of `precast convert`, and of `precast import --from`. */
export const CONVERT = {
  from: setting("--from <format>", "convert the folder or file from this format first: see precast convert", () =>
    optional(z.string()),
  ),
  bundleApp: setting("--app <key>", "key of the app; that of the bundle, or the name of its folder by default", () =>
    optional(appKey()),
  ),
  locale: setting(
    "--locale <code>",
    "language to read where the source has several, such as en-US; its default by default",
    () => optional(z.string()),
  ),
  unsafeHtml: setting(
    "--unsafe-html",
    "keep HTML as it is: otherwise what could run in a reader's browser is removed",
    () => flag(),
  ),
} as const;

/** Settings of `precast studio` and `precast report`. */
export const STUDIO = {
  studioPort: setting(
    "--port <number>",
    "port of the page, 4000 by default, 0 for any",
    () => integer(0, 65_535).default(4000),
    "PRECAST_STUDIO_PORT",
  ),
  open: setting("--open", "open the page in the browser", () => flag()),
  reportFile: setting(
    "--html <file>",
    "write the report into this file, as one page that needs nothing else",
    () => folder(),
    "PRECAST_REPORT_FILE",
  ),
  monthlyPlan: setting(
    "--plan <requests>",
    "counted requests a month that are paid for, with which the forecast of the month is compared",
    () => optional(integer(1, 1_000_000_000_000)),
    "PRECAST_MONTHLY_PLAN",
  ),
} as const;

export const PRESETS = ["directus", "strapi", "payload", "none"] as const;
export type PresetName = (typeof PRESETS)[number];

/** Settings of `precast adopt` and `precast sync`. */
export const ADOPTING = {
  source: setting(
    "--from <url>",
    "address of the PostgreSQL database that has your tables; by default that of the mapping, or --database-url",
    () => optional(postgresUrl()),
    "PRECAST_SOURCE_URL",
  ),
  map: setting("--map <file>", "the mapping, precast.map.json by default", () => file().default("precast.map.json")),
  adoptedApp: setting(
    "--app <key>",
    "key of the app, by default the name of the database that has the tables",
    () => optional(appKey()),
    "PRECAST_APP",
  ),
  preset: setting(
    "--preset <name>",
    `whose tables these are: ${PRESETS.join(", ")}; by default, the tables themselves tell`,
    () => optional(z.enum(PRESETS, `must be one of ${PRESETS.join(", ")}`)),
  ),
  overwrite: setting("--overwrite", "replace a mapping that is there already", () => flag()),
  pruneTypes: setting(
    "--prune",
    "delete the app's content types that the mapping lacks",
    () => flag(),
    "PRECAST_PRUNE",
  ),
  keepSyncing: setting(
    "--watch",
    "go on bringing what differs, as soon as it is announced or noticed",
    () => flag(),
    "PRECAST_KEEP_SYNCING",
  ),
  every: setting("--every <seconds>", "how often to look for changes that nobody announces, 10 by default", () =>
    integer(1, 86_400).default(10),
  ),
  triggers: setting(
    "--triggers <what>",
    "print, install or remove the triggers by which your tables announce each commit, and do nothing else",
    () => optional(z.enum(["print", "install", "remove"], "must be print, install or remove")),
  ),
} as const;

/** Settings of `precast mcp`. */
export const MCP = {
  apiUrl: setting(
    "--url <url>",
    "address of the API, all that stands before /api/v1; http://127.0.0.1:3000 by default",
    () =>
      matching(/^https?:\/\/[^\s?#]+$/, "must be an address such as https://content.example.com").default(
        "http://127.0.0.1:3000",
      ),
    "PRECAST_API_URL",
  ),
  budget: setting("--budget <requests>", "refuse counted requests when so many were sent", () =>
    optional(integer(0, 1_000_000_000)),
  ),
} as const;
