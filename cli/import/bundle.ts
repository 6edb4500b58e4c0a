/**
 * Reads and checks the files of a bundle. Reads definitions whole, and entries in batches.
 * Adds every fault to the problems and goes on reading.
 */
import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { lstat, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { TYPE_SLUG } from "../../shared/api/catalog.ts";
import { findNames } from "../../shared/files.ts";
import { A_SLUG, type BundleApp, type BundleType, type Definition, readApp, readType } from "./definition.ts";
import { type Entry, readEntry } from "./entry.ts";
import { addProblem, type Problems } from "./report.ts";

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
    const type = await readDefinition(folder, namePath(TYPES, slug), (text) => readType(text, slug), problems);
    if (type !== null) types.push(type);
  }
  const slugsWithEntriesFile = new Set((await namesIn(folder, ENTRIES, problems)) ?? []);
  for (const slug of slugsWithEntriesFile) {
    if (slugs?.includes(slug) || !TYPE_SLUG.test(slug)) continue;
    addProblem(
      problems,
      namePath(ENTRIES, slug),
      null,
      `belongs to no content type: ${namePath(TYPES, slug)} is missing`,
    );
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
  const file = namePath(ENTRIES, type.slug);
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
    addProblem(problems, file, null, (await describeReadFailure(error, join(folder, file))).fault);
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
    addProblem(problems, file, null, (await describeReadFailure(error, join(folder, file))).fault);
  }
}

// The names in a bundle folder: lists them, refuses wrong ones, and says why one cannot be read.

const APP = "app.json";
const TYPES = { folder: "content_types", ending: ".json" };
const ENTRIES = { folder: "entries", ending: ".ndjson" };
const PARTS = [APP, TYPES.folder, ENTRIES.folder];

const WRONG_FILE_TYPE: Readonly<Record<string, string>> = {
  EISDIR: "is a folder, but must be a file",
  ENOTDIR: "is a file, but must be a folder",
};

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

/**
 * Refuses names that are nearly those of a bundle's parts: the import would skip such a part silently. Any other name
 * is allowed in a bundle's folder.
 */
function refuseMisspelt(names: readonly string[], problems: Problems): void {
  for (const name of names) {
    const meant = PARTS.find((part) => folded(part) === folded(name));
    if (meant === undefined || meant === name) continue;
    addProblem(problems, name, null, `is not part of a bundle; did you mean ${meant}?`);
  }
}

/** Removes from a name what is easily confused: case, word separators and plural endings. */
function folded(name: string): string {
  return name
    .toLowerCase()
    .replace(/[-_ ]/g, "")
    .replace(/ies(?=\.|$)/, "y")
    .replace(/s(?=\.|$)/, "");
}

/**
 * File names in a folder without their ending; null when the folder is missing. A file with another ending is a
 * problem, because the import would skip it silently. So is a name that is not a valid slug.
 */
async function namesIn(folder: string, kind: typeof TYPES, problems: Problems): Promise<string[] | null> {
  const files = await listFolder(folder, kind.folder, problems);
  if (files === null) return null;
  const slugIn = (file: string) => file.slice(0, -kind.ending.length);
  const rule = `must be named <slug of a content type>${kind.ending}; a slug is ${A_SLUG}`;
  for (const file of files) {
    if (file.endsWith(kind.ending) && TYPE_SLUG.test(slugIn(file))) continue;
    addProblem(problems, `${kind.folder}/${file}`, null, rule);
  }
  return files.filter((file) => file.endsWith(kind.ending)).map(slugIn);
}

/** Sorted names in a folder; null when it is missing. Leaves out hidden files, which operating systems create. */
async function listFolder(folder: string, place: string, problems: Problems): Promise<string[] | null> {
  const path = join(folder, place);
  try {
    // Throws for a missing folder, which would count as an empty one.
    await stat(path);
    return await findNames(path, "*");
  } catch (error) {
    const { isMissing, fault } = await describeReadFailure(error, path);
    if (isMissing) return null;
    addProblem(problems, place, null, fault);
    return [];
  }
}

function namePath({ folder, ending }: typeof TYPES, slug: string): string {
  return `${folder}/${slug}${ending}`;
}

type ReadFailure = { readonly isMissing: boolean; readonly fault: string };

/**
 * Says why a path cannot be read. A dangling symbolic link, to a disk that is not mounted for example, does not count
 * as missing: otherwise --prune would delete the content that it stands for.
 */
async function describeReadFailure(error: unknown, path: string): Promise<ReadFailure> {
  const code = findCode(error);
  if (code !== "ENOENT") return { isMissing: false, fault: WRONG_FILE_TYPE[code] ?? `cannot be read (${code})` };
  if ((await lstat(path).catch(() => null)) === null) return { isMissing: true, fault: "is missing" };
  return { isMissing: false, fault: "is a broken symbolic link: mount its target, or remove the link" };
}

function findCode(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? error);
}

// Reads the lines of a file in chunks. Memory use does not grow with the size of the file.

type Line = { readonly number: number } & ({ readonly text: string } | { readonly fault: string });

const CHUNK = 1 << 18;
const MAX_LINE = 64 << 20;
const NEWLINE = 0x0a;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Yields the lines that are not blank, numbered from 1, in arrays of those that end in one chunk of the file. */
async function* readLines(path: string): AsyncGenerator<Line[]> {
  let number = 0;
  let unfinished: Buffer[] = [];
  let length = 0;
  const finishLine = (end: Buffer): Line => {
    const line = length + end.length > MAX_LINE ? null : Buffer.concat([...unfinished, end]);
    unfinished = [];
    length = 0;
    return decode(++number, line);
  };
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK }) as AsyncIterable<Buffer>) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      lines.push(finishLine(chunk.subarray(start, end)));
      start = end + 1;
    }
    // The rest of a line that is already too long is counted, but not kept.
    if (length <= MAX_LINE) unfinished.push(chunk.subarray(start));
    length += chunk.length - start;
    yield lines.filter(isNotBlank);
  }
  yield [finishLine(Buffer.alloc(0))].filter(isNotBlank);
}

/** Decodes a file as UTF-8 without its byte order mark, or says why that fails. */
function decodeText(bytes: Buffer): { readonly text: string } | { readonly fault: string } {
  const content = bytes.subarray(0, BOM.length).equals(BOM) ? bytes.subarray(BOM.length) : bytes;
  return isUtf8(content) ? { text: content.toString("utf8") } : { fault: "is not valid UTF-8" };
}

function decode(number: number, line: Buffer | null): Line {
  if (line === null) return { number, fault: `is longer than ${MAX_LINE >> 20} MiB` };
  if (number === 1) return { number, ...decodeText(line) };
  return isUtf8(line) ? { number, text: line.toString("utf8") } : { number, fault: "is not valid UTF-8" };
}

function isNotBlank(line: Line): boolean {
  return "fault" in line || !/^[ \t\r]*$/.test(line.text);
}
