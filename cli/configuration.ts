/** Reads the files beside the environment that hold settings: `precast.config.json`, or one with code, and `.env`. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseEnv } from "node:util";
import { ConfigError, type SettingsFile } from "../shared/config.ts";
import { readText } from "../shared/files.ts";
import { findFaultyLine, findRepeatedKeys } from "./import/text.ts";

const CONFIG_FILES: readonly string[] = ["json", "ts", "mjs", "js"].map((ending) => `precast.config.${ending}`);
const DOTENV = ".env";

export type Configuration = {
  readonly file: SettingsFile | null;
  /** Of `.env`, without those that the environment has already. */
  readonly variables: Readonly<Record<string, string>>;
};

/** `names` are those of files in the current folder, of which others than these are ignored. */
export async function readConfiguration(
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Configuration> {
  const [name, other] = CONFIG_FILES.filter((one) => names.includes(one));
  if (other !== undefined)
    throw new ConfigError([`There are ${name} and ${other}: keep one of them, because only one is read.`]);
  const variables = names.includes(DOTENV) ? readVariables(env) : {};
  return { file: name === undefined ? null : await readFile(name), variables };
}

/** Some tools make a folder of this name: then there is no such file. */
function readVariables(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const read = Object.entries(parseEnv(readText(DOTENV) ?? ""));
  return Object.fromEntries(read.flatMap(([name, value = ""]) => (env[name] === undefined ? [[name, value]] : [])));
}

async function readFile(name: string): Promise<SettingsFile | null> {
  const values = name.endsWith(".json") ? readJson(name) : await importDefault(name);
  if (values === null || typeof values !== "object" || Array.isArray(values))
    throw new ConfigError([
      `${name} must ${name.endsWith(".json") ? "be" : "export as default"} an object of settings.`,
    ]);
  return { name, values: values as Record<string, unknown> };
}

function readJson(name: string): unknown {
  // Editors of Windows begin a file with a byte order mark.
  const text = (readText(name) ?? "").replace(/^\ufeff/, "");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const why = (error as Error).message.replace(/\s+/g, " ");
    throw new ConfigError([`${name}, line ${findFaultyLine(text)}: is not valid JSON: ${why}`]);
  }
  const repeated = findRepeatedKeys(text, value);
  if (repeated.length > 0)
    throw new ConfigError(repeated.map(({ key, line }) => `${name}, line ${line}: has the key "${key}" again`));
  return value;
}

async function importDefault(name: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(resolve(name)).href)) as { readonly default?: unknown };
    return module.default ?? null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION")
      throw new ConfigError([
        `${name} cannot be read: Node.js runs TypeScript from version 22.18 on, and this is ${process.version}. Write precast.config.mjs or precast.config.json instead.`,
      ]);
    throw new Error(`${name} cannot be read: ${(error as Error).message ?? error}`, { cause: error });
  }
}
