/**
 * Finds the line on which a text stops being JSON. The error of JSON.parse does not always name the position: that
 * depends on the fault and on the version of Node.js.
 */

/**
 * One of these, followed by the closing brackets, completes lines that are valid so far: nothing, a value, the rest of
 * a pair after its key, or a whole pair.
 */
const CONTINUATIONS = ["", " 0", " :0", ' "":0'];

/** Number of that line, from 1, in a text that JSON.parse refuses. It is the last line when the text ends too early. */
export function faultyLine(json: string): number {
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
