/** Unpacks archives of tar, compressed or not, into a folder. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract } from "tar";
import { type ReadContext, SourceError } from "./record.ts";
import { readPieces, type SourceFile } from "./source.ts";

/** Only files and folders, and none outside the folder. Throws SourceError when it is no archive, or a broken one. */
export async function unpackArchive(
  file: SourceFile,
  folder: string,
  context: Pick<ReadContext, "advance">,
): Promise<void> {
  const unpack = extract({
    cwd: folder,
    strict: true,
    filter: (_path, entry) =>
      "type" in entry && ["File", "OldFile", "ContiguousFile", "Directory"].includes(entry.type),
  });
  try {
    await pipeline(Readable.from(readPieces(file, context)), unpack);
  } catch (error) {
    throw new SourceError(
      { file: file.name, line: null },
      `cannot be unpacked (${(error as Error).message}): export it again`,
    );
  }
}
