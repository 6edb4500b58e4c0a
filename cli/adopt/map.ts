/** The file of a mapping, `precast.map.json`: an app, and for each content type the SELECT that yields its entries. */
import { readFile } from "node:fs/promises";
import * as z from "zod";
import { optional } from "../../shared/settings/zod.ts";
import { readApp, readType } from "../import/definition.ts";
import type { BundleApp, BundleType } from "../import/shape.ts";

export type MappedType = {
  /** The tables that the SELECT reads, as `schema.name`: `sync --triggers` watches these. */
  readonly tables: readonly string[];
  /** Its lines. */
  readonly select: readonly string[];
  readonly content_type: BundleType;
};

export type SourceMap = {
  /** The database that has the tables, without a password. Null where it is that of Precast. */
  readonly from: string | null;
  readonly app: BundleApp;
  readonly types: readonly MappedType[];
};

const texts = z.array(z.string("a string"), "an array of strings");
const MAP = z.strictObject({
  from: optional(z.string("an address, or null")),
  app: z.looseObject({}, "an object with key and name"),
  types: z.array(
    z.strictObject({
      tables: texts.default([]),
      select: z.union([texts, z.string().transform((text) => text.split("\n"))], "a string, or an array of lines"),
      content_type: z.looseObject({ slug: z.string("a string") }, "an object as in a bundle's content_types"),
    }),
    "an array",
  ),
});

/** Throws an Error with all faults of the file. */
export async function readMap(file: string): Promise<SourceMap> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    throw new Error(`There is no mapping ${file}: write one with \`precast adopt\`, or name it with --map.`);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not valid JSON: ${(error as Error).message}`);
  }
  const { data, error } = MAP.safeParse(value);
  if (data === undefined) {
    const faults = error.issues.map(
      ({ path, message }) => `${file}: ${path.join(".") || "the map"} ${mustBe(message)}`,
    );
    throw new Error(faults.join("\n"));
  }
  const faults: string[] = [];
  const keep = <T>(place: string, read: ReturnType<typeof readApp> | ReturnType<typeof readType>): T[] => {
    if ("value" in read) return [read.value as T];
    faults.push(...read.faults.map((fault) => `${file}: ${place}: ${fault}`));
    return [];
  };
  const [app] = keep<BundleApp>("app", readApp(JSON.stringify(data.app)));
  const types = data.types.flatMap(({ tables, select, content_type }, index) => {
    const { slug } = content_type;
    if (data.types.findIndex((other) => other.content_type.slug === slug) < index)
      faults.push(`${file}: types.${index}: another type has the slug "${slug}"`);
    const read = keep<BundleType>(`types.${index} (${slug})`, readType(JSON.stringify(content_type), slug));
    return read.map((type) => ({ tables, select, content_type: type }));
  });
  if (app === undefined || faults.length > 0) throw new Error(faults.join("\n"));
  return { from: data.from, app, types };
}

function mustBe(message: string): string {
  return /^(an?|the) /.test(message) ? `must be ${message}` : `is wrong: ${message}`;
}

/** The text of the file: a field a line, and nothing that is as it would be anyway. */
export function writeMap({ from, app, types }: SourceMap): string {
  const shown = types.map(({ tables, select, content_type }) => ({
    tables,
    select,
    content_type: { ...withoutNull(content_type), fields: content_type.fields.map(shortenField) },
  }));
  const text = JSON.stringify({ from, app: withoutNull(app), types: shown }, null, 2);
  const isInner = /\{\n\s+"name": [^{}[\]]*?\n\s+\}|\[\n(\s+"(?:[^"\\\n]|\\.){0,60}",?\n)+\s+\]/g;
  return `${text.replace(isInner, (part) => (isShort(part) ? joinLines(part) : part))}\n`;
}

function withoutNull<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null)) as Partial<T>;
}

function shortenField({ multiple, ...field }: BundleType["fields"][number]): object {
  return { ...withoutNull(field), ...(multiple ? { multiple } : {}) };
}

/** A SELECT is read line by line. */
function isShort(part: string): boolean {
  return !part.includes('"SELECT"');
}

function joinLines(part: string): string {
  return part.replace(/\n\s+/g, " ");
}
