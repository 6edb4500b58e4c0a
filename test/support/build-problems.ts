/**
 * Checks what a build leaves behind: the files of a full build byte for byte, correct reports and records of changes,
 * and untouched files where nothing changed. Each check returns its problems as sentences, none when all is well.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { segment } from "../../shared/api/address.ts";
import { LONG_VALUES } from "./edits.ts";

/** A build's report on an app. */
export type Report = {
  readonly key: string;
  readonly mode: "full" | "incremental";
  readonly reason: string;
  readonly added: number;
  readonly changed: number;
  readonly deleted: number;
  readonly written: number;
  readonly unchanged: number;
  readonly bytes: number;
  readonly seconds: number;
};

export type Change = {
  readonly change: "added" | "changed" | "gone";
  readonly app: string;
  readonly type: string | null;
  readonly request: string;
  readonly file: string;
};

export type ChangesFile = {
  readonly format: number;
  readonly built_at: string;
  readonly changes: readonly Change[];
  readonly tags: readonly string[];
  readonly added: number;
  readonly changed: number;
  readonly gone: number;
};

export type TreeFile = { readonly bytes: string; readonly mtime: bigint };
/** By path relative to the tree. */
export type TreeFiles = ReadonlyMap<string, TreeFile>;

/** Every file of a tree except those in `.precast`. */
export function readFiles(out: string): TreeFiles {
  const files = new Map<string, TreeFile>();
  for (const path of pathsOf(out, false)) {
    const { mtimeNs } = statSync(join(out, path), { bigint: true });
    files.set(path, { bytes: readFileSync(join(out, path), "latin1"), mtime: mtimeNs });
  }
  return files;
}

/** The paths of all files, or of all empty folders. */
function pathsOf(out: string, emptyFolders: boolean, below = ""): string[] {
  let entries: ReturnType<typeof listFolder>;
  try {
    entries = listFolder(join(out, below));
  } catch {
    return [];
  }
  if (below === "") entries = entries.filter(({ name }) => name !== ".precast");
  if (emptyFolders && entries.length === 0 && below !== "") return [below];
  return entries.flatMap((entry) => {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) return pathsOf(out, emptyFolders, path);
    return emptyFolders ? [] : [path];
  });
}

function listFolder(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}

/** Shortens a list of problems of one kind. */
function few(problems: readonly string[]): string[] {
  return problems.length > 4 ? [...problems.slice(0, 4), `… and ${problems.length - 4} more`] : [...problems];
}

/** The differences between the expected tree and the actual one, and the empty folders of the latter. */
export function treeProblems(expected: TreeFiles, got: TreeFiles, out: string): string[] {
  const missing = [...expected.keys()].filter((path) => !got.has(path));
  const surplus = [...got.keys()].filter((path) => !expected.has(path));
  const differing = [...expected].filter(([path, { bytes }]) => got.has(path) && got.get(path)?.bytes !== bytes);
  return [
    ...few(missing.map((path) => `the tree lacks ${path}`)),
    ...few(surplus.map((path) => `the tree must not have ${path}`)),
    ...few(differing.map(([path, { bytes }]) => `${path} should be ${bytes} and is ${got.get(path)?.bytes}`)),
    ...few(pathsOf(out, true).map((path) => `the folder ${path} is empty`)),
  ];
}

/**
 * Files whose modification time changed though their bytes did not; and changed files that a web server cannot tell
 * from the ones that they replace, because size and second are the same.
 */
export function touchProblems(before: TreeFiles, after: TreeFiles): string[] {
  const touched = [...after].filter(([path, { bytes, mtime }]) => {
    const old = before.get(path);
    return old?.bytes === bytes && old.mtime !== mtime;
  });
  const alike = [...after].filter(([path, { bytes, mtime }]) => {
    const old = before.get(path);
    return (
      old !== undefined &&
      old.bytes !== bytes &&
      old.bytes.length === bytes.length &&
      secondOf(old.mtime) === secondOf(mtime)
    );
  });
  return [
    ...few(touched.map(([path]) => `${path} was written though its bytes are the same`)),
    ...few(alike.map(([path]) => `${path} has the size and the second of what it replaces`)),
  ];
}

function secondOf(nanoseconds: bigint): bigint {
  return nanoseconds / 1_000_000_000n;
}

/** The differences between two trees as `changes.json` records them, by file. */
export function changesBetween(before: TreeFiles, after: TreeFiles, keys: readonly string[]): Change[] {
  const apps = new Map(keys.map((key) => [segment(key), key]));
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((file) => {
    const [old, now] = [before.get(file)?.bytes, after.get(file)?.bytes];
    if (old === now) return [];
    const change = old === undefined ? "added" : now === undefined ? "gone" : "changed";
    const [folder = "", , ...rest] = file.split("/");
    return [{ change, app: apps.get(folder) ?? `unknown ${folder}`, ...requestOf(rest), file } as const];
  });
}

/** The request that a file answers: contract section 8, read backwards. */
function requestOf(path: readonly string[]): { readonly type: string | null; readonly request: string } {
  const names = path.map((name) => name.replace(/\.json$/, ""));
  const [first = "", second = "", third = "", last = ""] = names;
  if (first === "_schemas") {
    return names.length === 1
      ? { type: null, request: "/api/v1/_schemas" }
      : { type: second, request: `/api/v1/_schemas/${second}` };
  }
  const requests: Readonly<Record<string, string>> = {
    page: third === "1" ? "" : `?page=${third}`,
    sort: `?sort=${third}`,
    entry: `/${third}`,
    filter: `?filter[${third}]=${encodeURIComponent(textOfSegment(last))}`,
  };
  return { type: first, request: `/api/v1/${first}${requests[second] ?? " unknown"}` };
}

function textOfSegment(name: string): string {
  const rest = name.slice(2);
  if (name.startsWith("s-")) return rest;
  if (name.startsWith("x-")) return Buffer.from(rest, "hex").toString("utf8");
  return LONG_VALUES.get(rest) ?? `unknown ${name}`;
}

function count(changes: readonly Change[], change: Change["change"]): number {
  return changes.filter((one) => one.change === change).length;
}

function unequal(what: string, expected: unknown, got: unknown): string[] {
  const [should, is] = [JSON.stringify(expected), JSON.stringify(got)];
  return should === is ? [] : [`${what} should be ${should} and is ${is}`];
}

/** Where an app's report disagrees with what happened to its files. */
export function reportProblems(report: Report | undefined, key: string, real: readonly Change[], after: TreeFiles) {
  if (report === undefined) return [`the report lacks ${key}`];
  const changes = real.filter((one) => one.app === key);
  const files = [...after].filter(([path]) => path.startsWith(`${segment(key)}/`));
  const written = count(changes, "added") + count(changes, "changed");
  const says = (name: keyof Report, value: number) => unequal(`${name} in the report of ${key}`, value, report[name]);
  return [
    ...says("written", written),
    ...says("added", count(changes, "added")),
    ...says("changed", count(changes, "changed")),
    ...says("deleted", count(changes, "gone")),
    ...says("unchanged", files.length - written),
    ...says("bytes", sizeOf(files)),
  ];
}

function sizeOf(files: readonly (readonly [string, TreeFile])[]): number {
  return files.reduce((sum, [, { bytes }]) => sum + bytes.length, 0);
}

/** Where an app's state disagrees with its files. */
export function stateProblems(out: string, key: string, after: TreeFiles): string[] {
  const files = [...after].filter(([path]) => path.startsWith(`${segment(key)}/`));
  const entries = files.filter(([path]) => path.split("/")[3] === "entry");
  let state: Record<string, unknown>;
  try {
    state = JSON.parse(readFileSync(join(out, ".precast", `${segment(key)}.json`), "utf8")) as Record<string, unknown>;
  } catch (error) {
    return [`the state of ${key} cannot be read: ${(error as Error).message}`];
  }
  return [
    ...unequal(`files in the state of ${key}`, files.length, state.files),
    ...unequal(`entries in the state of ${key}`, entries.length, state.entries),
    ...unequal(`bytes in the state of ${key}`, sizeOf(files), state.bytes),
  ];
}

/** Reports when `.precast` holds anything but one state for each app, `changes.json` and `history.json`. */
export function leftoverProblems(out: string, keys: readonly string[]): string[] {
  const expected = ["changes.json", "history.json", ...keys.map((key) => `${segment(key)}.json`)].sort();
  return unequal("the folder .precast", expected, readdirSync(join(out, ".precast")).sort());
}

/** Null when `changes.json` is missing or unreadable. */
export function readChanges(out: string): ChangesFile | null {
  try {
    return JSON.parse(readFileSync(join(out, ".precast", "changes.json"), "utf8")) as ChangesFile;
  } catch {
    return null;
  }
}

/** Where `changes.json` disagrees with what happened. */
export function changesProblems(out: string, real: readonly Change[]): string[] {
  const file = readChanges(out);
  if (file === null) return ["changes.json is not there or cannot be read"];
  const line = ({ change, app, type, request, file }: Change) => JSON.stringify({ change, app, type, request, file });
  const [should, is] = [new Set(real.map(line)), new Set(file.changes.map(line))];
  const tags = real.flatMap(({ app, type }) => (type === null ? [app] : [app, `${app}/${type}`]));
  return [
    ...few([...should].filter((one) => !is.has(one)).map((one) => `changes.json lacks ${one}`)),
    ...few([...is].filter((one) => !should.has(one)).map((one) => `changes.json must not have ${one}`)),
    ...unequal("the number of changes in changes.json", real.length, file.changes.length),
    ...unequal("the tags in changes.json", [...new Set(tags)].sort(), [...file.tags].sort()),
    ...unequal("added in changes.json", count(real, "added"), file.added),
    ...unequal("changed in changes.json", count(real, "changed"), file.changed),
    ...unequal("gone in changes.json", count(real, "gone"), file.gone),
  ];
}
