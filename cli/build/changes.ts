/**
 * The list of what a build changed, for those who must forget old answers: `.precast/changes.json`. It is written while
 * the build goes on, one change a line, and read again to put the changed files in their place.
 */
import { appendFileSync, closeSync, createReadStream, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const CHANGES_FILE = "changes.json";
const FORMAT = 1;

export type Change = {
  readonly change: "added" | "changed" | "gone";
  /** The tags of the answer: its app, and its type but for the catalog's. */
  readonly app: string;
  readonly type: string | null;
  /** Path and query; null for a file that no request asked for. */
  readonly request: string | null;
  /** Relative to the tree. */
  readonly file: string;
};

export type ChangesWriter = {
  readonly add: (change: Change) => void;
  /** Ends the file: what is gone comes last. */
  readonly close: () => void;
};

export function openChanges(folder: string, builtAt: string): ChangesWriter {
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
  const close = () => {
    present.flush();
    gone.flush();
    if (counts.gone > 0) appendFile(file, goneFile, counts.gone === counts.added + counts.changed + counts.gone);
    appendFileSync(file, `\n],"tags":${JSON.stringify([...tags].sort())},${JSON.stringify(counts).slice(1)}\n`);
    rmSync(goneFile, { force: true });
  };
  return { add, close };
}

/** The changes in the order in which they have to be made. */
export async function* readChanges(folder: string): AsyncGenerator<Change> {
  for await (const line of createInterface({ input: createReadStream(join(folder, CHANGES_FILE)) })) {
    if (line.startsWith('{"change":')) yield JSON.parse(line.replace(/,$/, "")) as Change;
  }
}

const BATCH = 1_000;

/** Lines of a JSON array; they are appended many at a time. */
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

/** Appends a part to an array, whose first lines it may be. */
function appendFile(file: string, part: string, first: boolean): void {
  if (!first) appendFileSync(file, ",");
  const chunk = Buffer.allocUnsafe(1 << 20);
  const source = openSync(part, "r");
  try {
    for (let size = readSync(source, chunk); size > 0; size = readSync(source, chunk)) {
      appendFileSync(file, chunk.subarray(0, size));
    }
  } finally {
    closeSync(source);
  }
}
