/**
 * Finds what PostgreSQL cannot store in a JSON text. Reads its tokens, because JSON.parse rounds numbers and keeps only
 * the last value of a repeated key, whereas the database reads every value.
 */

/** U+0000, or half of a surrogate pair. With the flag `u`, a whole pair is one character and does not match. */
const UNSTORABLE = /[\0\p{Surrogate}]/u;
/** JSON text that was valid UTF-8 can contain such characters only as escapes. */
const SUSPECT_ESCAPE = /\\u(?:0000|d[89a-f])/i;
/** Nearly every UUID would match without what stands before a number in JSON text. */
const SUSPECT_EXPONENT = /(?:^|[[:,\s])-?[\d.]+e[+-]?\d{4}/i;
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** The limits of PostgreSQL's `numeric`. */
const MAX_WHOLE_DIGITS = 131_072;
const MAX_DECIMALS = 16_383;
/** Nesting levels of a field's value. PostgreSQL allows more, but the embedded database fails at about 5,000. */
const MAX_DEPTH = 1_000;
/** Nesting levels around a field's value: the line's object and its `data`. */
const OUTER_DEPTH = 2;
/** Characters. A line of this length or less, without such an escape or exponent, cannot break any limit. */
const MAX_HARMLESS = 2 * MAX_DEPTH;

const BAD_TEXT = "must not contain U+0000 or half of a surrogate pair (\\ud800 to \\udfff on its own)";
const BAD_NUMBER = `must not contain a number of more than ${MAX_WHOLE_DIGITS} digits or ${MAX_DECIMALS} decimals`;
const BAD_DEPTH = `must not be nested more than ${MAX_DEPTH} levels deep`;

/** `field` is the field of `data` whose value has the fault; null for a fault in another place. */
type Unstorable = { readonly field: string | null; readonly fault: string };

/** Finds what cannot be stored in a valid JSON text: a line of an entries file, or a definition file. */
export function unstorableIn(line: string): Unstorable[] {
  if (line.length <= MAX_HARMLESS && !SUSPECT_ESCAPE.test(line) && !SUSPECT_EXPONENT.test(line)) return [];
  const found = new Map<string, Unstorable>();
  for (const { token, depth, field } of placedTokens(line)) {
    const fault = findFault(token, depth);
    if (fault !== null) found.set(JSON.stringify([field, fault]), { field, fault });
  }
  return [...found.values()];
}

function findFault(token: string, depth: number): string | null {
  if (token.startsWith('"')) {
    return SUSPECT_ESCAPE.test(token) && UNSTORABLE.test(JSON.parse(token) as string) ? BAD_TEXT : null;
  }
  if (depth > OUTER_DEPTH + MAX_DEPTH) return BAD_DEPTH;
  const [, whole, decimals = "", exponent = "0"] = NUMBER.exec(token) ?? [];
  if (whole === undefined) return null;
  const tooLong =
    whole.length + Number(exponent) > MAX_WHOLE_DIGITS || decimals.length - Number(exponent) > MAX_DECIMALS;
  return tooLong ? BAD_NUMBER : null;
}

/** Yields each token with its nesting depth and the field of `data` to whose value it belongs, or null. */
function* placedTokens(line: string): Generator<{ token: string; depth: number; field: string | null }> {
  let depth = 0;
  let last = "";
  // `key` is the current key of the line, `field` the current key of the object under it.
  let key: string | null = null;
  let field: string | null = null;
  for (const token of tokens(line)) {
    if (token === "{" || token === "[") depth++;
    if (token === "}" || token === "]") depth--;
    if (token === ":" && depth === 1) key = JSON.parse(last) as string;
    if (token === ":" && depth === 2) field = JSON.parse(last) as string;
    if (depth <= 1 || (depth === 2 && (token === "," || token === "{"))) field = null;
    yield { token, depth, field: key === "data" ? field : null };
    last = token;
  }
}

/** Yields the tokens of a valid JSON text, without whitespace. */
function* tokens(json: string): Generator<string> {
  const plain = /\s*([-+.\w]+|[^"\w\s])?/y;
  for (let at = 0; at < json.length; ) {
    const start = at;
    if (json[at] !== '"') {
      plain.lastIndex = at;
      const token = plain.exec(json)?.[1];
      at = plain.lastIndex;
      if (token !== undefined) yield token;
      continue;
    }
    for (at++; json[at] !== '"'; ) at += json[at] === "\\" ? 2 : 1;
    yield json.slice(start, ++at);
  }
}
