/**
 * Converts a source into a bundle: reads it once, infers content types from all of its values, and writes entries, media
 * and definitions. A bundle that is there already keeps its definitions, and is changed only when all went well.
 */
import { mkdirSync } from "node:fs";
import { appendFile, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { move, outputFile } from "fs-extra/esm";
import { APP_KEY, LOCAL_MEDIA } from "../../shared/api/catalog.ts";
import { ConfigError } from "../../shared/config.ts";
import { filesIn, isFile, isFolder } from "../../shared/files.ts";
import { writeDefinition } from "../export/bundle.ts";
import { readApp } from "../import/definition.ts";
import { APP, ENTRIES, namePath, TYPES } from "../import/folder.ts";
import { addProblem, noProblems, type Problems } from "../import/report.ts";
import type { BundleApp } from "../import/shape.ts";
import { readTime } from "./dates.ts";
import { type DefinedType, defineTypes } from "./definitions.ts";
import { type Format, loadReader } from "./formats.ts";
import { cleanHtml } from "./html.ts";
import { findKeyField, indexKeys, type Keys, openKeyMaker } from "./keys.ts";
import { type Media, mediaAddress, openMedia } from "./media.ts";
import { makeId, makeLabel, makeSlug } from "./names.ts";
import type { Place, SourceRecord } from "./record.ts";
import { measureSource } from "./source.ts";
import { type Collection, spoolSource } from "./spool.ts";
import { convertValue, type ValueContext, writeJsonLine } from "./values.ts";

export type ConvertOptions = {
  /** An empty folder, which may be removed afterwards. */
  readonly scratch: string;
  /** Null for the key that the bundle has, or one made from its folder's name. */
  readonly appKey: string | null;
  readonly locale: string | null;
  readonly sanitize: boolean;
  /** Base URL of media for a bundle that names none; null for the default. */
  readonly mediaBaseUrl: string | null;
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
};

export type Conversion = {
  readonly app: BundleApp;
  readonly types: readonly ConvertedType[];
  /** Files that were copied, and names of files that the source lacks with the address where each was. */
  readonly media: { readonly copied: number; readonly missing: ReadonlyMap<string, string | null> };
  /** What could not be carried, with its place in the source. */
  readonly losses: Problems;
};

export type ConvertedType = DefinedType & { readonly entries: number; readonly drafts: number };

/** Throws SourceError, ConfigError or ImportProblems; the bundle is unchanged then. */
export async function convertSource(
  format: Format,
  source: string,
  bundle: string,
  options: ConvertOptions,
): Promise<Conversion> {
  const { scratch } = options;
  const app = await readBundleApp(bundle, options);
  const losses = noProblems();
  const collections = await readCollections(format, source, options, losses);
  const makers = new Map<string, string | null>();
  for (const { name, read } of collections) makers.set(name, await findKeyField(read()));
  const keys = new Map<string, Keys>();
  for (const { name, read } of collections)
    keys.set(name, await indexKeys(read(), openKeyMaker(makers.get(name) ?? null)));
  const defined = defineTypes(collections, keys, bundle);
  const at: Current = { place: { file: source, line: null } };
  const media = openMedia([resolve(isFolder(source) ? source : dirname(source)), scratch]);
  const context = openValues(format, app, { defined, keys, media, losses, at }, options);
  const made = join(scratch, "bundle");
  const types: ConvertedType[] = [];
  for (const type of defined) {
    const makeKey = openKeyMaker(makers.get(type.collection.name) ?? null);
    types.push(await writeEntries(type, made, { format, makeKey, context, losses, at }));
  }
  for (const { slug, definition, isKept } of defined)
    if (!isKept) await writeDefinition(join(made, namePath(TYPES, slug)), definition);
  // First, because entries name these files.
  const copied = await media.copyAll(bundle);
  await publishBundle(made, bundle, app);
  return { app, types, media: { copied, missing: media.missing }, losses };
}

/** The app of the bundle, or the one that it will have. */
async function readBundleApp(bundle: string, { appKey, mediaBaseUrl }: ConvertOptions): Promise<BundleApp> {
  const text = await readFile(join(bundle, APP), "utf8").catch(() => null);
  const name = basename(resolve(bundle));
  if (text === null) {
    const key = appKey ?? makeSlug(name);
    if (!APP_KEY.test(key))
      throw new ConfigError([`No app key can be made from the name of the folder: give one with --app.`]);
    return { key, name: makeLabel(appKey ?? name), media_base_url: mediaBaseUrl };
  }
  const read = readApp(text);
  if ("faults" in read) throw new ConfigError(read.faults.map((fault) => `${join(bundle, APP)}: ${fault}`));
  if (appKey !== null && read.value.key !== appKey)
    throw new ConfigError([
      `${bundle} is a bundle of ${read.value.key}, not of ${appKey}: name another folder, or leave out --app.`,
    ]);
  return read.value;
}

async function readCollections(
  format: Format,
  source: string,
  { scratch, locale, onProgress }: ConvertOptions,
  losses: Problems,
): Promise<Collection[]> {
  const total = await measureSource(source);
  let done = 0;
  const [unpacked, spooled] = [join(scratch, "source"), join(scratch, "records")];
  for (const folder of [unpacked, spooled]) mkdirSync(folder);
  const read = await loadReader(format);
  const items = read(source, {
    locale,
    scratch: unpacked,
    lose: ({ place, what, why, times = 1 }) =>
      addProblem(losses, place.file, place.line, `${what}${times > 1 ? ` (${times} times)` : ""}: ${why}`),
    advance: (bytes) => {
      done += bytes;
      // An archive that is read in two passes counts twice.
      onProgress?.({
        done: Math.min(Math.round(done / 1_000), Math.round(total / 1_000)),
        total: Math.round(total / 1_000),
      });
    },
  });
  return spoolSource(items, spooled);
}

type Found = {
  readonly defined: readonly DefinedType[];
  readonly keys: ReadonlyMap<string, Keys>;
  readonly media: Media;
  readonly losses: Problems;
  readonly at: Current;
};

/** A page of the source is an entry of its own rather than a file. */
const PAGE = /\.(md|markdown|html?)$/i;

/** The record that is being written. */
type Current = { place: Place };

function openValues(
  format: Format,
  app: BundleApp,
  found: Found,
  { sanitize, mediaBaseUrl }: ConvertOptions,
): ValueContext {
  const { defined, keys, media, losses, at } = found;
  const slugs = new Map(defined.map(({ collection, slug }) => [collection.name, slug]));
  const names = new Map(defined.map(({ collection, slug }) => [slug, collection.name]));
  const base = app.media_base_url ?? mediaBaseUrl ?? LOCAL_MEDIA;
  const findAddress = (folder: string) => (address: string) => {
    const path = media.find(folder, address);
    return path === null || PAGE.test(path)
      ? null
      : mediaAddress(base, app.key, media.place(path, basename(path), null));
  };
  return {
    cleanHtml: (html, folder) =>
      cleanHtml(html, {
        sanitize,
        findAddress: folder === null ? () => null : findAddress(folder),
        onRemoved: (what) =>
          addProblem(losses, at.place.file, at.place.line, `HTML: ${what} was removed: --unsafe-html keeps it`),
      }),
    placeMedia: ({ path, name, address }) => media.place(path, name, address),
    findEntry: (target, collection, key) => {
      const near = collection ?? (target === null ? undefined : names.get(target));
      for (const name of near === undefined ? keys.keys() : [near]) {
        const known = keys.get(name);
        // Names and slugs are only looked for where it is known of what.
        const found = near === undefined ? (known?.has(key) ? key : null) : (known?.find(key) ?? null);
        if (found !== null) return { type: slugs.get(name) as string, id: makeId(format, name, found) };
      }
      return null;
    },
  };
}

type Writing = {
  readonly format: Format;
  readonly makeKey: (record: SourceRecord) => string;
  readonly context: ValueContext;
  readonly losses: Problems;
  readonly at: Current;
};

/** Timestamp of entries whose source has none: a fixed one, so that converting again changes nothing. */
const NO_TIME = "1970-01-01T00:00:00.000Z";

async function writeEntries(type: DefinedType, folder: string, writing: Writing): Promise<ConvertedType> {
  const { collection, slug } = type;
  const file = join(folder, namePath(ENTRIES, slug));
  const seen = new Set<string>();
  let drafts = 0;
  let lines: string[] = [];
  await outputFile(file, "");
  for await (const record of collection.read()) {
    writing.at.place = record.place;
    const id = makeId(writing.format, collection.name, writing.makeKey(record));
    if (seen.has(id)) {
      const what = `is left out: an earlier record of ${collection.name} has the same key`;
      addProblem(writing.losses, record.place.file, record.place.line, what);
      continue;
    }
    seen.add(id);
    if (record.status === "draft") drafts += 1;
    lines.push(writeLine(id, record, type, writing));
    if (lines.length === 500) {
      await appendFile(file, lines.join(""));
      lines = [];
    }
  }
  await appendFile(file, lines.join(""));
  return { ...type, entries: seen.size, drafts };
}

function writeLine(id: string, record: SourceRecord, { fields }: DefinedType, { context, losses }: Writing): string {
  const { place, status } = record;
  const lose = (fault: string) => addProblem(losses, place.file, place.line, fault);
  const data: Record<string, unknown> = {};
  for (const { source, field, wanted } of fields) {
    const { value, faults } = convertValue(record.fields[source] ?? null, wanted, context);
    if (value !== null) data[field.name] = value;
    for (const fault of faults) lose(`${source} ${fault}`);
  }
  const readOwn = (text: string | null, what: string) => {
    const time = text === null ? null : readTime(text);
    if (text !== null && time === null) lose(`${what} must be a date, not ${JSON.stringify(text)}`);
    return time;
  };
  const published = readOwn(record.published, "the date of publication");
  const updated = readOwn(record.updated, "the date of the last change");
  const created = readOwn(record.created, "the date of creation") ?? published ?? updated ?? NO_TIME;
  return writeJsonLine({
    id,
    status,
    published_at: published ?? (status === "published" ? created : null),
    created_at: created,
    updated_at: updated ?? published ?? created,
    data,
  });
}

/** Moves the new files to their places. Files of other sources in the same bundle stay. */
async function publishBundle(made: string, bundle: string, app: BundleApp): Promise<void> {
  if (!isFile(join(bundle, APP))) await writeDefinition(join(made, APP), app);
  for await (const name of filesIn(made)) await move(join(made, name), join(bundle, name), { overwrite: true });
}
