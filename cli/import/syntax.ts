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
  let right = 0;
  let wrong = lines.length;
  while (wrong - right > 1) {
    const middle = (right + wrong) >> 1;
    if (canGoOn(lines.slice(0, middle).join("\n"))) right = middle;
    else wrong = middle;
  }
  return wrong;
}

/** Whether some JSON text begins with these lines. They end between two tokens, because no JSON token spans lines. */
function canGoOn(lines: string): boolean {
  const closing = closingOf(lines);
  return CONTINUATIONS.some((more) => isJson(lines + more + closing));
}

function closingOf(lines: string): string {
  let closing = "";
  let isString = false;
  for (const [token] of lines.matchAll(/\\.|["[\]{}]/g)) {
    if (token === '"') isString = !isString;
    if (isString) continue;
    if (token === "{") closing = `}${closing}`;
    if (token === "[") closing = `]${closing}`;
    if (token === "}" || token === "]") closing = closing.slice(1);
  }
  return closing;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
