/**
 * The same content in tables that are made for these two types alone: typed columns, an index for each kind of request,
 * and the searched text in a table of its own, so that lists do not read past it.
 */
import type { Client } from "pg";
import { type Article, type Person, searchedText } from "./article.ts";

export const HAND_TABLES = `
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE SCHEMA hand;
CREATE TABLE hand.people (
  id uuid NOT NULL, name text COLLATE "und-x-icu", country text, born float8, bio text,
  published_at timestamptz(3) NOT NULL, created_at timestamptz(3) NOT NULL, updated_at timestamptz(3) NOT NULL);
CREATE TABLE hand.articles (
  id uuid NOT NULL, title text COLLATE "und-x-icu",
  title_lower text COLLATE "C" GENERATED ALWAYS AS (lower(title)) STORED,
  code text COLLATE "C", topic text COLLATE "C", section text COLLATE "C", price float8, featured boolean, day date,
  tags text[], author_id uuid, contributors uuid[], body text,
  published_at timestamptz(3) NOT NULL, created_at timestamptz(3) NOT NULL, updated_at timestamptz(3) NOT NULL
) WITH (toast_tuple_target = 512);
CREATE TABLE hand.article_words (id uuid NOT NULL, published_at timestamptz(3) NOT NULL, words text COLLATE "C" NOT NULL);
ALTER TABLE hand.article_words ALTER words SET STORAGE PLAIN;
`;

/** Created after the rows are inserted, which is faster. */
export const HAND_INDEXES = `
ALTER TABLE hand.people ADD PRIMARY KEY (id);
ALTER TABLE hand.articles ADD PRIMARY KEY (id);
ALTER TABLE hand.article_words ADD PRIMARY KEY (id);
CREATE INDEX ON hand.articles (published_at DESC, id);
CREATE INDEX ON hand.articles (title, published_at DESC, id);
CREATE INDEX ON hand.articles (topic, published_at DESC, id);
CREATE INDEX ON hand.articles (section, published_at DESC, id);
CREATE INDEX ON hand.articles (topic, section, published_at DESC, id);
CREATE INDEX ON hand.articles (price DESC NULLS LAST, published_at DESC, id) INCLUDE (topic);
CREATE INDEX ON hand.articles (topic, price);
CREATE INDEX ON hand.articles (code);
CREATE INDEX ON hand.articles (title_lower);
CREATE INDEX ON hand.articles USING gin (title_lower gin_trgm_ops);
CREATE INDEX ON hand.articles USING gin (tags);
CREATE INDEX ON hand.article_words USING gin (words gin_trgm_ops);
`;

const STAMPS = ["published_at", "created_at", "updated_at"] as const;

export async function insertPeople(client: Client, people: readonly Person[]): Promise<void> {
  const rows = people.map(({ data, ...person }) => ({ ...person, ...data }));
  const columns = ["id", "name", "country", "born", "bio", ...STAMPS].join(", ");
  await client.query(
    `INSERT INTO hand.people (${columns})
     SELECT ${columns} FROM jsonb_populate_recordset(NULL::hand.people, $1::jsonb)`,
    [JSON.stringify(rows)],
  );
}

/** The table of words cannot hold a text that is longer than a database page (STORAGE PLAIN); no text here is. */
export async function insertArticles(client: Client, articles: readonly Article[]): Promise<void> {
  const rows = articles.map(({ data, ...article }) => ({ ...article, ...data }));
  const words = articles.map(({ id, published_at, data, body }) => {
    return { id, published_at, words: searchedText(data.title, body) };
  });
  const columns = [
    ...["id", "title", "code", "topic", "section", "price", "featured", "day", "tags", "author_id", "contributors"],
    ...["body", ...STAMPS],
  ].join(", ");
  await client.query({
    name: "insert-articles",
    text: `INSERT INTO hand.articles (${columns})
      SELECT ${columns} FROM json_populate_recordset(NULL::hand.articles, $1::json)`,
    values: [JSON.stringify(rows)],
  });
  await client.query({
    name: "insert-words",
    text: "INSERT INTO hand.article_words SELECT * FROM json_populate_recordset(NULL::hand.article_words, $1::json)",
    values: [JSON.stringify(words)],
  });
}
