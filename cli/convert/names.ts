/** Names of a source as slugs of content types and names of fields, and ids that stay the same (RFC 9562, version 5). */
import { createHash } from "node:crypto";
import { RESERVED_NAMES } from "../../shared/api/catalog.ts";
import { readUuid } from "../../shared/api/value.ts";

/** Any fixed UUID does: it keeps these ids apart from the version 5 ids of others. */
const NAMESPACE = Buffer.from("6d0f6f1c2f9b4a52b1d6c0a1e7c45c10", "hex");

/** The UUID of version 5 of these parts: the same parts give the same id, everywhere. */
export function makeUuid(...parts: readonly string[]): string {
  const bytes = createHash("sha1").update(NAMESPACE).update(JSON.stringify(parts)).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** A key that is a UUID stays what it is: links from elsewhere go on leading to the entry. */
export function makeId(format: string, collection: string, key: string): string {
  return readUuid(key) ?? makeUuid(format, collection, key);
}

/** `Blog Post` and `blogPost` become `blog-post`. */
export function makeSlug(name: string): string {
  return cut(splitWords(name).join("-"), 64) || "type";
}

/** `Publish Date` and `publishDate` become `publish_date`; a name that answers need for themselves gets `source_`. */
export function makeFieldName(name: string): string {
  const made = splitWords(name).join("_");
  const begun = /^[a-z]/.test(made) ? made : made === "" ? "field" : `n_${made}`;
  return cut(RESERVED_NAMES.includes(begun) ? `source_${begun}` : begun, 63);
}

/** `post_tag` as `Post tag`, for people who see a type or a field in a list. */
export function makeLabel(name: string): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll(/[_-]+/g, " ")
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The name, or with `_2`, `_3` … behind it when it is taken already. */
export function makeUnique(name: string, taken: ReadonlySet<string>, joint: "_" | "-"): string {
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${cut(name, 58)}${joint}${number}`;
  return free;
}

/** The words that a relation may call a collection by: `authors`, `author`; `categories`, `category`. */
export function readSingular(word: string): string {
  return word
    .replace(/ies$/, "y")
    .replace(/(s|x|ch|sh)es$/, "$1")
    .replace(/([^s])s$/, "$1");
}

function splitWords(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
}

function cut(name: string, length: number): string {
  return name.slice(0, length).replace(/[-_]+$/, "");
}
