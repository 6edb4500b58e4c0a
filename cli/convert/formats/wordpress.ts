/** Reads WordPress: WXR files as "Tools, Export" writes them. Several files are parts of one site. */
import { basename } from "node:path";
import { countLosses, type Losses } from "../losses.ts";
import { type ReadContext, SourceError, type SourceRecord, type SourceValue } from "../record.ts";
import { listSources, type SourceFile } from "../source.ts";
import { addParagraphs, renderContent } from "./wordpress-content.ts";
import {
  COLLECTIONS,
  decodeEntities,
  decodeSlug,
  type Fields,
  findTerm,
  INTERNAL_TAXONOMY,
  isNew,
  makeAuthor,
  makeTerm,
  type Reading,
  readAuthor,
  readTerm,
  type Site,
} from "./wordpress-terms.ts";
import { type Element, read, readElements } from "./wordpress-xml.ts";

const EXPECTED = "what WordPress exports by Tools, Export: one .xml file or a folder of them";
/** Post types that are the site's looks and settings, or WordPress's own notes. */
const INTERNAL_TYPE =
  /^(?:nav_menu_item|revision|custom_css|customize_changeset|oembed_cache|user_request|acf-.*|wp_.*)$/;
/** The name of an embed's cached answer ends in a hash. */
const INTERNAL_META =
  /^_(?:edit_|oembed_|wp_(?!attachment_image_alt)|encloseme|pingme|thumbnail_id|publicize_|attachment_)/;

export async function* readWordpress(source: string, context: ReadContext): AsyncGenerator<SourceRecord> {
  const files = await listSources(source, ["**/*.xml"], EXPECTED);
  // Each of the two passes is half of the way.
  const halfway = { advance: (bytes: number) => context.advance(bytes / 2) };
  const losses = countLosses(context);
  const reading: Reading = { ...(await surveySite(files, halfway)), losses, seen: new Set() };
  for (const file of files) {
    for await (const element of readElements(file, halfway)) {
      if (element.name === "item") yield* readItem(element, reading);
      else if (element.name === "wp:author") yield* readAuthor(element, reading);
      else yield* readTerm(element, reading);
    }
  }
  losses.tell();
}

async function surveySite(files: readonly SourceFile[], progress: Pick<ReadContext, "advance">): Promise<Site> {
  const types = new Map<string, string>();
  const addresses = new Map<string, string>();
  const declared = new Set<string>();
  let site: string | null = null;
  for (const file of files) {
    let version = "";
    for await (const element of readElements(file, progress)) {
      if (element.name === "wp:wxr_version") version = element.text;
      if (element.name === "wp:base_blog_url") {
        site ??= element.text;
        if (site !== element.text)
          throw new SourceError(
            element.place,
            `is of the site ${element.text}, others are of ${site}: convert one site`,
          );
      }
      if (element.name === "wp:author") declared.add(`authors ${read(element, "wp:author_login")}`);
      const term = findTerm(element);
      if (term !== null) declared.add(`${term.collection} ${term.key}`);
      if (element.name !== "item" || findReason(element) !== null) continue;
      const id = read(element, "wp:post_id");
      types.set(id, read(element, "wp:post_type"));
      const address = read(element, "wp:attachment_url");
      // A copy: a part of a string would keep the whole piece of the file in memory that it was cut from.
      if (address !== "") addresses.set(id, Buffer.from(address).toString());
    }
    if (version === "")
      throw new SourceError({ file: file.name, line: null }, `is no export of WordPress; specify ${EXPECTED}`);
  }
  return { types, addresses, declared };
}

/** Why an item is not carried at all, or null. */
function findReason(item: Element): string | null {
  const type = read(item, "wp:post_type");
  const status = read(item, "wp:status");
  if (INTERNAL_TYPE.test(type)) return `items of type ${type}`;
  return status === "trash" || status === "auto-draft" ? `items with status ${status}` : null;
}

function* readItem(item: Element, reading: Reading): Generator<SourceRecord> {
  const { losses } = reading;
  const id = read(item, "wp:post_id");
  const type = read(item, "wp:post_type");
  const reason = findReason(item);
  if (reason !== null)
    return losses.count(item.place, reason, "are menus, looks, settings or waste rather than content: left out");
  if (!isNew(`post ${id}`, reading))
    return losses.count(
      item.place,
      "items that have the id of one before",
      "convert files of one site: the first is kept",
    );

  const fields: Fields = {
    title: decodeEntities(read(item, "title")) || null,
    slug: decodeSlug(read(item, "wp:post_name")),
  };
  if (type === "attachment") fields.file = makeMedia(read(item, "wp:attachment_url"));
  const { html, unrendered } = renderContent(read(item, "content:encoded"));
  for (const what of unrendered)
    losses.count(item.place, what, "has its content from a running WordPress: replace it by text or HTML");
  fields[type === "attachment" ? "description" : "content"] = makeHtml(html);
  fields[type === "attachment" ? "caption" : "excerpt"] = read(item, "excerpt:encoded") || null;
  const login = read(item, "dc:creator");
  if (login !== "") {
    fields.author = { kind: "reference", collection: "authors", key: login };
    if (!reading.declared.has(`authors ${login}`)) yield* makeAuthor(login, { name: login }, item.place, reading);
  }
  if (type === "post") fields.sticky = read(item, "wp:is_sticky") === "1";
  else fields.menu_order = Number(read(item, "wp:menu_order"));
  readParent(item, type, fields, reading);
  yield* readItemTerms(item, fields, reading);
  readMeta(item, fields, reading);
  fields.link = read(item, "link") || null;

  const written = readDate(item, "wp:post_date_gmt") ?? readLocalDate(item);
  const status = decideStatus(item, losses);
  yield {
    kind: "record",
    collection: COLLECTIONS[type] ?? type,
    key: id,
    place: item.place,
    status,
    published: status === "published" ? written : null,
    created: written,
    updated: readDate(item, "wp:post_modified_gmt"),
    fields,
  };
  yield* readComments(item, type, reading);
}

function decideStatus(item: Element, losses: Losses): SourceRecord["status"] {
  const status = read(item, "wp:status");
  if (read(item, "wp:post_password") !== "") {
    losses.count(item.place, "passwords of posts", "nothing here asks for a password: such a post becomes a draft");
    return "draft";
  }
  if (status === "publish" || status === "inherit") return "published";
  if (status !== "draft")
    losses.count(item.place, `status ${status}`, "becomes a draft: publish it when its time has come");
  return "draft";
}

function readParent(item: Element, type: string, fields: Fields, { types, losses }: Reading): void {
  const key = read(item, "wp:post_parent");
  if (key === "" || key === "0") return;
  const parent = types.get(key);
  if (parent === undefined)
    losses.count(item.place, "parents that the export lacks", "export all content, not only one type of it");
  // A relation leads to one type, but attachments belong to posts, pages and others.
  else
    fields[parent === type ? "parent" : parent] = { kind: "reference", collection: COLLECTIONS[parent] ?? parent, key };
}

function* readItemTerms(item: Element, fields: Fields, reading: Reading): Generator<SourceRecord> {
  const references = new Map<string, SourceValue[]>();
  for (const { name, attributes, text, place } of item.children) {
    const { domain = "", nicename = "" } = attributes;
    if (name !== "category" || domain === "" || INTERNAL_TAXONOMY.test(domain)) continue;
    if (domain === "post_format") {
      fields.format = nicename.replace(/^post-format-/, "");
      continue;
    }
    const collection = COLLECTIONS[domain] ?? domain;
    references.set(collection, [
      ...(references.get(collection) ?? []),
      { kind: "reference", collection, key: nicename },
    ]);
    if (!reading.declared.has(`${collection} ${nicename}`))
      yield* makeTerm(collection, nicename, { name: decodeEntities(text) }, place, reading);
  }
  for (const [collection, values] of references) addField(fields, collection, values, "taxonomy");
}

function readMeta(item: Element, fields: Fields, { addresses, losses }: Reading): void {
  const custom = new Map<string, SourceValue[]>();
  for (const meta of item.children) {
    if (meta.name !== "wp:postmeta") continue;
    const key = read(meta, "wp:meta_key");
    const text = read(meta, "wp:meta_value");
    if (key === "_thumbnail_id") {
      const address = addresses.get(text);
      if (address !== undefined) fields.featured_image = makeMedia(address);
      else losses.count(meta.place, "featured images that the export lacks", "export all content, with its media");
    } else if (key === "_wp_attachment_image_alt") fields.alt = text || null;
    else if (INTERNAL_META.test(key)) losses.count(meta.place, "WordPress's own notes on posts", "are no content");
    else if (key.startsWith("_"))
      losses.count(
        meta.place,
        `private field ${key}`,
        "a plugin keeps it for itself: make it a custom field to carry it",
      );
    else {
      if (/^[aO]:\d+:/.test(text))
        losses.count(meta.place, `structure of ${key}`, "is serialized PHP, and is carried as that text");
      custom.set(key, [...(custom.get(key) ?? []), { kind: "cell", text }]);
    }
  }
  for (const [key, values] of custom)
    addField(fields, key, values.length > 1 ? values : (values[0] as SourceValue), "custom");
}

function* readComments(item: Element, type: string, reading: Reading): Generator<SourceRecord> {
  const { losses } = reading;
  for (const comment of item.children) {
    if (comment.name !== "wp:comment") continue;
    const { place } = comment;
    const id = read(comment, "wp:comment_id");
    const approved = read(comment, "wp:comment_approved");
    if (!isNew(`comment ${id}`, reading)) continue;
    if (approved === "spam" || approved === "trash" || approved === "post-trashed") {
      losses.count(place, `comments with status ${approved}`, "are waste: left out");
      continue;
    }
    for (const [name, what] of [
      ["email", "e-mail addresses of commenters"],
      ["IP", "network addresses of commenters"],
    ])
      if (read(comment, `wp:comment_author_${name}`) !== "")
        losses.count(place, what as string, "are personal, and everything here is public");
    const parent = read(comment, "wp:comment_parent");
    const written = readDate(comment, "wp:comment_date_gmt");
    const status = approved === "1" ? "published" : "draft";
    yield {
      kind: "record",
      collection: "comments",
      key: id,
      place,
      status,
      published: status === "published" ? written : null,
      created: written,
      updated: null,
      fields: {
        [type]: { kind: "reference", collection: COLLECTIONS[type] ?? type, key: read(item, "wp:post_id") },
        parent: parent === "" || parent === "0" ? null : { kind: "reference", collection: "comments", key: parent },
        author: decodeEntities(read(comment, "wp:comment_author")) || null,
        author_url: read(comment, "wp:comment_author_url") || null,
        type: read(comment, "wp:comment_type") || "comment",
        content: makeHtml(addParagraphs(read(comment, "wp:comment_content"))),
      },
    };
  }
}

function addField(fields: Fields, name: string, value: SourceValue, prefix: string): void {
  fields[name in fields ? `${prefix}_${name}` : name] = value;
}

function makeHtml(html: string): SourceValue {
  return html === "" ? null : { kind: "html", html, folder: null };
}

function makeMedia(address: string): SourceValue {
  if (address === "") return null;
  return { kind: "media", path: null, name: decodeSlug(basename(address.replace(/[?#].*$/, ""))) ?? "", address };
}

function readDate(element: Element, name: string): string | null {
  const date = read(element, name);
  return date === "" || date.startsWith("0000") ? null : `${date.replace(" ", "T")}Z`;
}

/** Drafts have a date in the site's own time alone, and its zone is not in the export. */
function readLocalDate(item: Element): string | null {
  return readDate(item, "wp:post_date");
}
