/**
 * Writes and reads `.precast/changes.json`, the list of what a build changed, by which CDNs are purged. The list is
 * written during the build, one change per line, and read again to move the changed files into place.
 */
import { appendFileSync, closeSync, existsSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import * as z from "zod";
import { yieldToEventLoop } from "../../shared/files.ts";
import { parseJson } from "../../shared/settings/zod.ts";
import { CHANGES_FILE } from "../../shared/tree.ts";

const FORMAT = 1;

export type Change = {
  readonly change: "added" | "changed" | "gone";
  /** `app` and `type` are the tags of the answer. `type` is null for the catalog and for a file without a request. */
  readonly app: string;
  readonly type: string | null;
  /** Path and query; null when no request for the file is known. */
  readonly request: string | null;
  /** Path relative to the tree. */
  readonly file: string;
  /** Set when an earlier build made the change and died before it could report it. */
  readonly carried?: true;
};

export type ChangesWriter = ReturnType<typeof openChanges>;

/** `carried` is the path of a list of changes that were not reported yet. The file need not exist. */
export function openChanges(folder: string, builtAt: string, carried: string) {
  const file = join(folder, CHANGES_FILE);
  const goneFile = join(folder, "gone.part");
  const counts = { added: 0, changed: 0, gone: 0 };
  const tags = new Set<string>();
  writeFileSync(file, `{"format":${FORMAT},"built_at":${JSON.stringify(builtAt)},"changes":[`);
  const present = openLines(file);
  const gone = openLines(goneFile);

  const add = (change: Change) => {
    counts[change.change] += 1;
    tags.add(change.app);
    if (change.type !== null) tags.add(`${change.app}/${change.type}`);
    (change.change === "gone" ? gone : present).add(JSON.stringify(change));
  };
  for (const change of pendingChanges(carried)) add(change);
  /** Completes the list: appends deletions, tags and counts. */
  const close = async () => {
    present.flush();
    gone.flush();
    if (counts.gone > 0) await appendFile(file, goneFile, counts.added + counts.changed === 0);
    appendFileSync(file, `\n],"tags":${JSON.stringify([...tags].sort())},${JSON.stringify(counts).slice(1)}\n`);
    rmSync(goneFile, { force: true });
  };
  return { add, close };
}

/** Yields the changes that a build made itself, except those below a folder in `skip`. Other work runs in between. */
export async function* ownChanges(folder: string, skip: ReadonlySet<string>): AsyncGenerator<Change> {
  for (const line of linesOf(join(folder, CHANGES_FILE))) {
    await yieldToEventLoop();
    if (line.startsWith('{"change":') && !(skip.size > 0 && skip.has(findRoot(line)))) yield parseLine(line);
  }
}

/** When the build began that has written a list; null when there is no list. */
export function readBuildTime(file: string): string | null {
  if (!existsSync(file)) return null;
  for (const line of linesOf(file)) return /"built_at":"([^"]+)"/.exec(line)?.[1] ?? null;
  return null;
}

/** Whether a list is complete: a power failure may have truncated it, or left holes in it. */
export function isWholeList(file: string): boolean {
  let [count, last] = [0, ""];
  for (const line of linesOf(file)) {
    if (readLine(line) !== null) count += 1;
    last = line;
  }
  const counts = parseJson(
    `{${last.slice("],".length)}`,
    z.object({ added: z.int(), changed: z.int(), gone: z.int() }),
  );
  return counts !== null && counts.added + counts.changed + counts.gone === count;
}

/** Yields the changes of a list, marked as carried. Skips unreadable lines, because the list may be damaged. */
function* pendingChanges(file: string): Generator<Change> {
  if (!existsSync(file)) return;
  for (const line of linesOf(file)) {
    const change = readLine(line);
    if (change !== null) yield { carried: true, ...change };
  }
}

/** Null for a line that is not a change, or only a part of one. */
function readLine(line: string): Change | null {
  if (!line.startsWith('{"change":') && !line.startsWith('{"carried":')) return null;
  try {
    return parseLine(line);
  } catch {
    return null;
  }
}

function parseLine(line: string): Change {
  return JSON.parse(line.endsWith(",") ? line.slice(0, -1) : line) as Change;
}

const FILE_KEY = '"file":"';

/** The folder `<app>/v1` of the file in a line. Parses no JSON, because a first build has a line for every file. */
function findRoot(line: string): string {
  const start = line.lastIndexOf(FILE_KEY) + FILE_KEY.length;
  return line.slice(start, line.indexOf("/", line.indexOf("/", start) + 1));
}

function* linesOf(file: string): Generator<string> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for (const chunk of chunksOf(file)) {
    const lines = (rest + decoder.write(chunk)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

const BATCH = 1_000;

/** Appends lines to a JSON array in a file, many at a time. */
function openLines(file: string) {
  let lines: string[] = [];
  let separator = "\n";
  const flush = () => {
    if (lines.length === 0) return;
    appendFileSync(file, separator + lines.join(",\n"));
    separator = ",\n";
    lines = [];
  };
  const add = (line: string) => {
    if (lines.push(line) === BATCH) flush();
  };
  return { add, flush };
}

/** Appends the lines of the file `part` to a JSON array; `first` is whether that is still empty. */
async function appendFile(file: string, part: string, first: boolean): Promise<void> {
  if (!first) appendFileSync(file, ",");
  for (const chunk of chunksOf(part)) {
    appendFileSync(file, chunk);
    await yieldToEventLoop();
  }
}

function* chunksOf(file: string): Generator<Buffer> {
  const chunk = Buffer.allocUnsafe(1 << 20);
  const source = openSync(file, "r");
  try {
    for (let size = readSync(source, chunk); size > 0; size = readSync(source, chunk)) yield chunk.subarray(0, size);
  } finally {
    closeSync(source);
  }
}
