/** Reads chosen values of a JSON file that may be larger than memory, one after the other, with the lines of each. */
import { JSONParser, TokenType } from "@streamparser/json";
import { type Place, type ReadContext, SourceError } from "./record.ts";
import { readPieces, type SourceFile } from "./source.ts";

/**
 * `path` has the keys that lead to the value, from the outside in: `["entries", 12]`; `place` has the line on which it
 * begins.
 */
export type FoundValue = {
  readonly path: readonly (string | number)[];
  readonly value: unknown;
  readonly place: Place;
};

/** `paths` are such as `$.entries.*`. Throws SourceError when the file is not JSON. */
export async function* readJsonValues(
  file: SourceFile,
  paths: readonly string[],
  context: Pick<ReadContext, "advance">,
): AsyncGenerator<FoundValue> {
  const parser = new JSONParser({ paths: [...paths], keepStack: false });
  const begun: number[] = [];
  let found: FoundValue[] = [];
  let piece: Buffer = Buffer.alloc(0);
  let before = 0;
  let line = 1;
  let counted = 0;
  const countTo = (end: number) => {
    for (let at = piece.indexOf(0x0a, counted); at >= 0 && at < end; at = piece.indexOf(0x0a, counted)) {
      line++;
      counted = at + 1;
    }
  };
  let start = 1;
  parser.onToken = ({ token, offset }) => {
    if (token === TokenType.LEFT_BRACE || token === TokenType.LEFT_BRACKET) {
      countTo(offset - before);
      begun.push(line);
    } else if (token === TokenType.RIGHT_BRACE || token === TokenType.RIGHT_BRACKET) start = begun.pop() ?? line;
    else start = line;
  };
  parser.onValue = ({ value, key, stack }) => {
    const path = [...stack.slice(1).map((element) => element.key), key].filter((part) => part !== undefined);
    found.push({ value, path, place: { file: file.name, line: start } });
  };
  const refuse = (error: unknown, end: number): never => {
    const { message } = error as Error;
    countTo(Number(/chunk position "(\d+)"/.exec(message)?.[1] ?? end));
    throw new SourceError({ file: file.name, line }, describeFault(message));
  };
  for await (const bytes of readPieces(file, context)) {
    piece = bytes;
    counted = 0;
    try {
      parser.write(bytes);
    } catch (error) {
      refuse(error, bytes.length);
    }
    countTo(bytes.length);
    before += bytes.length;
    yield* found;
    found = [];
  }
  if (!parser.isEnded) refuse(new Error("ended"), 0);
}

/** In the words of a person, of what the parser says about its states. */
function describeFault(message: string): string {
  if (/encoded data was not valid/i.test(message)) return "is not valid UTF-8: save it as UTF-8";
  if (message.endsWith("ended")) return "is not valid JSON: it ends too early, export it again";
  return `is not valid JSON: ${message.replace(/ (?:at chunk|in state) .*$/, "").replace(/[A-Z_]+ \((.*)\)/, "$1")}`;
}
