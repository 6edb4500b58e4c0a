/** The names in a bundle folder (bundle.md): lists them, refuses wrong ones, and says why one cannot be read. */
import { lstat, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { TYPE_SLUG } from "../../shared/catalog.ts";
import { A_SLUG } from "./definition.ts";
import { addProblem, type Problems } from "./problem.ts";

export const APP = "app.json";
export const TYPES = { folder: "content_types", ending: ".json" };
export const ENTRIES = { folder: "entries", ending: ".ndjson" };
const PARTS = [APP, TYPES.folder, ENTRIES.folder];

const WRONG_FILE_TYPE: Readonly<Record<string, string>> = {
  EISDIR: "is a folder, but must be a file",
  ENOTDIR: "is a file, but must be a folder",
};

export async function isFolder(path: string): Promise<boolean> {
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
export function refuseMisspelt(names: readonly string[], problems: Problems): void {
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
export async function namesIn(folder: string, kind: typeof TYPES, problems: Problems): Promise<string[] | null> {
  const files = await listFolder(folder, kind.folder, problems);
  if (files === null) return null;
  const nameOf = (file: string) => file.slice(0, -kind.ending.length);
  const rule = `must be named <slug of a content type>${kind.ending}; a slug is ${A_SLUG}`;
  for (const file of files) {
    if (file.endsWith(kind.ending) && TYPE_SLUG.test(nameOf(file))) continue;
    addProblem(problems, `${kind.folder}/${file}`, null, rule);
  }
  return files.filter((file) => file.endsWith(kind.ending)).map(nameOf);
}

/** Sorted names in a folder; null when it is missing. Leaves out hidden files, which operating systems create. */
export async function listFolder(folder: string, place: string, problems: Problems): Promise<string[] | null> {
  const names = await readdir(join(folder, place)).catch(async (error: unknown) => {
    const { isMissing, fault } = await readFailureOf(error, join(folder, place));
    if (isMissing) return null;
    addProblem(problems, place, null, fault);
    return [];
  });
  return names === null ? null : names.filter((name) => !name.startsWith(".")).sort();
}

export function fileOf({ folder, ending }: typeof TYPES, slug: string): string {
  return `${folder}/${slug}${ending}`;
}

type ReadFailure = { readonly isMissing: boolean; readonly fault: string };

/**
 * Says why a path cannot be read. A dangling symbolic link, to a disk that is not mounted for example, does not count
 * as missing: otherwise --prune would delete the content that it stands for.
 */
export async function readFailureOf(error: unknown, path: string): Promise<ReadFailure> {
  const code = codeOf(error);
  if (code !== "ENOENT") return { isMissing: false, fault: WRONG_FILE_TYPE[code] ?? `cannot be read (${code})` };
  if ((await lstat(path).catch(() => null)) === null) return { isMissing: true, fault: "is missing" };
  return { isMissing: false, fault: "is a broken symbolic link: mount its target, or remove the link" };
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? error);
}
