/** The line on which a text stops being JSON. Of what JSON.parse says, which line it is depends on the fault and on the version. */

/** What may come after a line that is right so far: nothing, a value, or what is left of a key and its value. */
const CONTINUATIONS = ["", " 0", " :0", ' "":0'];

/** Of a text that JSON.parse refuses. One that ends too early stops on its last line. */
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

/** Whether there is a JSON text that begins with these lines. No token goes from one line to the next. */
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
