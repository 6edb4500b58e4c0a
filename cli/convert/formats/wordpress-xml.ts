/** Reads the XML of a WordPress export in pieces: one element below `<channel>` after the other. */
import { SaxesParser } from "saxes";
import { type Place, type ReadContext, SourceError } from "../record.ts";
import { readTextPieces, type SourceFile } from "../source.ts";

/** An element below `<channel>`, whole. */
export type Element = {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly place: Place;
  text: string;
  readonly children: Element[];
};

/** The elements below `<channel>`, one after the other. */
export async function* readElements(file: SourceFile, progress: Pick<ReadContext, "advance">): AsyncGenerator<Element> {
  const parser = new SaxesParser({ position: false });
  const open: Element[] = [];
  let whole: Element[] = [];
  const place = () => ({ file: file.name, line: parser.line });
  parser.on("error", ({ message }) => {
    throw new SourceError(place(), `is no well-formed XML (${message.replace(/\.$/, "")}): export the site again`);
  });
  parser.on("opentag", ({ name, attributes }) => {
    const element = { name, attributes: attributes as Record<string, string>, place: place(), text: "", children: [] };
    if (open.length > 2) open.at(-1)?.children.push(element);
    open.push(element);
  });
  const addText = (text: string) => {
    const element = open.at(-1);
    if (element !== undefined && open.length > 2) element.text += text;
  };
  parser.on("text", addText);
  parser.on("cdata", addText);
  parser.on("closetag", () => {
    const element = open.pop();
    if (element !== undefined && open.length === 2) whole.push(element);
  });
  for await (const text of readTextPieces(file, progress)) {
    // WordPress writes control characters that posts contain, which no XML may.
    parser.write(text.replace(/[^\P{Cc}\t\n\r]/gu, ""));
    yield* whole;
    whole = [];
  }
  parser.close();
}

/** The text of an element within another one; empty where there is none. */
export function read(element: Element, name: string): string {
  return element.children.find((child) => child.name === name)?.text.trim() ?? "";
}
