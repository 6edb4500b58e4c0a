/** Renders Markdown as HTML: CommonMark with GitHub's tables, task lists, strikethrough, footnotes and links. */
import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";

/** HTML in it stays as it is: it is cleaned with all other HTML (html.ts). */
export function renderMarkdown(text: string): string {
  return micromark(text, {
    allowDangerousHtml: true,
    allowDangerousProtocol: true,
    extensions: [gfm()],
    htmlExtensions: [EXTENSION],
  });
}

const { exit: { htmlFlowData: _flow, htmlTextData: _text, ...exit } = {}, ...others } = gfmHtml({ clobberPrefix: "" });
/** Without the filter that turns a few dangerous elements into text: they are removed later, or wanted. */
const EXTENSION = { ...others, exit };
