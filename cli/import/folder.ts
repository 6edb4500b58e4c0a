/**
 * The folder of a bundle: finds its files, refuses wrong names and whatever is no file of the bundle, and says why
 * something cannot be read.
 */
import type { Stats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import { TYPE_SLUG } from "../../shared/api/catalog.ts";
import { findNames } from "../../shared/files.ts";
import { isMediaName } from "../../shared/media.ts";
import { addProblem, type Problems } from "./report.ts";
import { A_SLUG } from "./shape.ts";

export const APP = "app.json";
export const TYPES = { folder: "content_types", ending: ".json" };
export const ENTRIES = { folder: "entries", ending: ".ndjson" };
export const MEDIA = "media";
const PARTS = [APP, TYPES.folder, ENTRIES.folder, MEDIA];

const A_BUNDLE = `a bundle is a folder with ${APP}, content_types/<slug>.json and entries/<slug>.ndjson`;

/** Throws an Error when there is no such folder. */
export async function requireFolder(folder: string): Promise<void> {
  const found = await statOrNull(folder);
  if (found?.isDirectory()) return;
  const what = found === null ? `There is no folder ${folder}` : `${folder} is ${describeKind(found)}, not a folder`;
  throw new Error(`${what}. Specify the folder of a bundle: ${A_BUNDLE}${await suggestFolder(folder)}.`);
}

async function statOrNull(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(findCode(error))) return null;
    throw error;
  }
}

/** Says that `app.json` is missing, what a bundle is, and where one is that may be meant. */
async function describeMissingApp(folder: string): Promise<string> {
  return `is missing in the folder ${folder}: ${A_BUNDLE}${await suggestFolder(folder)}`;
}

/** Looks for a bundle one level up and one level down. */
async function suggestFolder(folder: string): Promise<string> {
  const above = join(folder, "..");
  const isAbove = (await statOrNull(join(above, APP)).catch(() => null))?.isFile() === true;
  const below = await findNames(folder, `*/${APP}`).catch(() => []);
  const near = [...(isAbove ? [above] : []), ...below.map((path) => join(folder, path, ".."))];
  return near.length === 0 ? "" : `; did you mean ${near.slice(0, 3).join(" or ")}?`;
}

/**
 * Refuses names that are nearly those of a bundle's parts: the import would skip such a part silently. Any other name
 * is allowed in a bundle's folder.
 */
export async function refuseMisspelt(folder: string, problems: Problems): Promise<void> {
  for (const name of (await listFolder(folder, ".", problems)) ?? []) {
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
export async function namesIn(folder: string, kind: typeof TYPES, problems: Problems): Promise<string[] | null> {
  const files = await listFolder(folder, kind.folder, problems);
  if (files === null) return null;
  const slugIn = (file: string) => file.slice(0, -kind.ending.length);
  const rule = `must be named <slug of a content type>${kind.ending}; a slug is ${A_SLUG}`;
  const hasSlug = (file: string) => file.endsWith(kind.ending) && TYPE_SLUG.test(slugIn(file));
  for (const file of files.filter((name) => !hasSlug(name))) addProblem(problems, `${kind.folder}/${file}`, null, rule);
  return files.filter((file) => file.endsWith(kind.ending)).map(slugIn);
}

/** Where each file is, by its name, sorted. */
export type MediaFiles = ReadonlyMap<string, string>;

/** The files in the folder of media; null when the bundle has none, and its media are elsewhere. */
export async function findMedia(folder: string, problems: Problems): Promise<MediaFiles | null> {
  const names = await listFolder(folder, MEDIA, problems);
  if (names === null) return null;
  const files = new Map<string, string>();
  for (const name of names) {
    const part = `${MEDIA}/${name}`;
    if (!isMediaName(name)) addProblem(problems, part, null, "must have a name without \\ and control characters");
    const path = await findFile(folder, part, problems);
    if (path !== null) files.set(name, path);
  }
  return files;
}

/** Sorted names in a folder; null when it is missing. Leaves out hidden files, which operating systems create. */
async function listFolder(folder: string, part: string, problems: Problems): Promise<string[] | null> {
  const found = await findPart(folder, part, "folder");
  if ("path" in found) return findNames(found.path, "*");
  if (found.isMissing) return null;
  addProblem(problems, part, null, found.fault);
  return [];
}

export function namePath({ folder, ending }: typeof TYPES, slug: string): string {
  return `${folder}/${slug}${ending}`;
}

/** The path of a file of the bundle; null, with a problem, when it cannot be read or is none. */
export async function findFile(folder: string, file: string, problems: Problems): Promise<string | null> {
  const found = await findPart(folder, file, "file");
  if ("path" in found) return found.path;
  const isNoBundle = found.isMissing && file === APP;
  addProblem(problems, file, null, isNoBundle ? await describeMissingApp(folder) : found.fault);
  return null;
}

type Part = { readonly path: string } | { readonly isMissing: boolean; readonly fault: string };

const IS_OUTSIDE = "is a symbolic link that leads out of the bundle: replace it with a copy of what it leads to";

/**
 * Finds what a path leads to. Whoever gives somebody a bundle to import must not learn by a link what else that person
 * may read; and reading a pipe or a device could take forever.
 */
async function findPart(folder: string, part: string, kind: "file" | "folder"): Promise<Part> {
  try {
    const path = await realpath(join(folder, part));
    const within = relative(await realpath(folder), path);
    if (isAbsolute(within) || within.split(sep)[0] === "..") return { isMissing: false, fault: IS_OUTSIDE };
    const found = await stat(path);
    const isRight = kind === "file" ? found.isFile() : found.isDirectory();
    if (isRight) return { path };
    return { isMissing: false, fault: `is ${describeKind(found)}, but must be a ${kind}` };
  } catch (error) {
    return describeReadFailure(error, join(folder, part));
  }
}

function describeKind(found: Stats): string {
  if (found.isDirectory()) return "a folder";
  if (found.isFile()) return "a file";
  if (found.isFIFO()) return "a named pipe";
  return found.isSocket() ? "a socket" : "a device";
}

/**
 * Says why a path cannot be read. A dangling symbolic link, to a disk that is not mounted for example, does not count
 * as missing: otherwise --prune would delete the content that it stands for.
 */
export async function describeReadFailure(
  error: unknown,
  path: string,
): Promise<{ isMissing: boolean; fault: string }> {
  const code = findCode(error);
  if (code !== "ENOENT") return { isMissing: false, fault: `cannot be read (${code})` };
  if ((await lstat(path).catch(() => null)) === null) return { isMissing: true, fault: "is missing" };
  return { isMissing: false, fault: "is a broken symbolic link: mount its target, or remove the link" };
}

function findCode(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? error);
}
