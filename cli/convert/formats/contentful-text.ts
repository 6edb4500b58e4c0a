/** Renders Contentful's long texts as HTML: rich text with its own renderer, Markdown with a common one. */

import { documentToHtmlString, type Options } from "@contentful/rich-text-html-renderer";
import { escapeHtml } from "../html.ts";
import { renderMarkdown as renderText } from "../markdown.ts";

export type Asset = {
  readonly address: string;
  /** On this disk, where it was downloaded. */
  readonly path: string | null;
  /** Its address within a text: relative to the export where it was downloaded. */
  readonly source: string;
  readonly name: string;
  readonly isImage: boolean;
  readonly text: string;
};

type Node = Parameters<NonNullable<Options["renderNode"]>[string]>[0];

/** The HTML of a document, and what of it is lost. */
export function renderRichText(
  document: unknown,
  findAsset: (id: string) => Asset | null,
): { readonly html: string; readonly lost: readonly string[] } {
  const lost: string[] = [];
  const lose = (what: string) => {
    lost.push(what);
    return "";
  };
  const assetOf = (node: Node) =>
    findAsset((node.data as { target?: { sys?: { id?: string } } }).target?.sys?.id ?? "");
  const renderNode: Options["renderNode"] = {
    "embedded-asset-block": (node) => {
      const asset = assetOf(node);
      return asset === null ? lose("embedded assets that the export lacks") : renderAsset(asset);
    },
    "asset-hyperlink": (node, next) => {
      const asset = assetOf(node);
      const text = next(node.content as Parameters<typeof next>[0]);
      if (asset === null) lose("links to assets that the export lacks");
      return asset === null ? text : `<a href="${escapeHtml(asset.address)}">${text}</a>`;
    },
    "embedded-entry-block": () => lose("entries embedded in rich text"),
    "embedded-entry-inline": () => lose("entries embedded in rich text"),
    "embedded-resource-block": () => lose("entries of other spaces in rich text"),
    "embedded-resource-inline": () => lose("entries of other spaces in rich text"),
    "entry-hyperlink": (node, next) =>
      lose("links to entries in rich text") + next(node.content as Parameters<typeof next>[0]),
    "resource-hyperlink": (node, next) =>
      lose("links to other spaces in rich text") + next(node.content as Parameters<typeof next>[0]),
  };
  return {
    html: documentToHtmlString(document as Parameters<typeof documentToHtmlString>[0], {
      renderNode,
      preserveWhitespace: true,
      stripEmptyTrailingParagraph: true,
    }),
    lost,
  };
}

/** Addresses without a scheme are those of Contentful's images. */
export function renderMarkdown(text: string): string {
  return renderText(text).replace(/\b(src|href)="\/\//g, '$1="https://');
}

function renderAsset({ address, source, isImage, name, text }: Asset): string {
  if (!isImage) return `<p><a href="${escapeHtml(address)}">${escapeHtml(text || name)}</a></p>`;
  return `<img src="${escapeHtml(source)}" alt="${escapeHtml(text)}">`;
}
