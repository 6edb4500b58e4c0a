/** Makes text that comes from elsewhere harmless for a terminal. */

/** All but line ends and tabs: a terminal obeys them, and could be made to hide or forge what it shows. */
const CONTROL = /[^\P{Cc}\n\t]/gu;

/** Control characters as escapes: bundles, file names, databases and the responses of stores may contain any. */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
