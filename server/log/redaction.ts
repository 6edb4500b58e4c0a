/** Keeps app keys out of the log: of a key its first characters are shown, wherever it stands. */

/** Of a shorter key even these would be most of it: then half of it is shown. */
const SHOWN = 4;
/** A key that is shorter may be a word like any other: it is hidden where it stands alone. */
const UNMISTAKABLE = 8;
const MAX_TARGET = 1_024;
const WORD = /[A-Za-z0-9_-]+/g;
const ENCODED = /%[0-9a-f]{2}/gi;
/** Node gives a byte of the target as the character of its number: a terminal might take some for orders. */
const UNPRINTABLE = /[^\x21-\x7e…]/g;
/** Clients that put their key into the URL have it refused; the log must not keep it either. */
const KEY_PARAMETER = /((?:app|api)[_-]?key(?:\]|%5d)?=)([^&]*)/gi;
/** Folders and state files of the tree are named by the key of their app. */
const SEGMENT = /(?<=^|[\\/'"\s])([sxh]-)([a-z0-9_-]+)/g;

export function redactKey(key: string): string {
  const shown = key.slice(0, Math.min(SHOWN, key.length >> 1));
  return `${shown.replace(/[^A-Za-z0-9_-]/g, "?")}…`;
}

/** Whether the text holds a word of the key. What is sent as a key need not be one: it may be several, with a comma. */
export function holdsKey(text: string, key: string): boolean {
  return hideWords(text, key) !== text;
}

/** The target as a line of the log shows it: ASCII, not too long, and without the key, however that is spelled. */
export function redactTarget(target: string, key: string): string {
  const plain = target.includes("%") ? target.replace(ENCODED, decodeWord) : target;
  const hidden = hideKey(plain, key);
  return cut((hidden === plain ? hideKey(target, key) : hidden).replace(UNPRINTABLE, encodeByte));
}

/** The text of an error without any of the keys, and without the names that files of the tree have by their app's key. */
export function redactText(text: string, keys: ReadonlySet<string>): string {
  return text
    .replace(SEGMENT, (_, kind: string, name: string) => kind + redactKey(name))
    .replace(WORD, (word) => (keys.has(word) ? redactKey(word) : word));
}

function hideKey(text: string, key: string): string {
  const named = text.replace(KEY_PARAMETER, (_, name: string, value: string) => name + redactKey(value));
  return hideWords(named, key);
}

/** One way through the text for all words that may be any: a client may send thousands of them. */
function hideWords(text: string, key: string): string {
  const words = [...new Set(wordsOf(key))];
  const short = new Set(words.filter((word) => word.length < UNMISTAKABLE));
  const alone = short.size === 0 ? text : text.replace(WORD, (word) => (short.has(word) ? redactKey(word) : word));
  const long = words.filter((word) => !short.has(word));
  return long.reduce((hidden, word) => hidden.replaceAll(word, redactKey(word)), alone);
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

function cut(text: string): string {
  return text.length <= MAX_TARGET ? text : `${text.slice(0, MAX_TARGET)}…`;
}
