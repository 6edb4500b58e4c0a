/** Keeps app keys out of the log: only the first characters of a key are shown, wherever it occurs. */

/** Number of characters of a key that are shown, but at most half of the key. */
const SHOWN_LENGTH = 4;
/** A shorter key may be an ordinary word: it is hidden only where it is a whole word. */
const DISTINCTIVE_LENGTH = 8;
/** Words of a key header that are sought inside other words too, each in a pass of its own. */
const MAX_SOUGHT = 10;
const MAX_TARGET = 1_024;
const WORD = /[A-Za-z0-9_-]+/g;
const ENCODED = /%[0-9a-f]{2}/gi;
/** Node gives each byte of the target as one character, and a terminal might execute some of them as control codes. */
const UNPRINTABLE = /[^\x21-\x7e…]/g;
/** A key in the URL is not accepted, but clients may send one there, and the log must not show it. */
const KEY_PARAMETER = /((?:app|api)[_-]?key(?:\]|%5d)?=)([^&]*)/gi;
/** Folders and state files of the tree are named after the key of their app. */
const SEGMENT = /(?<=^|[\\/'"\s])([sxh]-)([a-z0-9_-]+)/g;

export function redactKey(key: string): string {
  const shown = key.slice(0, Math.min(SHOWN_LENGTH, key.length >> 1));
  return `${shown.replace(/[^A-Za-z0-9_-]/g, "?")}…`;
}

/** Whether the text contains a word of the key. A key header need not hold one word: two keys are joined by a comma. */
export function containsKey(text: string, key: string): boolean {
  return hideWords(text, key) !== text;
}

/** The target as the log shows it: printable ASCII and `…`, not too long, without the key, even percent-encoded. */
export function redactTarget(target: string, key: string): string {
  const plain = target.includes("%") ? target.replace(ENCODED, decodeWord) : target;
  const hidden = hideKey(plain, key);
  return truncate((hidden === plain ? hideKey(target, key) : hidden).replace(UNPRINTABLE, encodeByte));
}

/** The text of an error without any of the keys, and without the names of tree files that are made from keys. */
export function redactText(text: string, keys: ReadonlySet<string>): string {
  return text
    .replace(SEGMENT, (_, kind: string, name: string) => kind + redactKey(name))
    .replace(WORD, (word) => (keys.has(word) ? redactKey(word) : word));
}

function hideKey(text: string, key: string): string {
  const named = text.replace(KEY_PARAMETER, (_, name: string, value: string) => name + redactKey(value));
  return hideWords(named, key);
}

/** Of more words than MAX_SOUGHT, hides whole words only, in one pass: a client may send thousands of them. */
function hideWords(text: string, key: string): string {
  const words = [...new Set(wordsOf(key))];
  const whole = new Set(words.filter((word) => word.length < DISTINCTIVE_LENGTH || words.length > MAX_SOUGHT));
  const alone = whole.size === 0 ? text : text.replace(WORD, (word) => (whole.has(word) ? redactKey(word) : word));
  const sought = words.filter((word) => !whole.has(word));
  return sought.reduce((hidden, word) => hidden.replaceAll(word, redactKey(word)), alone);
}

function wordsOf(text: string): string[] {
  return text.match(WORD) ?? [];
}

/** `%53hop` is another spelling of `Shop`. */
function decodeWord(encoded: string): string {
  const letter = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
  return /[A-Za-z0-9_-]/.test(letter) ? letter : encoded;
}

function encodeByte(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

function truncate(text: string): string {
  return text.length <= MAX_TARGET ? text : `${text.slice(0, MAX_TARGET)}…`;
}
