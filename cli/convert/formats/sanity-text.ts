/** Renders Sanity's portable text as HTML, with its own renderer. */

import { relative } from "node:path";
import { escapeHTML, type PortableTextHtmlComponents, toHTML } from "@portabletext/to-html";
import { escapeHtml } from "../html.ts";

type Value = { readonly [name: string]: unknown };
type File = { readonly path: string | null; readonly name: string; readonly address: string | null };
type Blocks = Parameters<typeof toHTML>[0];

/** An array of which an element is a block of text. */
export function isPortableText(value: unknown): value is Value[] {
  return Array.isArray(value) && value.some((one) => one?._type === "block");
}

/** `folder` is the one to which the addresses of files are relative. `lost` names what has no place in HTML. */
export function renderPortableText(
  value: readonly Value[],
  findFile: (value: Value) => File | null,
  folder: string,
): { readonly html: string; readonly lost: readonly string[] } {
  const lost: string[] = [];
  const lose = (what: string, html: string) => {
    lost.push(what);
    return html;
  };
  const components: Partial<PortableTextHtmlComponents> = {
    marks: {
      // The renderer's own has an attribute `style`.
      underline: ({ children }) => `<u>${children}</u>`,
    },
    unknownType: ({ value: node }) => {
      const block = node as unknown as Value;
      const file = findFile(block);
      const source = file?.path == null ? file?.address : encodeURI(relative(folder, file.path));
      if (file !== null && source != null) return renderFile(block, file, source);
      if (file !== null) return lose("files that the export lacks", "");
      if (typeof block.code === "string") return `<pre><code>${escapeHtml(block.code)}</code></pre>`;
      return lose(`blocks of type ${block._type}`, "");
    },
    unknownMark: ({ markType, children }) => lose(`marks of type ${markType}`, children),
    unknownBlockStyle: ({ children }) => `<p>${children}</p>`,
  };
  return { html: toHTML(value as unknown as Blocks, { components, onMissingComponent: false }), lost };
}

function renderFile({ _type, alt, caption }: Value, { name }: File, source: string): string {
  if (_type === "file") return `<p><a href="${escapeHtml(source)}">${escapeHtml(name)}</a></p>`;
  const image = `<img src="${escapeHtml(source)}" alt="${escapeHtml(typeof alt === "string" ? alt : "")}">`;
  if (typeof caption !== "string" || caption === "") return image;
  return `<figure>${image}<figcaption>${escapeHTML(caption)}</figcaption></figure>`;
}
