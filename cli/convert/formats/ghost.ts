/** Reads Ghost: the JSON that its settings export, with the images of its folder `content` where that lies beside it. */
import { basename, dirname, join } from "node:path";
import { isFile } from "../../../shared/files.ts";
import { readJsonValues } from "../json-values.ts";
import { countLosses, type Losses } from "../losses.ts";
import { type Place, type ReadContext, SourceError, type SourceRecord, type SourceValue } from "../record.ts";
import { listSources, type SourceFile } from "../source.ts";

type Row = { readonly [name: string]: unknown };
/** What posts refer to before or after they are read: found by a first pass. */
type Site = {
  readonly file: SourceFile;
  readonly places: ReadonlyMap<Row, Place>;
  readonly users: readonly Row[];
  readonly tags: readonly Row[];
  /** By the ids of posts, in their order. */
  readonly tagsOfPosts: ReadonlyMap<string, readonly string[]>;
  readonly authorsOfPosts: ReadonlyMap<string, readonly string[]>;
  readonly metaOfPosts: ReadonlyMap<string, Row>;
};
type Reading = Site & { readonly losses: Losses };

const EXPECTED = "the JSON file that Ghost exports in Settings, Import/Export, or the folder that holds it";
/** Stands for the address of the site. */
const SITE = /__GHOST_URL__/g;
const META = ["meta_title", "meta_description", "og_title", "og_description", "twitter_title", "twitter_description"];

export async function* readGhost(source: string, context: ReadContext): AsyncGenerator<SourceRecord> {
  const [file, another] = await listSources(source, ["*.json"], EXPECTED);
  if (file === undefined || another !== undefined)
    throw new SourceError({ file: source, line: null }, `holds several JSON files; specify ${EXPECTED}`);
  // Each of the two passes is half of the way.
  const halfway = { advance: (bytes: number) => context.advance(bytes / 2) };
  const losses = countLosses(context);
  const reading = { ...(await surveySite(file, halfway)), losses };
  const writers = new Set([...reading.authorsOfPosts.values()].flat());
  for (const user of reading.users) if (writers.has(String(user.id))) yield readAuthor(user, reading);
  for (const tag of reading.tags) yield readTag(tag, reading);
  for await (const { value, place } of readJsonValues(file, listPaths(["posts"]), halfway))
    yield readPost(value as Row, place, reading);
  losses.tell();
}

/** Ghost's own exports have `db`, those made for its import may do without. */
function listPaths(tables: readonly string[]): string[] {
  return tables.flatMap((table) => [`$.db.*.data.${table}.*`, `$.data.${table}.*`]);
}

async function surveySite(file: SourceFile, progress: Pick<ReadContext, "advance">): Promise<Site> {
  const tables = new Map<string, Row[]>();
  const places = new Map<Row, Place>();
  const authors = new Map<string, string[]>();
  const names = ["posts", "users", "tags", "posts_tags", "posts_authors", "posts_meta"];
  for await (const { value, path, place } of readJsonValues(file, listPaths(names), progress)) {
    const table = path.at(-2) as string;
    if (typeof value !== "object" || value === null)
      throw new SourceError(place, `is no row of "${table}": specify ${EXPECTED}`);
    const row = value as Row;
    if (table !== "posts") tables.set(table, [...(tables.get(table) ?? []), row]);
    // Before version 1.22 a post had one author.
    else if (row.author_id != null) authors.set(String(row.id), [String(row.author_id)]);
    else authors.set(String(row.id), []);
    if (table === "users" || table === "tags") places.set(row, place);
  }
  if (authors.size === 0) throw new SourceError({ file: file.name, line: null }, `has no posts: specify ${EXPECTED}`);
  const list = (table: string) => tables.get(table) ?? [];
  return {
    file,
    places,
    users: list("users"),
    tags: list("tags"),
    tagsOfPosts: joinPosts(list("posts_tags"), "tag_id"),
    authorsOfPosts: new Map([...authors, ...joinPosts(list("posts_authors"), "author_id")]),
    metaOfPosts: new Map(list("posts_meta").map((row) => [String(row.post_id), row])),
  };
}

function joinPosts(rows: readonly Row[], column: string): Map<string, string[]> {
  const joined = new Map<string, string[]>();
  for (const row of rows.toSorted((a, b) => Number(a.sort_order ?? 0) - Number(b.sort_order ?? 0))) {
    const post = String(row.post_id);
    joined.set(post, [...(joined.get(post) ?? []), String(row[column])]);
  }
  return joined;
}

function readPost(post: Row, place: Place, reading: Reading): SourceRecord {
  const { losses, file } = reading;
  const id = String(post.id);
  const meta = { ...post, ...reading.metaOfPosts.get(id) } as Row;
  const refer = (collection: string, keys: readonly string[] = []): SourceValue =>
    keys.map((key) => ({ kind: "reference", collection, key }));
  const html = readText(post.html);
  if (html === null && (post.lexical ?? post.mobiledoc) != null)
    losses.count(place, "texts of posts without HTML", "open such a post in Ghost, save it, and export again");
  for (const part of ["codeinjection_head", "codeinjection_foot"])
    if (readText(post[part]) !== null)
      losses.count(place, "injected code of posts", "is part of a site, not of its content");
  const status = decideStatus(post, place, losses);
  return {
    kind: "record",
    collection: post.type === "page" || post.page === 1 || post.page === true ? "pages" : "posts",
    key: id,
    place,
    status,
    published: readDate(post.published_at),
    created: readDate(post.created_at),
    updated: readDate(post.updated_at),
    fields: {
      title: readText(post.title),
      slug: readText(post.slug),
      content: html === null ? null : { kind: "html", html: html.replace(SITE, ""), folder: dirname(file.path) },
      excerpt: readText(post.custom_excerpt),
      feature_image: makeMedia(post.feature_image ?? post.image, reading),
      feature_image_alt: readText(meta.feature_image_alt),
      feature_image_caption: readText(meta.feature_image_caption),
      featured: post.featured === 1 || post.featured === true,
      authors: refer("authors", reading.authorsOfPosts.get(id)),
      tags: refer("tags", reading.tagsOfPosts.get(id)),
      ...readMeta(meta, reading),
      canonical_url: readText(post.canonical_url)?.replace(SITE, "") ?? null,
    },
  };
}

function decideStatus(post: Row, place: Place, losses: Losses): SourceRecord["status"] {
  const { status, visibility = "public" } = post;
  if (status === "published" && visibility !== "public") {
    losses.count(place, `visibility ${String(visibility)}`, "everything here is public: such a post becomes a draft");
    return "draft";
  }
  if (status === "published") return "published";
  if (status !== "draft")
    losses.count(place, `status ${String(status)}`, "becomes a draft: publish it when its time has come");
  return "draft";
}

function readAuthor(user: Row, reading: Reading): SourceRecord {
  const place = reading.places.get(user) as Place;
  if (readText(user.email) !== null)
    reading.losses.count(place, "e-mail addresses of authors", "are personal, and everything here is public");
  const told = ["name", "slug", "bio", "website", "location", "facebook", "twitter"];
  return makeRecord("authors", user, place, {
    ...Object.fromEntries(told.map((name) => [name, readText(user[name])])),
    profile_image: makeMedia(user.profile_image, reading),
    cover_image: makeMedia(user.cover_image, reading),
  });
}

/** Tags whose names begin with # are internal to Ghost's themes: `visibility` tells them apart. */
function readTag(tag: Row, reading: Reading): SourceRecord {
  const told = ["name", "slug", "description", "visibility", "accent_color"];
  return makeRecord("tags", tag, reading.places.get(tag) as Place, {
    ...Object.fromEntries(told.map((name) => [name, readText(tag[name])])),
    feature_image: makeMedia(tag.feature_image ?? tag.image, reading),
    ...readMeta(tag, reading),
  });
}

/** Authors and tags have no status: they are seen as soon as they exist. */
function makeRecord(collection: string, row: Row, place: Place, fields: SourceRecord["fields"]): SourceRecord {
  const created = readDate(row.created_at);
  const dates = { published: created, created, updated: readDate(row.updated_at) };
  return { kind: "record", collection, key: String(row.id), place, status: "published", ...dates, fields };
}

function readMeta(row: Row, reading: Reading): Record<string, SourceValue> {
  const texts = META.map((name) => [name, readText(row[name])]);
  const images = ["og_image", "twitter_image"].map((name) => [name, makeMedia(row[name], reading)]);
  return Object.fromEntries([...texts, ...images]);
}

function makeMedia(value: unknown, { file }: Reading): SourceValue {
  const address = readText(value)?.replace(SITE, "") ?? null;
  if (address === null) return null;
  const [plain = ""] = address.split(/[?#]/);
  const path = join(dirname(file.path), decodeOrKeep(plain));
  const isHere = plain.startsWith("/content/") && isFile(path);
  return { kind: "media", path: isHere ? path : null, name: basename(decodeOrKeep(plain)), address };
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** In UTC, as `2025-06-30 15:31:36`, in ISO form, or in milliseconds. */
function readDate(value: unknown): string | null {
  if (typeof value === "number") return new Date(value).toISOString();
  const text = readText(value);
  return text === null || /[zZ]$|[+-]\d\d:?\d\d$/.test(text) ? text : `${text.replace(" ", "T")}Z`;
}

function readText(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
