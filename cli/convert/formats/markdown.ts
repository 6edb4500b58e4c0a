/**
 * Reads a folder of Markdown files, as Hugo, Zola, Jekyll, Eleventy and Astro have them: front matter in YAML, TOML or
 * JSON, and images beside the text. Each folder below the source is a collection.
 */
import { basename, dirname, join, resolve } from "node:path";
import { parse as parseToml, TomlDate, TomlError } from "smol-toml";
import { LineCounter, parseDocument } from "yaml";
import { isFile } from "../../../shared/files.ts";
import { takeColumns } from "../columns.ts";
import { readTime } from "../dates.ts";
import { renderMarkdown } from "../markdown.ts";
import { type Place, type ReadContext, SourceError, type SourceRecord, type SourceValue } from "../record.ts";
import { listSources, readWhole, type SourceFile } from "../source.ts";

const EXPECTED = "a folder of .md files, or one of them";
const MARKDOWN = /\.(md|markdown)$/i;
const IMAGE = /\.(avif|gif|jpe?g|png|svg|webp)$/i;

export async function* readMarkdown(source: string, context: ReadContext): AsyncGenerator<SourceRecord> {
  const files = await listSources(source, ["**/*", "!**/node_modules/**"], EXPECTED);
  const texts = files.filter(({ name }) => MARKDOWN.test(name));
  if (texts.length === 0) throw new SourceError({ file: source, line: null }, `holds no Markdown; specify ${EXPECTED}`);
  const root = basename(resolve(source)).replace(MARKDOWN, "");
  for (const file of texts) yield readPost(file, await readWhole(file, context), root, context);
  for (const { name } of files)
    if (!MARKDOWN.test(name) && !IMAGE.test(name))
      context.lose({ place: { file: name, line: null }, what: "the file", why: "is neither Markdown nor an image" });
}

function readPost(file: SourceFile, text: string, root: string, { lose }: ReadContext): SourceRecord {
  const place = { file: file.name, line: null };
  const { values, body, line } = splitFrontMatter(text, file.name);
  const { collection, slug } = nameEntry(file.name, root);
  const [, day, bare = slug] = /^(?:.*\/)?(\d{4}-\d{2}-\d{2})[-_](.+)$/.exec(slug) ?? [];
  const folder = dirname(file.path);
  const front = takeColumns(readValues(values, folder));
  const { date = null, slug: given, title, ...fields } = front.fields;
  const dated = typeof date === "string" && readTime(date) !== null;
  const html = renderMarkdown(body);
  loseTemplates(body, html, { file: file.name, line }, lose);
  return {
    ...front,
    kind: "record",
    collection,
    key: file.name.replace(MARKDOWN, ""),
    place,
    status: /(^|\/)_?drafts\//.test(file.name) ? "draft" : front.status,
    published: front.published ?? (dated ? (date as string) : (day ?? findDay(values, file.name))),
    fields: {
      title: title ?? findHeading(body) ?? bare,
      slug: given ?? bare,
      ...(dated || date === null ? {} : { date }),
      ...fields,
      body: { kind: "html", html, folder },
    },
  };
}

/** `blog/2024/first/index.md` and `blog/2024/first.md` are the entry `2024/first` of `blog`. */
function nameEntry(name: string, root: string): { readonly collection: string; readonly slug: string } {
  const parts = name.replace(MARKDOWN, "").split("/");
  const [last = "", above] = parts.slice(-2).reverse();
  // As Hugo, Zola and Eleventy have a post with its images in a folder of its own.
  if (above !== undefined && (last === "index" || last === above)) parts.pop();
  const [collection = root] = parts.length > 1 ? parts.splice(0, 1) : [root];
  return { collection, slug: parts.join("/") };
}

/** Some sites have the day in the address alone: `path = "2024/01/05/title"`. */
function findDay(values: Readonly<Record<string, unknown>>, name: string): string | null {
  const places = [values.path, values.permalink, values.url, name].filter((one) => typeof one === "string");
  const found = places
    .map((text) => /(?:^|\/)(\d{4})[/-](\d{2})[/-](\d{2})(?=[/-])/.exec(text))
    .find((match) => match !== null);
  return found === undefined ? null : found.slice(1).join("-");
}

function findHeading(body: string): string | undefined {
  return /^#[ \t]+(.+?)[ \t#]*$/m.exec(body)?.[1];
}

/** What only the site's own generator can make of a text. */
function loseTemplates(body: string, html: string, place: Place, lose: ReadContext["lose"]): void {
  const prose = body
    .replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, (code) => code.replaceAll(/[^\n]/g, ""))
    .replaceAll(/`[^`\n]*`/g, "");
  const template = /\{\{[<%]|\{%|\{\{ /.exec(prose);
  const lineOf = (index: number) => (place.line ?? 1) + prose.slice(0, index).split("\n").length - 1;
  const told = { file: place.file, line: template === null ? place.line : lineOf(template.index) };
  if (template !== null)
    lose({
      place: told,
      what: `template code (${template[0]})`,
      why: "only the site's generator runs it: it stays as text",
    });
  const link = /href="(?![a-z]+:|\/|#)[^"]*\.md[#"]/.exec(html);
  if (link !== null)
    lose({ place: { ...place, line: null }, what: link[0], why: "links to a file, which has no address here" });
}

// Front matter.

type FrontMatter = {
  readonly values: Readonly<Record<string, unknown>>;
  readonly body: string;
  /** The line on which the body begins. */
  readonly line: number;
};

const FENCES = [
  { pattern: /^---[ \t]*\r?\n([\s\S]*?)(?:\r?\n|^)(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/m, read: readYaml },
  { pattern: /^\+\+\+[ \t]*\r?\n([\s\S]*?)(?:\r?\n|^)\+\+\+[ \t]*(?:\r?\n|$)/m, read: readToml },
  { pattern: /^(\{\r?\n[\s\S]*?\r?\n\})[ \t]*(?:\r?\n|$)/m, read: readJsonMatter },
];

function splitFrontMatter(text: string, file: string): FrontMatter {
  for (const { pattern, read } of FENCES) {
    const match = pattern.exec(text);
    if (match?.index !== 0) continue;
    const values = read(match[1] ?? "", file) ?? {};
    if (typeof values !== "object" || Array.isArray(values))
      throw new SourceError({ file, line: 1 }, "front matter must name its values, as in title: Hello");
    const line = match[0].split("\n").length;
    return { values: values as FrontMatter["values"], body: text.slice(match[0].length), line };
  }
  return { values: {}, body: text, line: 1 };
}

function readYaml(text: string, file: string): unknown {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const [error] = document.errors;
  if (error === undefined) return document.toJS();
  const { line } = lineCounter.linePos(error.pos[0]);
  throw new SourceError({ file, line: line + 1 }, `is not valid YAML: ${error.message}`);
}

function readToml(text: string, file: string): unknown {
  try {
    return parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new SourceError({ file, line: error.line + 1 }, `is not valid TOML: ${error.message.split("\n")[0]}`);
  }
}

function readJsonMatter(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SourceError({ file, line: 1 }, `is not valid JSON: ${(error as Error).message}`);
  }
}

/** A table, such as Zola's `[extra]`, gives its names to its values: `extra_team`. */
function readValues(values: Readonly<Record<string, unknown>>, folder: string): Record<string, SourceValue> {
  const fields: Record<string, SourceValue> = {};
  for (const [name, value] of Object.entries(values)) {
    if (!isTable(value)) fields[name] = readValue(value, folder);
    else for (const [inner, one] of Object.entries(value)) fields[`${name}_${inner}`] = readValue(one, folder);
  }
  return fields;
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof TomlDate);
}

function readValue(value: unknown, folder: string): SourceValue {
  if (value instanceof TomlDate) return value.toISOString();
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map((one) => readValue(one, folder));
  if (isTable(value)) return { kind: "json", value };
  if (typeof value !== "string" || !IMAGE.test(value)) return value as SourceValue;
  const path = join(folder, value);
  if (isFile(path)) return { kind: "media", path, name: basename(path), address: value };
  return value;
}
