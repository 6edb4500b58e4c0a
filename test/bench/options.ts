/** Reads the options of a benchmark. Throws an OptionError for invalid ones. */
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

/** The named cases of a benchmark, in the order of `cases`. */
export function readCases<C extends string>(text: string, cases: readonly C[]): C[] {
  const names = text.split(",");
  const unknown = names.filter((name) => !(cases as readonly string[]).includes(name));
  if (unknown.length > 0)
    throw new OptionError(`--cases: no case is called ${unknown.join(", ")}; ${cases.join(", ")} are.`);
  return cases.filter((name) => names.includes(name));
}
