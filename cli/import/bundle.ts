/**
 * Reads and checks the files of a bundle (bundle.md). Reads definitions whole, and entries in batches.
 * Adds every fault to the problems and goes on reading.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TYPE_SLUG } from "../../shared/catalog.ts";
import {
  APP,
  ENTRIES,
  fileOf,
  isFolder,
  listFolder,
  namesIn,
  readFailureOf,
  refuseMisspelt,
  TYPES,
} from "./bundle-folder.ts";
import { type BundleApp, type BundleType, type Definition, readApp, readType } from "./definition.ts";
import { type Entry, readEntry } from "./entry.ts";
import { decodeText, type Line, readLines } from "./lines.ts";
import { addProblem, type Problems } from "./problem.ts";

export type Bundle = {
  readonly folder: string;
  /** Null when `app.json` is missing or invalid. */
  readonly app: BundleApp | null;
  /** In the order of their file names, without the invalid ones. */
  readonly types: readonly BundleType[];
  /** Slugs for which the bundle has a file of entries. */
  readonly slugsWithEntriesFile: ReadonlySet<string>;
};

const PRUNE_WITHOUT_TYPES =
  "is missing; with --prune that would delete all types and entries of the app: if this is intended, create an empty folder";

const BATCH_LINES = 1_000;
const BATCH_LENGTH = 1_000_000;

/**
 * Reads everything but the entries. With `prune`, which deletes what the bundle lacks, a missing folder of content
 * types is a problem. Throws an Error when `folder` is not a folder.
 */
export async function readBundle(folder: string, prune: boolean, problems: Problems): Promise<Bundle> {
  if (!(await isFolder(folder)))
    throw new Error(`There is no folder ${folder}. Specify the folder of a bundle, which contains ${APP}.`);
  refuseMisspelt((await listFolder(folder, ".", problems)) ?? [], problems);
  const app = await readDefinition(folder, APP, readApp, problems);
  const slugs = await namesIn(folder, TYPES, problems);
  if (prune && slugs === null) addProblem(problems, TYPES.folder, null, PRUNE_WITHOUT_TYPES);
  const types: BundleType[] = [];
  for (const slug of slugs ?? []) {
    const type = await readDefinition(folder, fileOf(TYPES, slug), (text) => readType(text, slug), problems);
    if (type !== null) types.push(type);
  }
  const slugsWithEntriesFile = new Set((await namesIn(folder, ENTRIES, problems)) ?? []);
  for (const slug of slugsWithEntriesFile) {
    if (slugs?.includes(slug) || !TYPE_SLUG.test(slug)) continue;
    addProblem(problems, fileOf(ENTRIES, slug), null, `belongs to no content type: ${fileOf(TYPES, slug)} is missing`);
  }
  return { folder, app, types, slugsWithEntriesFile };
}

/** Yields the valid entries of one type in batches. Adds to `seen` their ids and the numbers of their lines. */
export async function* readEntries(
  { folder, slugsWithEntriesFile }: Bundle,
  type: BundleType,
  seen: Map<string, number>,
  problems: Problems,
): AsyncGenerator<Entry[]> {
  if (!slugsWithEntriesFile.has(type.slug)) return;
  const file = fileOf(ENTRIES, type.slug);
  const fields = new Map(type.fields.map((field) => [field.name, field]));
  let batch: Entry[] = [];
  let length = 0;
  for await (const line of linesOf(folder, file, problems)) {
    const result = "fault" in line ? { faults: [line.fault] } : readEntry(line.text, fields);
    const faults = "faults" in result ? result.faults : duplicateFaults(result.entry, seen);
    for (const fault of faults) addProblem(problems, file, line.number, fault);
    if (!("entry" in result) || faults.length > 0) continue;
    seen.set(result.entry.id, line.number);
    batch.push(result.entry);
    length += result.entry.text.length;
    if (batch.length < BATCH_LINES && length < BATCH_LENGTH) continue;
    yield batch;
    batch = [];
    length = 0;
  }
  if (batch.length > 0) yield batch;
}

function duplicateFaults({ id }: Entry, seen: ReadonlyMap<string, number>): string[] {
  const line = seen.get(id);
  return line === undefined ? [] : [`"id" must be unique: ${id} is already on line ${line}`];
}

async function readDefinition<T>(
  folder: string,
  file: string,
  read: (text: string) => Definition<T>,
  problems: Problems,
): Promise<T | null> {
  const bytes = await readFile(join(folder, file)).catch(async (error: unknown) => {
    addProblem(problems, file, null, (await readFailureOf(error, join(folder, file))).fault);
    return null;
  });
  if (bytes === null) return null;
  const decoded = decodeText(bytes);
  const definition = "fault" in decoded ? { faults: [decoded.fault], line: null } : read(decoded.text);
  if ("value" in definition) return definition.value;
  for (const fault of definition.faults) addProblem(problems, file, definition.line, fault);
  return null;
}

async function* linesOf(folder: string, file: string, problems: Problems): AsyncGenerator<Line> {
  try {
    for await (const lines of readLines(join(folder, file))) yield* lines;
  } catch (error) {
    addProblem(problems, file, null, (await readFailureOf(error, join(folder, file))).fault);
  }
}
