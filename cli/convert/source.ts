/** Opens the files of a source: lists them in a fixed order, and reads them in pieces while progress is counted. */
import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import fastGlob from "fast-glob";
import { type Place, type ReadContext, SourceError } from "./record.ts";

const NOT_UTF8 = "is not valid UTF-8: save it as UTF-8";

/** A file of a source: its path on this disk, and its name for people. */
export type SourceFile = { readonly path: string; readonly name: string };

/**
 * The files that the patterns of fast-glob name below a folder, in byte order of their names; or the source itself when
 * it is a file. Throws SourceError when there are none.
 */
export async function listSources(
  source: string,
  patterns: readonly string[],
  expected: string,
): Promise<SourceFile[]> {
  const found = await stat(source).catch(() => null);
  if (found === null)
    throw new SourceError({ file: source, line: null }, `there is no such file or folder; specify ${expected}`);
  if (!found.isDirectory()) return [{ path: source, name: basename(source) }];
  const names = await fastGlob([...patterns], { cwd: source, dot: false, caseSensitiveMatch: false });
  if (names.length === 0)
    throw new SourceError({ file: source, line: null }, `the folder holds no such file; specify ${expected}`);
  return names.sort().map((name) => ({ path: join(source, name), name }));
}

/** The number of bytes of a file, or of all files of a folder. */
export async function measureSource(source: string): Promise<number> {
  const found = await stat(source).catch(() => null);
  if (found === null || !found.isDirectory()) return found?.size ?? 0;
  const files = await fastGlob("**/*", { cwd: source, stats: true });
  return files.reduce((sum, { stats }) => sum + (stats?.size ?? 0), 0);
}

/** The bytes of a file in pieces. */
export async function* readPieces(
  { path }: SourceFile,
  { advance }: Pick<ReadContext, "advance">,
): AsyncGenerator<Buffer> {
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>) {
    advance(piece.length);
    yield piece;
  }
}

/** The text of a file in pieces, without a byte order mark. Throws SourceError with the line that is not UTF-8. */
export async function* readTextPieces(file: SourceFile, context: Pick<ReadContext, "advance">): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = 1;
  const decode = (piece?: Buffer) => {
    try {
      return decoder.decode(piece, { stream: piece !== undefined });
    } catch {
      const sound = piece === undefined ? 0 : countSoundLines(piece);
      throw new SourceError({ file: file.name, line: line + sound }, NOT_UTF8);
    }
  };
  for await (const piece of readPieces(file, context)) {
    const text = decode(piece);
    line += text.split("\n").length - 1;
    yield text;
  }
  // A character that the end of the file cuts off.
  decode();
}

/** The number of lines before the first that is not UTF-8. */
function countSoundLines(piece: Buffer): number {
  let [count, start] = [0, 0];
  for (
    let end = piece.indexOf(0x0a);
    end >= 0 && isUtf8(piece.subarray(start, end));
    end = piece.indexOf(0x0a, start)
  ) {
    start = end + 1;
    count += 1;
  }
  return count;
}

/** A file whole, as text without a byte order mark. Throws SourceError when it is not UTF-8. */
export async function readWhole(file: SourceFile, { advance }: Pick<ReadContext, "advance">): Promise<string> {
  const bytes = await readFile(file.path);
  advance(bytes.length);
  return decodeUtf8(bytes, { file: file.name, line: null });
}

/** The lines of a file that are not blank, with their numbers from 1. */
export async function* readTextLines(
  file: SourceFile,
  context: Pick<ReadContext, "advance">,
): AsyncGenerator<{ readonly text: string; readonly place: Place }> {
  let rest: Buffer[] = [];
  let line = 0;
  const finish = (end: Buffer) => {
    const place = { file: file.name, line: ++line };
    const text = decodeUtf8(Buffer.concat([...rest, end]), place);
    rest = [];
    return { text, place };
  };
  for await (const piece of readPieces(file, context)) {
    let start = 0;
    for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, start)) {
      const found = finish(piece.subarray(start, end));
      if (found.text.trim() !== "") yield found;
      start = end + 1;
    }
    rest.push(piece.subarray(start));
  }
  const last = finish(Buffer.alloc(0));
  if (last.text.trim() !== "") yield last;
}

function decodeUtf8(bytes: Buffer, place: Place): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new SourceError(place, NOT_UTF8);
  }
}
