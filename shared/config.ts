/**
 * Collects the settings of Precast, each with its flag, its environment variable and its key in a file (secrets have the
 * variable alone), and reads them into typed values, or reports all problems at once.
 */
import {
  ADOPTING,
  CHOOSING,
  COMMON,
  CONVERT,
  EDGE,
  INIT,
  MCP,
  type Setting,
  STUDIO,
  TYPES,
} from "./settings/common.ts";
import { DEPLOYING } from "./settings/deploying.ts";
import { PLANNING } from "./settings/planning.ts";
import { SERVING } from "./settings/serving.ts";
import { WORKING } from "./settings/working.ts";
import { findNearest } from "./text.ts";

export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

export const SETTINGS = {
  ...COMMON,
  ...CHOOSING,
  ...SERVING,
  ...EDGE,
  ...DEPLOYING,
  ...INIT,
  ...TYPES,
  ...CONVERT,
  ...STUDIO,
  ...MCP,
  ...ADOPTING,
  ...WORKING,
  ...PLANNING,
} as const;

export type SettingName = keyof typeof SETTINGS;
type ValueOf<S> = S extends Setting<infer T> ? T : never;
export type Settings<N extends SettingName> = { readonly [name in N]: ValueOf<(typeof SETTINGS)[name]> };

/** The settings that every command has. */
export const COMMON_NAMES = Object.keys(COMMON) as CommonName[];
export type CommonName = keyof typeof COMMON;

/** Settings that a file has, by `nameKey`, with values as JSON has them. `name` is for messages. */
export type SettingsFile = { readonly name: string; readonly values: Readonly<Record<string, unknown>> };

/** Where values are given. The first place that has one counts; an empty variable and `null` in a file count as none. */
export type Given = {
  /** By the attribute names that commander derives from the flags. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file: SettingsFile | null;
};

type Found = {
  readonly from: "flag" | "environment" | "file" | "default";
  /** How messages name it. */
  readonly place: string;
  readonly value: unknown;
};

/** Throws ConfigError with all problems. */
export function readSettings<N extends SettingName>(
  names: readonly N[],
  flags: Given["flags"],
  env: Given["env"],
  file: Given["file"] = null,
): Settings<N> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const found = findGiven(name, { flags, env, file });
    const result = readValue(name, found);
    if ("value" in result) values[name] = result.value;
    else if (found.value !== undefined) problems.push(`${found.place} ${result.problem}`);
    else problems.push(`${nameFlag(name)} is missing (or ${SETTINGS[name].env[0]} in the environment)`);
  }
  problems.push(...findConflicts(values), ...vainFlags(names, flags, values), ...fileProblems(file));
  if (problems.length > 0) throw new ConfigError(problems);
  return values as Settings<N>;
}

export type TracedSetting = {
  readonly name: SettingName;
  readonly key: string;
  /** Null where there is none. */
  readonly value: unknown;
  readonly from: Found["from"];
  readonly place: string;
};

/** Every setting of any command, with its value and where that comes from. Throws ConfigError with all problems. */
export function traceSettings(given: Given): TracedSetting[] {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const traced = NAMES.filter((name) => NAMES.find((one) => nameKey(one) === nameKey(name)) === name).map((name) => {
    const found = findGiven(name, given);
    const result = readValue(name, found);
    if ("value" in result) values[name] = result.value;
    // What is needed may be missing here: its command says so.
    else if (found.value !== undefined) problems.push(`${found.place} ${result.problem}`);
    return { name, key: nameKey(name), value: values[name] ?? null, from: found.from, place: found.place };
  });
  problems.push(...findConflicts(values), ...fileProblems(given.file));
  if (problems.length > 0) throw new ConfigError(problems);
  return traced;
}

const NAMES = Object.keys(SETTINGS) as SettingName[];

function findGiven(name: SettingName, { flags, env, file }: Given): Found {
  const variables: readonly string[] = SETTINGS[name].env;
  const flag = flags[nameAttribute(name)];
  if (flag !== undefined) return { from: "flag", place: nameFlag(name), value: flag };
  const variable = variables.find((one) => env[one]);
  if (variable !== undefined) return { from: "environment", place: variable, value: env[variable] };
  const key = nameKey(name);
  const value = file !== null && Object.hasOwn(file.values, key) ? (file.values[key] ?? undefined) : undefined;
  if (value !== undefined) return { from: "file", place: `${file?.name}: "${key}"`, value };
  return { from: "default", place: nameFlag(name), value };
}

export function isGiven(name: SettingName, given: Given): boolean {
  return findGiven(name, given).from !== "default";
}

type ReadValue = { readonly value: unknown } | { readonly problem: string };

function readValue(name: SettingName, { from, value }: Found): ReadValue {
  // `--out $OUT --full` with an empty variable: the parser takes the next option for the value.
  if (from === "flag" && typeof value === "string" && value.startsWith("--"))
    return { problem: `must be followed by a value, not by ${value}` };
  if (from === "file") return readFileValue(SETTINGS[name], value);
  return readText(SETTINGS[name], value);
}

function readText({ schema }: Setting, text: unknown): ReadValue {
  const { success, data, error } = schema().safeParse(text);
  return success ? { value: data } : { problem: error.issues[0]?.message ?? "" };
}

/** In a file, numbers are numbers, and flags are true or false; all else is text, as in a command line. */
function readFileValue(setting: Setting, value: unknown): ReadValue {
  const isText = typeof value === "string" || (Array.isArray(value) && takesSeveral(setting));
  if (!isText && typeof value !== "number" && typeof value !== "boolean")
    return { problem: takesSeveral(setting) ? "must be text, or a list of texts" : "must be one value" };
  const result = readText(setting, isText ? value : String(value));
  if ("problem" in result) return result;
  if (Array.isArray(result.value) ? isText : typeof result.value === typeof value) return result;
  if (typeof result.value === "string" || Array.isArray(result.value)) return { problem: "must be text in quotes" };
  return { problem: `must be ${typeof result.value === "number" ? "a number" : "true or false"}, without quotes` };
}

function takesSeveral({ flags }: Setting): boolean {
  return flags?.includes("...") === true;
}

/** Keys that no command has, and secrets: this file is for everyone who has the project. */
function fileProblems(file: SettingsFile | null): readonly string[] {
  if (file === null) return [];
  // Editors take `$schema` for the schema of the file.
  const keys = Object.keys(file.values).filter((key) => key !== "$schema");
  return keys.flatMap((key) => {
    const name = NAMES.find((one) => nameKey(one) === key);
    if (name === undefined) return [`${file.name}: "${key}" is no setting: ${suggestKey(key)}`];
    const { flags, env }: Setting = SETTINGS[name];
    if (flags !== null) return [];
    return [
      `${file.name}: "${key}" is a secret and must not be in this file: set ${env[0]} in .env or the environment`,
    ];
  });
}

function suggestKey(key: string): string {
  const given = NAMES.filter((name) => SETTINGS[name].flags !== null).map(nameKey);
  const near = findNearest(key.replace(/^(--|PRECAST_)/i, "").replace(/[-_]/g, ""), given);
  return near === null ? "write flags in camel case, as databaseUrl for --database-url" : `did you mean "${near}"?`;
}

/** Problems of values that are valid but contradict each other. Invalid values are missing from the argument. */
function findConflicts({
  databaseUrl,
  readDatabaseUrl,
  port,
  adminPort,
  mediaPort,
  studioPort,
  tree,
  watch,
  studio,
}: Partial<Settings<SettingName>>): readonly string[] {
  return [
    ...(databaseUrl === null && readDatabaseUrl?.length
      ? [`${nameFlag("readDatabaseUrl")} needs --database-url: the embedded database has no replicas`]
      : []),
    ...(port && port === adminPort
      ? [`${nameFlag("adminPort")} must be another port than --port, which is ${port}`]
      : []),
    ...(mediaPort && [port, studioPort, adminPort].includes(mediaPort)
      ? [`${nameFlag("mediaPort")} must be a port of its own, but ${mediaPort} is another one as well`]
      : []),
    ...(tree && watch
      ? [
          `${nameFlag("watch")} builds the tree in --out, which a server with ${nameFlag("tree")} does not read: build and deploy it elsewhere`,
        ]
      : []),
    ...(tree && studio
      ? [
          `${nameFlag("studio")} shows the tree in --out, which a server with ${nameFlag("tree")} does not read: run precast studio`,
        ]
      : []),
  ];
}

/**
 * Flags that do nothing without another setting, the first of these that the command has. Their variables may be set for
 * other commands, so those are no problem.
 */
const NEEDED: { readonly [name in SettingName]?: readonly SettingName[] } = {
  check: ["typesFile", "openapiFile"],
  maxReplicaLag: ["readDatabaseUrl"],
  adminHost: ["adminPort"],
  mediaHost: ["mediaPort"],
  studio: ["adminPort"],
  treeRefresh: ["tree"],
  treeCache: ["tree"],
  endpoint: ["tree"],
  region: ["tree"],
  pathStyle: ["tree"],
  purgeMethod: ["purge"],
  purgeEndpoint: ["purge"],
  cloudflareZone: ["purge"],
  fastlyService: ["purge"],
  cloudfrontDistribution: ["purge"],
  waitLimit: ["waitVisible"],
};

/** `values` lacks invalid ones, which are reported as such. */
function vainFlags(
  names: readonly SettingName[],
  flags: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): readonly string[] {
  return names.flatMap((name) => {
    const needed = NEEDED[name]?.find((one) => names.includes(one));
    if (needed === undefined || flags[nameAttribute(name)] === undefined || !(name in values)) return [];
    const value = values[needed];
    const isAbsent = value === null || (Array.isArray(value) && value.length === 0);
    return isAbsent ? [`${nameFlag(name)} has no effect without ${nameFlag(needed)}`] : [];
  });
}

function nameFlag(name: SettingName): string {
  const { flags, env }: Setting = SETTINGS[name];
  return flags?.split(" ")[0] ?? env[0];
}

/** The attribute that commander derives from a flag: `dataDir` from `--data-dir <dir>`. */
function nameAttribute(name: SettingName): string {
  return writeCamelCase(nameFlag(name).slice(2));
}

/**
 * The key of a setting in a file: its flag in camel case. Some commands have the same flag for different things, such as
 * `--write`: these have variables of their own, which name them here too (`typesFile`, PRECAST_TYPES_FILE).
 */
export function nameKey(name: SettingName): string {
  const { flags, env }: Setting = SETTINGS[name];
  const [, own] = /^PRECAST_(.*)$/.exec(env[0]) ?? [];
  if (own !== undefined) return writeCamelCase(own.toLowerCase());
  return flags === null ? name : nameAttribute(name);
}

function writeCamelCase(name: string): string {
  return name.replace(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase());
}
