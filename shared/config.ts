/**
 * Collects the settings of Precast, each with its flag and environment variable (secrets have no flag), and reads them
 * into typed values, or reports all problems at once.
 */
import { CHOOSING, COMMON, CONVERT, EDGE, MCP, type Setting, STUDIO, TYPES } from "./settings/common.ts";
import { DEPLOYING } from "./settings/deploying.ts";
import { SERVING } from "./settings/serving.ts";

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
  ...TYPES,
  ...CONVERT,
  ...STUDIO,
  ...MCP,
} as const;

export type SettingName = keyof typeof SETTINGS;
type ValueOf<S> = S extends Setting<infer T> ? T : never;
export type Settings<N extends SettingName> = { readonly [name in N]: ValueOf<(typeof SETTINGS)[name]> };

/** The settings that every command has. */
export const COMMON_NAMES = Object.keys(COMMON) as CommonName[];
export type CommonName = keyof typeof COMMON;

/**
 * `flags` has the attribute names that commander derives from the flags. A flag takes precedence over its environment
 * variable; an empty variable counts as not set. Throws ConfigError with all problems.
 */
export function readSettings<N extends SettingName>(
  names: readonly N[],
  flags: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): Settings<N> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const { env: variables, schema }: Setting = SETTINGS[name];
    const variable = variables.find((one) => env[one]) ?? variables[0];
    const flag = flags[nameAttribute(name)];
    const given = flag ?? (env[variable] || undefined);
    const result = schema().safeParse(given);
    // `--out $OUT --full` with an empty variable: the parser takes the next option for the value.
    if (typeof flag === "string" && flag.startsWith("--"))
      problems.push(`${nameFlag(name)} must be followed by a value, not by ${flag}`);
    else if (result.success) values[name] = result.data;
    else if (given === undefined) problems.push(`${nameFlag(name)} is missing (or ${variable} in the environment)`);
    else problems.push(`${flag === undefined ? variable : nameFlag(name)} ${result.error.issues[0]?.message}`);
  }
  problems.push(...findConflicts(values), ...vainFlags(names, flags, values));
  if (problems.length > 0) throw new ConfigError(problems);
  return values as Settings<N>;
}

/** Problems of values that are valid but contradict each other. Invalid values are missing from the argument. */
function findConflicts({
  databaseUrl,
  readDatabaseUrl,
  port,
  adminPort,
}: Partial<Settings<SettingName>>): readonly string[] {
  return [
    ...(databaseUrl === null && readDatabaseUrl?.length
      ? [`${nameFlag("readDatabaseUrl")} needs --database-url: the embedded database has no replicas`]
      : []),
    ...(port && port === adminPort
      ? [`${nameFlag("adminPort")} must be another port than --port, which is ${port}`]
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
  studio: ["adminPort"],
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
  return nameFlag(name)
    .slice(2)
    .replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
