/**
 * What WordPress makes of the text of a post when it is read: blocks without their comments, or paragraphs where a
 * classic editor left blank lines; captions as figures.
 */

export type WordpressContent = {
  readonly html: string;
  /** What only a running WordPress turns into content: dynamic blocks, shared blocks and shortcodes, by their names. */
  readonly unrendered: readonly string[];
};

const BLOCK_COMMENT = /<!--\s*(\/?)wp:([a-z][\w/-]*)(?:\s+\{[\s\S]*?\})?\s*(\/?)-->/g;
const BLOCK_TAG =
  /(<\/?(?:address|article|aside|blockquote|caption|col|colgroup|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|iframe|legend|li|main|nav|ol|p|section|summary|table|tbody|td|tfoot|th|thead|tr|ul)\b[^>]*>)/i;
/** Text between blank lines becomes a paragraph at the top, and in these. */
const HOLDS_PARAGRAPHS = new Set(["article", "aside", "blockquote", "div", "footer", "header", "main", "section"]);
/** Blank lines in them are left as they are. */
const VERBATIM = /<(pre|script|style|svg|textarea)\b[\s\S]*?<\/\1\s*>|<!--[\s\S]*?-->/gi;
const VOID = /^<(?:col|hr)\b|\/>$/i;
const CAPTION = /\[(wp_)?caption\b([^\]]*)\]([\s\S]*?)\[\/\1?caption\]/g;
const SHORTCODE = /\[(\/?)([a-z][\w-]*)([^[\]]*)\]/gi;

export function renderContent(text: string): WordpressContent {
  const unrendered: string[] = [];
  const isBlocks = text.includes("<!-- wp:");
  const withoutComments = text.replace(BLOCK_COMMENT, (_comment, _end: string, name: string, closed: string) => {
    // A block that is closed at once has no markup of its own, but for the few that stand for a mark in the text.
    if (closed !== "" && !/^(?:core\/)?(?:more|nextpage|spacer|separator)$/.test(name))
      unrendered.push(`block ${name}`);
    return "";
  });
  const captioned = withoutComments.replace(CAPTION, (_all, _wp, attributes: string, content: string) =>
    renderCaption(attributes, content),
  );
  unrendered.push(...findShortcodes(captioned));
  const html = isBlocks ? captioned.replace(/\n{3,}/g, "\n\n").trim() : addParagraphs(captioned);
  return { html, unrendered };
}

function renderCaption(attributes: string, content: string): string {
  const [, image = content, after = ""] =
    /^\s*((?:<a\b[^>]*>\s*)?<img\b[^>]*>(?:\s*<\/a>)?)([\s\S]*)$/i.exec(content) ?? [];
  // Before WordPress 3.4 the caption was an attribute.
  const caption = after.trim() || (/\bcaption=(["'])([\s\S]*?)\1/.exec(attributes)?.[2] ?? "");
  return `<figure>${image}${caption === "" ? "" : `<figcaption>${caption}</figcaption>`}</figure>`;
}

/** Text in brackets is a shortcode when it has attributes or an end, or when WordPress itself has one of that name. */
function findShortcodes(text: string): string[] {
  const found = [...text.matchAll(SHORTCODE)];
  const ended = new Set(found.filter(([, end]) => end !== "").map(([, , name]) => name));
  return found
    .filter(
      ([, end, name = "", rest = ""]) => end === "" && (rest.includes("=") || ended.has(name) || name === "gallery"),
    )
    .map(([, , name]) => `shortcode [${name}]`);
}

/** Paragraphs at blank lines and breaks at the other line ends, as the classic editor means them. */
export function addParagraphs(text: string): string {
  const kept: string[] = [];
  const marked = text.replace(/\r\n?/g, "\n").replace(VERBATIM, (verbatim) => {
    kept.push(verbatim);
    return verbatim.startsWith("<!--") ? "" : `\n\n<hr data-kept="${kept.length - 1}">\n\n`;
  });
  const open: string[] = [];
  const html = marked.split(BLOCK_TAG).map((part, index) => {
    if (index % 2 === 0) return renderText(part, open.at(-1) ?? null);
    const name = /[a-z]\w*/i.exec(part)?.[0].toLowerCase() ?? "";
    const isEnd = part.startsWith("</");
    if (isEnd && open.includes(name)) open.length = open.lastIndexOf(name);
    else if (!isEnd && !VOID.test(part)) open.push(name);
    return isEnd || VOID.test(part) ? `${part}\n` : part;
  });
  return html
    .join("")
    .replace(/<hr data-kept="(\d+)">/g, (_mark, index: string) => kept[Number(index)] as string)
    .trim();
}

function renderText(text: string, parent: string | null): string {
  const parts = text.split(/\n[^\S\n]*(?:\n\s*)+/).map((part) => part.trim());
  const paragraphs = parts.filter((part) => part !== "").map(breakLines);
  const isWrapped =
    parent === null || (HOLDS_PARAGRAPHS.has(parent) && (paragraphs.length > 1 || parent === "blockquote"));
  return isWrapped ? paragraphs.map((part) => `<p>${part}</p>\n`).join("") : paragraphs.join("<br>\n<br>\n");
}

/** Line ends within a tag separate its attributes. */
function breakLines(text: string): string {
  return text.replace(/<br\s*\/?>[^\S\n]*\n?|<[^>]*>|[^\S\n]*\n/gi, (found) =>
    found.startsWith("<") ? found : "<br>\n",
  );
}
