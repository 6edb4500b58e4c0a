/** Reads chosen values of a JSON file that may be larger than memory, one after the other. */
import { JSONParser } from "@streamparser/json";
import { type ReadContext, SourceError } from "./record.ts";
import { readPieces, type SourceFile } from "./source.ts";

/** `path` has the keys that lead to the value, from the outside in: `["entries", 12]`. */
export type FoundValue = { readonly path: readonly (string | number)[]; readonly value: unknown };

/** `paths` are such as `$.entries.*`. Throws SourceError when the file is not JSON. */
export async function* readJsonValues(
  file: SourceFile,
  paths: readonly string[],
  context: Pick<ReadContext, "advance">,
): AsyncGenerator<FoundValue> {
  const found: FoundValue[] = [];
  const parser = new JSONParser({ paths: [...paths], keepStack: false });
  let fault: Error | null = null;
  parser.onValue = ({ value, key, stack }) => {
    const outer = stack.slice(1).map((level) => level.key);
    found.push({ path: [...outer, key].filter((one) => one !== undefined), value });
  };
  parser.onError = (error) => {
    fault = error;
  };
  for await (const piece of readPieces(file, context)) {
    if (!parser.isEnded) parser.write(piece);
    if (fault !== null) break;
    yield* found.splice(0);
  }
  if (fault === null && parser.isEnded) return;
  const why = fault === null ? "it ends too early" : (fault as Error).message;
  throw new SourceError({ file: file.name, line: null }, `is not valid JSON: ${why}`);
}
