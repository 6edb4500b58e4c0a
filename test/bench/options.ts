/** Reads the options of a benchmark. Throws an OptionError for invalid ones. */
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { OptionError } from "./bench.ts";

type Described = NonNullable<ParseArgsConfig["options"]>;

export function readOptions<const O extends Described>(args: readonly string[], options: O) {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new OptionError((error as Error).message);
  }
}

export function readWhole(name: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) throw new OptionError(`${name} is a whole number from ${least} to ${most}.`);
  return value;
}

/** What is named in `text`, in the order of `known`; `one` says what such a name is of, as in `--cases` and `case`. */
export function readNames<N extends string>(option: string, one: string, text: string, known: readonly N[]): N[] {
  const names = text.split(",");
  const unknown = names.filter((name) => !(known as readonly string[]).includes(name));
  if (unknown.length > 0)
    throw new OptionError(`${option}: no ${one} is called ${unknown.join(", ")}; ${known.join(", ")} are.`);
  return known.filter((name) => names.includes(name));
}

/** The options that every benchmark has. */
export type CommonOptions = {
  readonly json: boolean;
  readonly keep: boolean;
  readonly dir: string;
  readonly databaseUrl: string | null;
};

export const COMMON_OPTIONS = {
  json: { type: "boolean", default: false },
  dir: { type: "string", default: tmpdir() },
  keep: { type: "boolean", default: false },
  "database-url": { type: "string" },
} as const;

type CommonValues = Readonly<{ json: boolean; dir: string; keep: boolean; "database-url"?: string | undefined }>;

export function readCommon({ json, keep, dir, "database-url": url }: CommonValues): CommonOptions {
  return { json, keep, dir: resolve(dir), databaseUrl: url ?? null };
}
