/** Renders the blocks of Strapi's editor as HTML. */
import { escapeHtml } from "../html.ts";

type Node = { readonly type?: string; readonly children?: readonly Node[] } & { readonly [name: string]: unknown };

/** `lose` is called with what has no place in HTML. */
export function renderBlocks(blocks: unknown, lose: (what: string) => void): string {
  return Array.isArray(blocks) ? renderNodes(blocks as readonly Node[], lose) : "";
}

function renderNodes(nodes: readonly Node[] = [], lose: (what: string) => void): string {
  return nodes.map((node) => renderNode(node, lose)).join("");
}

function renderNode(node: Node, lose: (what: string) => void): string {
  if (node.type === "text") return renderText(node);
  if (node.type === "image") return renderImage(node.image as { url?: unknown; alternativeText?: unknown } | undefined);
  const inner = renderNodes(node.children, lose);
  switch (node.type) {
    case "paragraph":
      return `<p>${inner}</p>`;
    case "heading":
      return `<h${Number(node.level)}>${inner}</h${Number(node.level)}>`;
    case "list":
      return node.format === "ordered" ? `<ol>${inner}</ol>` : `<ul>${inner}</ul>`;
    case "list-item":
      return `<li>${inner}</li>`;
    case "quote":
      return `<blockquote>${inner}</blockquote>`;
    case "code":
      return `<pre><code>${inner}</code></pre>`;
    case "link":
      return `<a href="${escapeHtml(String(node.url))}">${inner}</a>`;
    default:
      lose(`blocks of type ${String(node.type)}`);
      return inner;
  }
}

const MARKS = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code" } as const;

function renderText(node: Node): string {
  const text = escapeHtml(String(node.text ?? "")).replaceAll("\n", "<br>");
  const marks = Object.entries(MARKS).filter(([name]) => node[name] === true);
  return marks.reduce((html, [, tag]) => `<${tag}>${html}</${tag}>`, text);
}

function renderImage({ url = "", alternativeText = "" }: { url?: unknown; alternativeText?: unknown } = {}): string {
  return `<img src="${escapeHtml(String(url))}" alt="${escapeHtml(String(alternativeText ?? ""))}">`;
}
