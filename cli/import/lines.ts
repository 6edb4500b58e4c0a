/** Reads the lines of a file in chunks. Memory use does not grow with the size of the file. */
import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";

export type Line = { readonly number: number } & ({ readonly text: string } | { readonly fault: string });

const CHUNK = 1 << 18;
const MAX_LINE = 64 << 20;
const NEWLINE = 0x0a;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Yields the lines that are not blank, numbered from 1, in arrays of those that end in one chunk of the file. */
export async function* readLines(path: string): AsyncGenerator<Line[]> {
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
export function decodeText(bytes: Buffer): { readonly text: string } | { readonly fault: string } {
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
