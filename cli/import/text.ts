/**
 * Reads JSON as text: finds what PostgreSQL cannot store in it, numbers that no double has, keys that an object has
 * twice, and the line on which it stops being JSON.
 */

// Finds what cannot be stored. Reads tokens, because JSON.parse rounds numbers.

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

/** Every number of at most 15 digits is told from all others as a double, within its range. */
const SUSPECT_NUMBER = /(?:^|[[:,\s])-?(?:[\d.]{16,}|[\d.]+e[+-]?\d{3})/i;

/** The numbers that are values of fields in the `data` of a valid line, and that no double has. */
export function inexactNumbersIn(line: string): { readonly field: string; readonly number: string }[] {
  if (!SUSPECT_NUMBER.test(line)) return [];
  return [...placedTokens(line)].flatMap(({ token, depth, field }) =>
    depth === 2 && field !== null && NUMBER.test(token) && spell(token) !== spell(String(Number(token)))
      ? { field, number: token }
      : [],
  );
}

/** One spelling for all that mean the same number: its digits, and the power of ten behind the last. */
function spell(number: string): string {
  const [, whole = "", decimals = "", exponent = "0"] = NUMBER.exec(number) ?? [];
  const digits = (whole + decimals).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short === "" ? "0" : `${short}e${Number(exponent) - decimals.length + digits.length - short.length}`;
}

/** Yields each token with its nesting depth and the field of `data` to whose value it belongs, or null. */
function* placedTokens(line: string): Generator<{ token: string; depth: number; field: string | null }> {
  let depth = 0;
  let last = "";
  // `key` is the current key of the line, `field` the current key of the object under it.
  let key: string | null = null;
  let field: string | null = null;
  for (const { token } of tokens(line)) {
    if (token === "{" || token === "[") depth++;
    if (token === "}" || token === "]") depth--;
    if (token === ":" && depth === 1) key = JSON.parse(last) as string;
    if (token === ":" && depth === 2) field = JSON.parse(last) as string;
    if (depth <= 1 || (depth === 2 && (token === "," || token === "{"))) field = null;
    yield { token, depth, field: key === "data" ? field : null };
    last = token;
  }
}

/** Yields the tokens of a valid JSON text, without whitespace, each with the place behind it. */
function* tokens(json: string): Generator<{ token: string; end: number }> {
  const plain = /\s*([-+.\w]+|[^"\w\s])?/y;
  for (let at = 0; at < json.length; ) {
    const start = at;
    if (json[at] !== '"') {
      plain.lastIndex = at;
      const token = plain.exec(json)?.[1];
      at = plain.lastIndex;
      if (token !== undefined) yield { token, end: at };
      continue;
    }
    for (at++; json[at] !== '"'; ) at += json[at] === "\\" ? 2 : 1;
    at++;
    yield { token: json.slice(start, at), end: at };
  }
}

// Finds keys that an object has more than once: JSON.parse keeps the last value without a word.

/** `line` counts from 1. */
type RepeatedKey = { readonly key: string; readonly line: number };

/** The keys that an object in a valid JSON text has again. `value` is what the text was parsed to. */
export function findRepeatedKeys(json: string, value: unknown): RepeatedKey[] {
  return countColons(json) === countMembers(value) ? [] : listRepeatedKeys(json);
}

/** Each member of an object has one colon outside of strings. Jumps from quote to quote, as most lines are text. */
function countColons(json: string): number {
  let colons = 0;
  for (let at = 0; at < json.length; ) {
    const quote = json.indexOf('"', at);
    const stop = quote < 0 ? json.length : quote;
    for (; at < stop; at++) if (json[at] === ":") colons++;
    for (at = stop + 1; at < json.length && json[at] !== '"'; at++) if (json[at] === "\\") at++;
    at++;
  }
  return colons;
}

function countMembers(value: unknown): number {
  let members = 0;
  const open = [value];
  while (open.length > 0) {
    const one = open.pop();
    if (typeof one !== "object" || one === null) continue;
    const inner = Object.values(one);
    if (!Array.isArray(one)) members += inner.length;
    for (const each of inner) open.push(each);
  }
  return members;
}

function listRepeatedKeys(json: string): RepeatedKey[] {
  const found: RepeatedKey[] = [];
  const keys: Set<string>[] = [];
  let last = "";
  for (const { token, end } of tokens(json)) {
    if (token === "{" || token === "[") keys.push(new Set());
    if (token === "}" || token === "]") keys.pop();
    if (token === ":") {
      const key = JSON.parse(last) as string;
      if (keys.at(-1)?.has(key)) found.push({ key, line: json.slice(0, end).split("\n").length });
      keys.at(-1)?.add(key);
    }
    last = token;
  }
  return found;
}

// Finds the line on which a text stops being JSON. The error of JSON.parse does not always name the position: that
// depends on the fault and on the version of Node.js.

/**
 * One of these, followed by the closing brackets, completes lines that are valid so far: nothing, a value, the rest of
 * a pair after its key, or a whole pair.
 */
const CONTINUATIONS = ["", " 0", " :0", ' "":0'];

/** Number of that line, from 1, in a text that JSON.parse refuses. It is the last line when the text ends too early. */
export function findFaultyLine(json: string): number {
  const lines = json.split(/\r\n?|\n/);
  let valid = 0;
  let invalid = lines.length;
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    if (isValidPrefix(lines.slice(0, middle).join("\n"))) valid = middle;
    else invalid = middle;
  }
  return invalid;
}

/** Whether some JSON text begins with these lines. They end between two tokens, because no JSON token spans lines. */
function isValidPrefix(lines: string): boolean {
  const closing = closingBrackets(lines);
  return CONTINUATIONS.some((continuation) => isJson(lines + continuation + closing));
}

function closingBrackets(lines: string): string {
  // The innermost last. Not a string that grows in front: each change would copy all of it.
  const closing: string[] = [];
  let isString = false;
  for (const [token] of lines.matchAll(/\\.|["[\]{}]/g)) {
    if (token === '"') isString = !isString;
    if (isString) continue;
    if (token === "{") closing.push("}");
    if (token === "[") closing.push("]");
    if (token === "}" || token === "]") closing.pop();
  }
  return closing.reverse().join("");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
