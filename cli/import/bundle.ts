/**
 * Reads and checks the files of a bundle. Reads definitions whole, and entries in batches.
 * Adds every fault to the problems and goes on reading.
 */
import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { TYPE_SLUG } from "../../shared/api/catalog.ts";
import { type Definition, readApp, readKnownFields, readType } from "./definition.ts";
import { type Entry, findInexact, type KnownFields, knowFields, NOTHING_KNOWN, readEntry } from "./entry.ts";
import {
  APP,
  describeReadFailure,
  ENTRIES,
  findFile,
  findMedia,
  type MediaFiles,
  namePath,
  namesIn,
  refuseMisspelt,
  requireFolder,
  TYPES,
} from "./folder.ts";
import { addProblem, type Problems, quote } from "./report.ts";
import type { BundleApp, BundleType } from "./shape.ts";

export type Bundle = {
  readonly folder: string;
  /** Null when `app.json` is missing or invalid. */
  readonly app: BundleApp | null;
  /** In the order of their file names, without the invalid ones. */
  readonly types: readonly BundleType[];
  /** What the entries of each file of entries are checked by, also of a type that is invalid or missing. */
  readonly known: ReadonlyMap<string, KnownFields>;
  /** Null when the bundle has no folder of media. */
  readonly media: MediaFiles | null;
};

const PRUNE_WITHOUT_TYPES =
  "is missing; with --prune that would delete all types and entries of the app: if this is intended, create an empty folder";

const BATCH_LINES = 1_000;
const BATCH_LENGTH = 1_000_000;

/**
 * Reads everything but the entries. With `prune`, which deletes what the bundle lacks, a missing folder of content
 * types is a problem. Throws an Error when `folder` is not a folder.
 */
export async function readBundle(
  folder: string,
  prune: boolean,
  problems: Problems,
  warnings: Problems,
): Promise<Bundle> {
  await requireFolder(folder);
  await refuseMisspelt(folder, problems);
  const app = await readDefinition(folder, APP, readApp, problems);
  const slugs = await namesIn(folder, TYPES, problems);
  if (prune && slugs === null) addProblem(problems, TYPES.folder, null, PRUNE_WITHOUT_TYPES);
  const types: BundleType[] = [];
  const fields = new Map<string, KnownFields>();
  for (const slug of slugs ?? []) {
    const file = namePath(TYPES, slug);
    const read = (text: string) => {
      fields.set(slug, readKnownFields(text));
      return readType(text, slug);
    };
    const type = await readDefinition(folder, file, read, problems);
    if (type === null) continue;
    types.push(type);
    fields.set(slug, knowFields(type.fields));
    warnOfNames(type, file, warnings);
  }
  const withEntries = (await namesIn(folder, ENTRIES, problems)) ?? [];
  for (const slug of withEntries) {
    if (slugs?.includes(slug) || !TYPE_SLUG.test(slug)) continue;
    const fault = `belongs to no content type: ${namePath(TYPES, slug)} is missing`;
    addProblem(problems, namePath(ENTRIES, slug), null, fault);
  }
  const media = await findMedia(folder, problems);
  const known = new Map(withEntries.map((slug) => [slug, fields.get(slug) ?? NOTHING_KNOWN]));
  return { folder, app, types, known, media };
}

/** Names of devices: Windows can hold no file or folder of these names, with or without an ending. */
const WINDOWS_DEVICE = /^(con|prn|aux|nul|com[1-9]|lpt[1-9])$/;

/** Types and fields give folders and files of the tree their names. */
function warnOfNames({ slug, fields }: BundleType, file: string, warnings: Problems): void {
  const warn = (subject: string) =>
    addProblem(
      warnings,
      file,
      null,
      `${subject} has a name that Windows can give to no file: a tree with it can be built, copied and served only elsewhere`,
    );
  if (WINDOWS_DEVICE.test(slug)) warn("the content type");
  for (const { name } of fields) if (WINDOWS_DEVICE.test(name)) warn(`field ${quote(name)}`);
}

/**
 * Yields the valid entries of one type in batches. Adds to `seen` their ids and the numbers of their lines, and warns of
 * numbers that filters and sorts do not tell from others, and of media that the bundle lacks.
 */
export async function* readEntries(
  { folder, known, media }: Bundle,
  slug: string,
  seen: Map<string, number>,
  problems: Problems,
  warnings: Problems | null,
): AsyncGenerator<Entry[]> {
  const fields = known.get(slug);
  if (fields === undefined) return;
  const file = namePath(ENTRIES, slug);
  let batch: Entry[] = [];
  let length = 0;
  for await (const line of linesOf(folder, file, problems)) {
    const result = "fault" in line ? { faults: [line.fault] } : readEntry(line.text, fields);
    const faults = "faults" in result ? result.faults : duplicateFaults(result.entry, seen);
    for (const fault of faults) addProblem(problems, file, line.number, fault);
    if (!("entry" in result) || faults.length > 0) continue;
    if (warnings !== null)
      for (const { field, text } of findInexact(result.entry, fields))
        addProblem(warnings, file, line.number, text, field);
    if (warnings !== null && media !== null)
      for (const { field, name } of result.entry.media)
        if (!media.has(name))
          addProblem(warnings, file, line.number, `field ${quote(field)} names ${quote(name)}, which media/ lacks`);
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
  const path = await findFile(folder, file, problems);
  if (path === null) return null;
  const bytes = await readFile(path).catch(async (error: unknown) => {
    addProblem(problems, file, null, (await describeReadFailure(error, path)).fault);
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
  const path = await findFile(folder, file, problems);
  if (path === null) return;
  try {
    for await (const lines of readLines(path)) yield* lines;
  } catch (error) {
    addProblem(problems, file, null, (await describeReadFailure(error, path)).fault);
  }
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

function startsWithMark(bytes: Buffer): boolean {
  return bytes.subarray(0, BOM.length).equals(BOM);
}

/** As after `cat a.ndjson b.ndjson`: nobody sees it in an editor. */
const LATE_MARK = "begins with a byte order mark (U+FEFF), which may stand only at the beginning of a file: remove it";

/** Decodes a file as UTF-8 without its byte order mark, or says why that fails. */
function decodeText(bytes: Buffer): { readonly text: string } | { readonly fault: string } {
  const content = startsWithMark(bytes) ? bytes.subarray(BOM.length) : bytes;
  return isUtf8(content) ? { text: content.toString("utf8") } : { fault: "is not valid UTF-8" };
}

function decode(number: number, line: Buffer | null): Line {
  if (line === null) return { number, fault: `is longer than ${MAX_LINE >> 20} MiB` };
  if (number === 1) return { number, ...decodeText(line) };
  if (startsWithMark(line)) return { number, fault: LATE_MARK };
  return isUtf8(line) ? { number, text: line.toString("utf8") } : { number, fault: "is not valid UTF-8" };
}

function isNotBlank(line: Line): boolean {
  return "fault" in line || !/^[ \t\r]*$/.test(line.text);
}
