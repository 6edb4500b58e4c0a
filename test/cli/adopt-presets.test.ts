/**
 * The tables of Directus, Strapi 5 and Payload become content. Those of Strapi and Payload were made by Strapi 5.54 and
 * Payload 3 themselves, and shortened; those of Directus follow its documentation.
 */
import { Client } from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { openPlace, type Place } from "../support/cli.ts";
import { copyPostgres } from "../support/migrated.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";

const PAYLOAD = `
CREATE TYPE enum_posts_status AS ENUM ('draft', 'published');
CREATE TYPE enum_posts_moods AS ENUM ('glad', 'sad');
CREATE TABLE payload_migrations (id serial PRIMARY KEY, name varchar);
CREATE TABLE users (id serial PRIMARY KEY, email varchar NOT NULL, salt varchar, hash varchar);
CREATE TABLE users_sessions (_order int, _parent_id int REFERENCES users, id varchar PRIMARY KEY);
CREATE TABLE media (id serial PRIMARY KEY, alt varchar, filename varchar, mime_type varchar, filesize numeric);
CREATE TABLE tags (id serial PRIMARY KEY, name varchar NOT NULL);
CREATE TABLE posts (
  id serial PRIMARY KEY, title varchar, content jsonb, hero_id int REFERENCES media, author_id int REFERENCES users,
  updated_at timestamptz(3) NOT NULL, created_at timestamptz(3) NOT NULL, _status enum_posts_status DEFAULT 'draft');
CREATE TABLE posts_rels (
  id serial PRIMARY KEY, "order" int, parent_id int NOT NULL REFERENCES posts, path varchar NOT NULL,
  media_id int REFERENCES media, tags_id int REFERENCES tags, posts_id int REFERENCES posts);
CREATE TABLE posts_moods ("order" int NOT NULL, parent_id int NOT NULL REFERENCES posts, value enum_posts_moods, id serial PRIMARY KEY);
CREATE TABLE posts_texts (id serial PRIMARY KEY, "order" int, parent_id int NOT NULL REFERENCES posts, path varchar NOT NULL, text varchar);
CREATE TABLE posts_links (_order int NOT NULL, _parent_id int NOT NULL REFERENCES posts, id varchar PRIMARY KEY, label varchar);
CREATE TABLE posts_links_more (_order int NOT NULL, _parent_id varchar NOT NULL REFERENCES posts_links, id varchar PRIMARY KEY);
CREATE TABLE posts_locales (title varchar, id serial PRIMARY KEY, _locale varchar, _parent_id int NOT NULL REFERENCES posts);
CREATE TABLE _posts_v (id serial PRIMARY KEY, parent_id int REFERENCES posts, version_title varchar);
INSERT INTO users VALUES (1, 'ada@example.com', 's', 'h');
INSERT INTO media VALUES (1, 'One', 'one.png', 'image/png', 1), (2, 'Two', 'two.png', 'image/png', 1);
INSERT INTO tags VALUES (1, 'A'), (2, 'B');
INSERT INTO posts VALUES (1, 'First', '{"root": {}}', 1, 1, '2026-01-02Z', '2026-01-01Z', 'published'),
  (2, 'Draft', NULL, NULL, NULL, '2026-01-02Z', '2026-01-01Z', 'draft');
INSERT INTO posts_rels ("order", parent_id, path, media_id, tags_id, posts_id) VALUES
  (1, 1, 'gallery', 2, NULL, NULL), (2, 1, 'gallery', 1, NULL, NULL), (1, 1, 'tags', NULL, 2, NULL),
  (2, 1, 'tags', NULL, 1, NULL), (1, 2, 'links.0.to', NULL, 1, NULL), (1, 2, 'about', NULL, 1, NULL), (1, 1, 'about', NULL, NULL, 2);
INSERT INTO posts_moods VALUES (1, 1, 'sad', 1), (2, 1, 'glad', 2);
INSERT INTO posts_texts VALUES (1, 1, 1, 'words', 'x'), (2, 2, 1, 'words', 'y');
INSERT INTO posts_links VALUES (1, 1, 'b', 'L'), (2, 1, 'a', 'M');`;

const STRAPI_TYPES = {
  "api::article.article": {
    collectionName: "articles",
    attributes: {
      title: { type: "string" },
      body: { type: "richtext" },
      kindOf: { type: "enumeration" },
      cover: { type: "media", multiple: false },
      gallery: { type: "media", multiple: true },
      author: { type: "relation", relation: "manyToOne" },
      tags: { type: "relation", relation: "manyToMany" },
      related: { type: "relation", relation: "oneToMany" },
    },
  },
  "api::tag.tag": { collectionName: "tags", attributes: { name: { type: "string" } } },
  "api::author.author": { collectionName: "authors", attributes: { name: { type: "string" } } },
};

const document = (name: string, more: string) => `
CREATE TABLE ${name} (
  id serial PRIMARY KEY, document_id varchar(255), ${more} created_at timestamp(6), updated_at timestamp(6),
  published_at timestamp(6), created_by_id int REFERENCES admin_users, updated_by_id int REFERENCES admin_users, locale varchar(255));`;
const link = (name: string, from: string, fromColumn: string, to: string, toColumn: string, more: string) => `
CREATE TABLE ${name} (id serial PRIMARY KEY, ${fromColumn} int REFERENCES ${from}, ${toColumn} int REFERENCES ${to}, ${more});`;

const STRAPI = `
CREATE TABLE strapi_core_store_settings (id serial PRIMARY KEY, key varchar, value text, type varchar, environment varchar, tag varchar);
CREATE TABLE admin_users (id serial PRIMARY KEY, email varchar, password varchar);
CREATE TABLE up_users (id serial PRIMARY KEY, document_id varchar, username varchar);
CREATE TABLE files (id serial PRIMARY KEY, document_id varchar, name varchar, hash varchar, ext varchar, url varchar);
CREATE TABLE files_related_mph (id serial PRIMARY KEY, file_id int REFERENCES files, related_id int, related_type varchar, field varchar, "order" float8);
${document("articles", "title varchar(255), body text, kind_of varchar(255),")}
${document("authors", "name varchar(255),")}
${document("tags", "name varchar(255),")}
${link("articles_author_lnk", "articles", "article_id", "authors", "author_id", "article_ord float8")}
${link("articles_tags_lnk", "articles", "article_id", "tags", "tag_id", "tag_ord float8, article_ord float8")}
${link("articles_related_lnk", "articles", "article_id", "articles", "inv_article_id", "article_ord float8")}
INSERT INTO strapi_core_store_settings (key, value) VALUES
  ('plugin_i18n_default_locale', '"en"'), ('strapi_content_types_schema', '${JSON.stringify(STRAPI_TYPES)}'), ('other', NULL);
INSERT INTO files VALUES (1, 'f1', 'Cover', 'cover_1', '.png'), (2, 'f2', 'G 1', 'g1', '.png'), (3, 'f3', 'G 2', 'g2', '.png');
INSERT INTO authors (document_id, name, created_at, published_at) VALUES ('ada', 'Ada', '2026-01-01', '2026-01-01');
INSERT INTO tags (document_id, name, created_at, published_at) VALUES ('a', 'A', '2026-01-01', NULL), ('a', 'A', '2026-01-01', '2026-01-01'),
  ('b', 'B', '2026-01-01', NULL), ('b', 'B', '2026-01-01', '2026-01-01');
INSERT INTO articles (document_id, title, body, kind_of, created_at, updated_at, published_at, locale) VALUES
  ('first', 'First, edited but not published', '# Hi', 'news', '2026-01-01', '2026-01-03', NULL, 'en'),
  ('first', 'First', '# Hi', 'news', '2026-01-01', '2026-01-02', '2026-01-02 10:00', 'en'),
  ('draft', 'Draft', NULL, NULL, '2026-01-01', '2026-01-02', NULL, NULL),
  ('first', 'Erster', '# Hi', 'news', '2026-01-01', '2026-01-02', '2026-01-02', 'de');
INSERT INTO articles_author_lnk (article_id, author_id, article_ord) VALUES (1, 1, 1), (2, 1, 1);
INSERT INTO articles_tags_lnk (article_id, tag_id, tag_ord) VALUES (1, 3, 1), (1, 1, 2), (2, 2, 2), (2, 4, 1);
INSERT INTO articles_related_lnk (article_id, inv_article_id, article_ord) VALUES (2, 3, 1);
INSERT INTO files_related_mph (file_id, related_id, related_type, field, "order") VALUES
  (1, 2, 'api::article.article', 'cover', 1), (3, 2, 'api::article.article', 'gallery', 1),
  (2, 2, 'api::article.article', 'gallery', 2), (2, 2, 'api::tag.tag', 'cover', 1);`;

const DIRECTUS = `
CREATE TABLE directus_collections (collection varchar PRIMARY KEY);
CREATE TABLE directus_users (id uuid PRIMARY KEY, email varchar, password varchar);
CREATE TABLE directus_files (id uuid PRIMARY KEY, filename_disk varchar, filename_download varchar, title varchar);
CREATE TABLE directus_fields (id serial PRIMARY KEY, collection varchar, field varchar, special text, interface varchar, options json);
CREATE TABLE tags (id serial PRIMARY KEY, name varchar);
CREATE TABLE posts (
  id uuid PRIMARY KEY, status varchar(255) DEFAULT 'draft', sort int, user_created uuid REFERENCES directus_users,
  date_created timestamptz, date_updated timestamptz, title varchar(255), text text, kind varchar(255), words text, moods json,
  image uuid REFERENCES directus_files);
CREATE TABLE posts_tags (id serial PRIMARY KEY, posts_id uuid REFERENCES posts, tags_id int REFERENCES tags, sort int);
CREATE TABLE posts_files (id serial PRIMARY KEY, posts_id uuid REFERENCES posts, directus_files_id uuid REFERENCES directus_files);
INSERT INTO directus_fields (collection, field, special, interface) VALUES
  ('posts', 'text', NULL, 'input-rich-text-html'), ('posts', 'kind', NULL, 'select-dropdown'),
  ('posts', 'words', 'cast-csv', 'tags'), ('posts', 'moods', 'cast-json', 'select-multiple-dropdown');
INSERT INTO directus_files VALUES ('00000000-0000-4000-8000-0000000000f1', 'f1.png', 'Sea.png', 'Sea');
INSERT INTO tags VALUES (1, 'A'), (2, 'B');
INSERT INTO posts VALUES ('00000000-0000-4000-8000-000000000001', 'published', 1, NULL, '2026-01-01Z', '2026-01-02Z', 'First',
    '<p>x</p>', 'news', 'x,y', '["glad"]', '00000000-0000-4000-8000-0000000000f1'),
  ('00000000-0000-4000-8000-000000000002', 'archived', 2, NULL, '2026-01-01Z', NULL, 'Draft', NULL, NULL, NULL, NULL, NULL);
INSERT INTO posts_tags (posts_id, tags_id, sort) VALUES
  ('00000000-0000-4000-8000-000000000001', 1, 2), ('00000000-0000-4000-8000-000000000001', 2, 1);
INSERT INTO posts_files (posts_id, directus_files_id) VALUES
  ('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-0000000000f1');`;

let place: Place;
let target: string;
beforeAll(async () => {
  target = await copyPostgres();
  place = openPlace({ DATABASE_URL: target });
});
afterAll(async () => {
  await place.close();
  await dropDatabase(target);
});

type Adopted = {
  readonly preset: string;
  readonly types: readonly { readonly type: string }[];
  readonly left_out: readonly { readonly table: string; readonly column: string | null }[];
};
const leftOutOf = ({ left_out }: Adopted) => left_out.map(({ table, column }) => `${table} ${column}`);

/** Adopts and syncs the tables, and returns what is stored of the entry with this title, its relations by name. */
async function adopt(tables: string, name: string, type: string) {
  const url = await createDatabase(inject("postgresUrl"), "cms");
  const source = new Client({ connectionString: url });
  await source.connect();
  await source.query(tables);
  const adopted = await place.json<Adopted>(`adopt --from ${url} --app ${name} --map ${name}.json`);
  await place.json(`sync --map ${name}.json`);
  await source.end();
  await dropDatabase(url);
  const client = new Client({ connectionString: target });
  await client.connect();
  const { rows } = await client.query(`
    SELECT slug, status, published_at, entry.id::text, data || rich AS data FROM precast.entries AS entry
    JOIN precast.content_types AS type ON type.id = content_type_id JOIN precast.apps AS app ON app.id = app_id
    WHERE app.key = '${name}'`);
  await client.end();
  const names = new Map(rows.map(({ id, data }) => [id, data.name ?? data.title]));
  const named = (value: unknown): unknown => (Array.isArray(value) ? value.map(named) : (names.get(value) ?? value));
  const entries = rows.filter(({ slug }) => slug === type);
  const find = (title: string) => entries.find(({ data }) => data.title === title);
  const data = Object.fromEntries(Object.entries(find("First").data).map(([key, value]) => [key, named(value)]));
  return { adopted, find, data, titles: entries.map(({ data: { title } }) => title).sort() };
}

test("Payload: drafts, uploads, relations to many, lists and arrays", async () => {
  const { adopted, find, data, titles } = await adopt(PAYLOAD, "payload", "posts");
  expect([adopted.preset, adopted.types.map(({ type }) => type)]).toEqual(["payload", ["media", "posts", "tags"]]);
  expect(leftOutOf(adopted)).toEqual([
    "public.posts_links_more null",
    "public.posts_locales null",
    "public.posts_rels about",
    "public.posts_rels links.0.to",
    "public.posts author_id",
  ]);
  expect([titles, find("Draft").status, find("First").status]).toEqual([["Draft", "First"], "draft", "published"]);
  expect(data).toEqual({
    title: "First",
    content: { root: {} },
    hero_id: "one.png",
    gallery: ["two.png", "one.png"],
    tags: ["B", "A"],
    moods: ["sad", "glad"],
    words: ["x", "y"],
    links: [
      { id: "b", label: "L" },
      { id: "a", label: "M" },
    ],
  });
});

test("Strapi 5: what is published of a document, else its draft; links and files", async () => {
  const { adopted, find, data, titles } = await adopt(STRAPI, "strapi", "articles");
  expect([adopted.preset, adopted.types.map(({ type }) => type)]).toEqual(["strapi", ["articles", "authors", "tags"]]);
  expect([titles, find("Draft").status, find("First").status]).toEqual([["Draft", "First"], "draft", "published"]);
  expect(find("First").published_at.toISOString()).toBe("2026-01-02T10:00:00.000Z");
  expect(data).toEqual({
    title: "First",
    body: "# Hi",
    kind_of: "news",
    author: "Ada",
    related: ["Draft"],
    tags: ["B", "A"],
    cover: "cover_1.png",
    gallery: ["g2.png", "g1.png"],
  });
});

test("Directus: statuses, interfaces, files and links", async () => {
  const { adopted, find, data } = await adopt(DIRECTUS, "directus", "posts");
  expect([adopted.preset, adopted.types.map(({ type }) => type)]).toEqual(["directus", ["posts", "tags"]]);
  expect([find("Draft").status, find("First").status]).toEqual(["draft", "published"]);
  expect(data).toEqual({
    sort: 1,
    title: "First",
    text: "<p>x</p>",
    kind: "news",
    words: ["x", "y"],
    moods: ["glad"],
    image: "f1.png",
    tags: ["B", "A"],
    files: ["f1.png"],
  });
});

test("tables that are not those of the system that is named are refused", async () => {
  const url = await createDatabase(inject("postgresUrl"), "cms");
  const { code, stderr } = await place.call(`adopt --from ${url} --preset strapi`);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/no table strapi_core_store_settings/)]);
  await dropDatabase(url);
});
