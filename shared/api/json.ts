/**
 * Cuts the text of a JSON object into the texts of its members, so that answers are built without parsing and
 * serialising each value, and numbers keep every digit. Reads two formats only: PostgreSQL's jsonb, with one space
 * after each colon and comma, and that of answers, without spaces.
 */

/** Length of a colon or comma with the space after it. */
const SEPARATOR_LENGTH = { jsonb: 2, answer: 1 } as const;

/** Codes as `charCodeAt` returns them: reading single characters as strings costs several times as much. */
const [QUOTE, COMMA, BACKSLASH, BLANK] = listCodes('",\\ ');
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = listCodes("{}[]");

function listCodes(characters: string): number[] {
  return Array.from(characters, (character) => character.charCodeAt(0));
}

/** The raw text of each member's value by name, in an object of an answer. Escapes in names are not decoded. */
export function readMembers(object: string): Map<string, string> {
  const members = new Map<string, string>();
  let at = 1;
  while (object.charCodeAt(at) === QUOTE) {
    const nameEnd = stringEnd(object, at);
    const start = nameEnd + SEPARATOR_LENGTH.answer;
    const end = valueEnd(object, start);
    members.set(object.slice(at + 1, nameEnd - 1), object.slice(start, end));
    at = end + SEPARATOR_LENGTH.answer;
  }
  return members;
}

/** The order in which jsonb stores members: shorter names first, then by bytes. For ASCII names without escapes. */
export function compareMembers(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : 1);
}

/**
 * The raw texts of the named members of a jsonb object, in the order of `names`; undefined for a member that it lacks.
 * `names` must be in the order of compareMembers: then one pass finds all of them, and no other value is copied.
 */
export function pickMembers(object: string, names: readonly string[]): (string | undefined)[] {
  const picked: (string | undefined)[] = [];
  let at = 1;
  for (const name of names) {
    let jsonText: string | undefined;
    while (jsonText === undefined && object.charCodeAt(at) === QUOTE) {
      const end = at + 1 + name.length;
      const isWanted = object.startsWith(name, at + 1) && object.charCodeAt(end) === QUOTE;
      const nameEnd = isWanted ? end + 1 : stringEnd(object, at);
      if (!isWanted && sortsAfter(object.slice(at + 1, nameEnd - 1), name)) break;
      const start = nameEnd + SEPARATOR_LENGTH.jsonb;
      const valueStop = valueEnd(object, start);
      if (isWanted) jsonText = object.slice(start, valueStop);
      at = valueStop + SEPARATOR_LENGTH.jsonb;
    }
    picked.push(jsonText);
  }
  return picked;
}

/** Whether `member` sorts after `name`, so no later member can be `name`. False for a name with an escape. */
function sortsAfter(member: string, name: string): boolean {
  return compareMembers(member, name) > 0 && !member.includes("\\");
}

/** The raw texts of an array's elements. `inner` is the text between the brackets. */
export function readElements(inner: string, format: keyof typeof SEPARATOR_LENGTH): string[] {
  const elements: string[] = [];
  for (let at = 0; at < inner.length; ) {
    const end = valueEnd(inner, at);
    elements.push(inner.slice(at, end));
    at = end + SEPARATOR_LENGTH[format];
  }
  return elements;
}

/** The value without the spaces that jsonb writes between tokens. */
export function compact(value: string): string {
  let compacted = "";
  let from = 0;
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    // Not a regular expression: a string may be longer than one can match.
    if (code === QUOTE) at = stringEnd(value, at) - 1;
    else if (code === BLANK) {
      compacted += value.slice(from, at);
      from = at + 1;
    }
  }
  return compacted + value.slice(from);
}

function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return stringEnd(text, start);
  if (first === OPEN_OBJECT || first === OPEN_ARRAY) return nestedEnd(text, start);
  let end = start;
  while (end < text.length && text.charCodeAt(end) !== COMMA && text.charCodeAt(end) !== CLOSE_OBJECT) end++;
  return end;
}

/** Index after the closing quote of the string that opens at `start`. */
function stringEnd(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote < 0 ? text.length : quote + 1;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++;
  return slashes % 2 === 1;
}

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at) - 1;
    else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++;
    else if ((code === CLOSE_OBJECT || code === CLOSE_ARRAY) && --depth === 0) return at + 1;
  }
  return text.length;
}
