/**
 * Cuts the text of a JSON object into the texts of its members, so that an answer is put together without parsing and
 * writing each value again, and numbers keep every digit. Reads two spellings alone: PostgreSQL's jsonb, with one blank
 * behind each colon and comma, and that of answers, without.
 */

/** The blanks behind a colon and a comma. */
const BLANKS = { jsonb: 1, answer: 0 } as const;

/** The raw text of each member's value by its name. Names with escapes in them are no field's and are left out. */
export function membersOf(object: string, spelling: keyof typeof BLANKS = "jsonb"): Map<string, string> {
  const members = new Map<string, string>();
  const step = 1 + BLANKS[spelling];
  let at = 1;
  while (object[at] === '"') {
    const nameEnd = stringEnd(object, at);
    const start = nameEnd + step;
    const end = valueEnd(object, start);
    members.set(object.slice(at + 1, nameEnd - 1), object.slice(start, end));
    at = end + step;
  }
  return members;
}

/** The raw texts of an array's elements, spelled as in answers. `inner` is what stands between the brackets. */
export function elementsOf(inner: string): string[] {
  const elements: string[] = [];
  for (let at = 0; at < inner.length; ) {
    const end = valueEnd(inner, at);
    elements.push(inner.slice(at, end));
    at = end + 1;
  }
  return elements;
}

/** The same value without the blanks that jsonb writes between tokens. */
export function compact(value: string): string {
  let compacted = "";
  let from = 0;
  for (let at = 0; at < value.length; at++) {
    const character = value[at];
    // A string may be as long as an entry, which is longer than a pattern can look.
    if (character === '"') at = stringEnd(value, at) - 1;
    else if (character === " ") {
      compacted += value.slice(from, at);
      from = at + 1;
    }
  }
  return compacted + value.slice(from);
}

function valueEnd(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return stringEnd(text, start);
  if (first === "{" || first === "[") return nestedEnd(text, start);
  let end = start;
  while (end < text.length && text[end] !== "," && text[end] !== "}") end++;
  return end;
}

/** One behind the closing quote of the string that opens at `start`. */
function stringEnd(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote < 0 ? text.length : quote + 1;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === "\\") slashes++;
  return slashes % 2 === 1;
}

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = stringEnd(text, at) - 1;
    else if (character === "{" || character === "[") depth++;
    else if ((character === "}" || character === "]") && --depth === 0) return at + 1;
  }
  return text.length;
}
