/**
 * A bundle folder (bundle.md): finds its files, reads them and checks them. Definitions are read whole, entries a batch at
 * a time. Whatever is wrong is added to the problems, and reading goes on.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type BundleApp, type BundleType, type Definition, readApp, readType } from "./definition.ts";
import { type Entry, readEntry } from "./entry.ts";
import { decodeText, type Line, readLines } from "./lines.ts";
import { addProblem, type Problems } from "./problem.ts";

export type Bundle = {
  readonly folder: string;
  /** Null when `app.json` is missing or wrong. */
  readonly app: BundleApp | null;
  /** By slug, without those that are wrong. */
  readonly types: readonly BundleType[];
  /** The slugs of the types that have a file of entries. */
  readonly filled: ReadonlySet<string>;
};

const TYPES = { folder: "content_types", ending: ".json" };
const ENTRIES = { folder: "entries", ending: ".ndjson" };

const BATCH_LINES = 1_000;
const BATCH_LENGTH = 1_000_000;

/** Reads all but the entries. Throws when there is no such folder. */
export async function readBundle(folder: string, problems: Problems): Promise<Bundle> {
  if (!(await isFolder(folder)))
    throw new Error(`There is no folder ${folder}. Name the folder of a bundle, which holds app.json.`);
  const app = await readDefinition(folder, "app.json", readApp, problems);
  const slugs = await namesIn(folder, TYPES, problems);
  const types: BundleType[] = [];
  for (const slug of slugs) {
    const type = await readDefinition(folder, fileOf(TYPES, slug), (text) => readType(text, slug), problems);
    if (type !== null) types.push(type);
  }
  const filled = new Set(await namesIn(folder, ENTRIES, problems));
  for (const slug of filled) {
    if (slugs.includes(slug)) continue;
    addProblem(
      problems,
      fileOf(ENTRIES, slug),
      null,
      `belongs to no content type: there must be a ${fileOf(TYPES, slug)}`,
    );
  }
  return { folder, app, types, filled };
}

/**
 * The entries of one type, a batch at a time, without those that are wrong. `seen` is filled with the ids that were read
 * and the lines they stand on.
 */
export async function* readEntries(
  { folder, filled }: Bundle,
  type: BundleType,
  seen: Map<string, number>,
  problems: Problems,
): AsyncGenerator<Entry[]> {
  if (!filled.has(type.slug)) return;
  const file = fileOf(ENTRIES, type.slug);
  const fields = new Map(type.fields.map((field) => [field.name, field]));
  let batch: Entry[] = [];
  let length = 0;
  for await (const line of linesOf(folder, file, problems)) {
    const reading = "fault" in line ? { faults: [line.fault] } : readEntry(line.text, fields);
    const faults = "faults" in reading ? reading.faults : repetition(reading.entry, seen);
    for (const fault of faults) addProblem(problems, file, line.number, fault);
    if (!("entry" in reading) || faults.length > 0) continue;
    seen.set(reading.entry.id, line.number);
    batch.push(reading.entry);
    length += reading.entry.text.length;
    if (batch.length < BATCH_LINES && length < BATCH_LENGTH) continue;
    yield batch;
    batch = [];
    length = 0;
  }
  if (batch.length > 0) yield batch;
}

function repetition({ id }: Entry, seen: ReadonlyMap<string, number>): string[] {
  const line = seen.get(id);
  return line === undefined ? [] : [`"id" must be the entry's own: ${id} stands on line ${line} already`];
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}

async function readDefinition<T>(
  folder: string,
  file: string,
  read: (text: string) => Definition<T>,
  problems: Problems,
): Promise<T | null> {
  const bytes = await readFile(join(folder, file)).catch((error: unknown) => {
    addProblem(problems, file, null, unreadable(error));
    return null;
  });
  if (bytes === null) return null;
  const decoded = decodeText(bytes);
  const definition = "fault" in decoded ? { faults: [decoded.fault] } : read(decoded.text);
  if ("value" in definition) return definition.value;
  for (const fault of definition.faults) addProblem(problems, file, null, fault);
  return null;
}

async function* linesOf(folder: string, file: string, problems: Problems): AsyncGenerator<Line> {
  try {
    for await (const lines of readLines(join(folder, file))) yield* lines;
  } catch (error) {
    addProblem(problems, file, null, unreadable(error));
  }
}

/**
 * The files of a folder by their names without the ending, in byte order. The folder may be missing; a file of another kind
 * is a problem, for it would be left out in silence. Hidden files belong to the operating system.
 */
async function namesIn(folder: string, kind: typeof TYPES, problems: Problems): Promise<string[]> {
  const files = await readdir(join(folder, kind.folder)).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") addProblem(problems, kind.folder, null, unreadable(error));
    return [];
  });
  const visible = files.filter((file) => !file.startsWith(".")).sort();
  for (const file of visible.filter((one) => !one.endsWith(kind.ending))) {
    addProblem(problems, `${kind.folder}/${file}`, null, `must be named <slug of a content type>${kind.ending}`);
  }
  return visible.filter((file) => file.endsWith(kind.ending)).map((file) => file.slice(0, -kind.ending.length));
}

function fileOf({ folder, ending }: typeof TYPES, slug: string): string {
  return `${folder}/${slug}${ending}`;
}

function unreadable(error: unknown): string {
  return codeOf(error) === "ENOENT" ? "is missing" : `cannot be read (${codeOf(error)})`;
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? error);
}
