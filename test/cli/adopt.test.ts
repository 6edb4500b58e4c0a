/** `precast adopt` and `precast sync`: a user's own tables become content types, and what differs in them arrives. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeUuid } from "../../cli/convert/names.ts";
import { openPlace, type Place } from "../support/cli.ts";
import { copyPostgres } from "../support/migrated.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

/** Names and types that are unlike each other, and rows for them. */
const TABLES = `
CREATE SCHEMA blog;
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE DOMAIN mail AS text;
CREATE TABLE authors (id serial PRIMARY KEY, "Full Name" text NOT NULL, email mail, password_hash text);
COMMENT ON TABLE authors IS 'Who writes';
COMMENT ON COLUMN authors."Full Name" IS 'The name';
CREATE TABLE tags (code text PRIMARY KEY, label text);
CREATE TABLE "Order" ("select" bigint PRIMARY KEY, "Größe" numeric(10,2), "from" date, search text, "a ""b" int, "postTitle" text);
CREATE TABLE posts (
  id bigint PRIMARY KEY, title varchar(200) NOT NULL, body text, author_id int REFERENCES authors, mood mood,
  moods mood[], words text[], nums int[], price money, big numeric, local timestamp, zoned timestamptz, span interval,
  raw bytea, meta jsonb, ref uuid, published_at timestamp, created_at timestamptz, updated_at timestamptz,
  deleted_at timestamptz);
CREATE TABLE post_tags (
  post_id bigint REFERENCES posts ON DELETE CASCADE, tag text REFERENCES tags, position int, PRIMARY KEY (post_id, tag));
CREATE TABLE related (
  post_id bigint REFERENCES posts, other_id bigint REFERENCES posts ON DELETE CASCADE, PRIMARY KEY (post_id, other_id));
CREATE TABLE order_lines (order_id bigint REFERENCES "Order", line int, what text, PRIMARY KEY (order_id, line));
CREATE TABLE shipments (
  id uuid PRIMARY KEY, order_id bigint, line int, FOREIGN KEY (order_id, line) REFERENCES order_lines);
CREATE TABLE nokey (a int);
CREATE TABLE schema_migrations (version text PRIMARY KEY);
CREATE VIEW recent AS SELECT id, title FROM posts;
CREATE TABLE blog.posts (id int PRIMARY KEY, status text, note text);
INSERT INTO authors VALUES (1, 'Ada', 'ada@example.com', 'x'), (2, 'Bob', NULL, 'y');
INSERT INTO tags VALUES ('a', 'A'), ('b', 'B');
INSERT INTO posts VALUES
  (9007199254740993, 'First', '<p>x</p>', 1, 'glad', '{glad,sad}', '{x,y}', '{1,2}', 12.50::numeric::money, 0.10,
    '2026-01-01 10:00', '2026-01-01 10:00:00.123456+02', '1 day', '\\x00', '{"a": [1, null]}',
    'ABCDEF00-0000-4000-8000-000000000001', '2026-01-02', '2026-01-01Z', '2026-01-03Z', NULL),
  (9007199254740992, 'Scheduled', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    '9000-01-01', '2026-01-01Z', NULL, NULL),
  (3, 'Gone', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-01-01',
    '2026-01-01Z', NULL, '2026-01-05Z');
INSERT INTO post_tags VALUES (9007199254740993, 'b', 1), (9007199254740993, 'a', 2);
INSERT INTO related VALUES (9007199254740993, 9007199254740992);
INSERT INTO "Order" VALUES (1, 1.50, '2026-01-01', 's', 1, 't');
INSERT INTO order_lines VALUES (1, 1, 'x'), (1, 2, NULL);
INSERT INTO shipments VALUES ('00000000-0000-4000-8000-000000000001', 1, 2);
INSERT INTO blog.posts VALUES (1, 'published', 'n'), (2, 'draft', 'm');`;

type Types = {
  readonly types: readonly { readonly type: string; readonly fields: object[] }[];
  readonly left_out: object[];
};
type Changes = {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly deleted: number;
};
type Synced = { readonly rows: number; readonly types: Changes; readonly fields: Changes; readonly entries: Changes };
type Fields = readonly { readonly name: string; readonly type: string; readonly multiple: boolean }[];

/** Of a mapping that was edited. */
const TAG_FIELDS = [
  { name: "label", type: "text", label: "Label", required: false, searchable: true },
  { name: "size", type: "number", label: "Size", required: false, searchable: false },
];

/** A database with tables, and a place whose own database is another one. */
type Adopter = {
  readonly place: Place;
  readonly url: string;
  readonly target: string;
  readonly source: (script: string) => Promise<Record<string, unknown>[]>;
  readonly stored: (script: string) => Promise<Record<string, unknown>[]>;
  readonly mapFile: string;
  readonly editMap: (edit: (text: string) => string) => void;
  readonly close: () => Promise<void>;
};

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
}

/** `isSame`: the tables are in Precast's own database. */
async function openAdopter(tables: string, isSame = false): Promise<Adopter> {
  const target = await copyPostgres();
  const url = isSame ? target : await createDatabase(inject("postgresUrl"), "own");
  const place = openPlace({ DATABASE_URL: target });
  const [source, stored] = [await connect(url), await connect(target)];
  await source.query(tables);
  const mapFile = join(place.folder, "precast.map.json");
  return {
    place,
    url,
    target,
    source: async (script) => (await source.query(script)).rows,
    stored: async (script) => (await stored.query(script)).rows,
    mapFile,
    editMap: (edit) => writeFileSync(mapFile, edit(readFileSync(mapFile, "utf8"))),
    close: async () => {
      await place.close();
      await source.end();
      await stored.end();
      await dropDatabase(url);
      if (!isSame) await dropDatabase(target);
    },
  };
}

/** What is stored of an entry, as the API shows it: by the value of a field. */
async function readEntry({ stored }: Adopter, type: string, field: string, value: string) {
  const rows = await stored(`SELECT entry.id::text, status, published_at, created_at, updated_at, data || rich AS data
    FROM precast.entries AS entry JOIN precast.content_types AS type ON type.id = content_type_id
    WHERE slug = '${type}' AND data ->> '${field}' = '${value}'`);
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of the data
  return rows[0] as any;
}

const changes = (created: number, updated: number, unchanged: number, deleted: number): Changes => ({
  created,
  updated,
  unchanged,
  deleted,
});

describe("tables of another database", () => {
  let adopter: Adopter;
  let proposed: Types;
  const sync = (line = "") => adopter.place.json<Synced>(`sync ${line}`);
  const refused = async (line = "sync") => {
    const { code, stdout, stderr } = await adopter.place.call(line);
    expect([code, stdout]).toEqual([1, ""]);
    return stderr;
  };
  const fieldsOf = (slug: string) => {
    const fields = (proposed.types.find(({ type }) => type === slug)?.fields ?? []) as Fields;
    return fields.map(({ name, type, multiple }) => `${name} ${type}${multiple ? "[]" : ""}`);
  };

  beforeAll(async () => {
    adopter = await openAdopter(TABLES);
    proposed = await adopter.place.json<Types>(
      `adopt --from ${adopter.url.replace("postgres@", "postgres:s3cret@")} --app own`,
    );
  });
  afterAll(() => adopter.close());

  test("adopt finds types, keys, relations, lists, selects and names, whatever they are called", () => {
    expect(proposed.types.map(({ type }) => type)).toEqual([
      "blog-posts",
      "order",
      "authors",
      "order-lines",
      "posts",
      "shipments",
      "tags",
    ]);
    expect(fieldsOf("authors")).toEqual(["full_name text", "email text"]);
    expect(fieldsOf("blog-posts")).toEqual(["note text"]);
    expect(fieldsOf("order")).toEqual([
      "select number",
      "gro_e number",
      "from date",
      "source_search text",
      "a_b number",
      "post_title text",
    ]);
    expect(fieldsOf("order-lines")).toEqual(["order_id relation", "line number", "what text"]);
    expect(fieldsOf("shipments")).toEqual(["order_id number", "line number", "order_lines relation"]);
    expect(fieldsOf("posts")).toEqual([
      ...[
        "title text",
        "body rich_text",
        "author_id relation",
        "mood select",
        "moods select[]",
        "words text[]",
        "nums json",
      ],
      ...["price number", "big number", "local datetime", "zoned datetime", "span text", "meta json", "ref text"],
      ...["tags relation[]", "other relation[]"],
    ]);
    expect(proposed.left_out).toEqual([
      { table: "public.nokey", column: null, why: expect.stringContaining("no primary key") },
      { table: "public.authors", column: "password_hash", why: expect.stringContaining("secret") },
      { table: "public.posts", column: "raw", why: expect.stringContaining("bytea") },
    ]);
  });

  test("the mapping keeps comments, and holds no password", () => {
    const text = readFileSync(adopter.mapFile, "utf8");
    expect(text).not.toContain("s3cret");
    const map = JSON.parse(text);
    expect(map.from).toBe(adopter.url);
    const authors = map.types.find(
      ({ content_type }: { content_type: { slug: string } }) => content_type.slug === "authors",
    );
    expect(authors.content_type.description).toBe("Who writes");
    expect(authors.content_type.fields[0]).toMatchObject({ name: "full_name", label: "The name", required: true });
  });

  test("adopt replaces a mapping only when it is told to", async () => {
    const before = readFileSync(adopter.mapFile, "utf8");
    expect(await refused(`adopt --from ${adopter.url} --app own`)).toContain("--overwrite");
    expect(readFileSync(adopter.mapFile, "utf8")).toBe(before);
    expect((await adopter.place.call(`adopt --from ${adopter.url} --app own --overwrite`)).code).toBe(0);
    expect(readFileSync(adopter.mapFile, "utf8")).toBe(before);
  });

  test("adopt takes the tables that are named, also a view with an id, and names those that there are", async () => {
    const named = await adopter.place.json<Types>(
      `adopt recent blog.posts --from ${adopter.url} --app own --map some.json`,
    );
    expect(named.types.map(({ type }) => type)).toEqual(["recent", "posts"]);
    expect(await refused(`adopt post --from ${adopter.url} --map x.json`)).toMatch(/no table post\. .*public\.posts/);
    expect(await refused(`adopt posts --from ${adopter.url} --map x.json`)).toMatch(
      /several tables posts\. .*blog\.posts/,
    );
  });

  test("a dry run says what would come, and brings nothing", async () => {
    expect((await sync("--dry-run")).entries).toEqual(changes(12, 0, 0, 0));
    expect(await adopter.stored("SELECT key FROM precast.apps")).toEqual([]);
  });

  test("sync brings every row, with ids that relations lead to", async () => {
    expect((await sync()).entries).toEqual(changes(12, 0, 0, 0));
    const first = await readEntry(adopter, "posts", "title", "First");
    const idOf = async (type: string, field: string, value: string) =>
      (await readEntry(adopter, type, field, value)).id;
    expect(first.id).toBe(makeUuid("own", "posts", "9007199254740993"));
    expect(first.status).toBe("published");
    expect(first.published_at.toISOString()).toBe("2026-01-02T00:00:00.000Z");
    expect(first.updated_at.toISOString()).toBe("2026-01-03T00:00:00.000Z");
    expect(first.data).toEqual({
      title: "First",
      body: "<p>x</p>",
      author_id: await idOf("authors", "full_name", "Ada"),
      mood: "glad",
      moods: ["glad", "sad"],
      words: ["x", "y"],
      nums: [1, 2],
      price: 12.5,
      big: 0.1,
      local: "2026-01-01T10:00:00.000+00:00",
      zoned: "2026-01-01T08:00:00.123+00:00",
      span: "P1D",
      meta: { a: [1, null] },
      ref: "abcdef00-0000-4000-8000-000000000001",
      tags: [await idOf("tags", "code", "b"), await idOf("tags", "code", "a")],
      other: [await idOf("posts", "title", "Scheduled")],
    });
    expect((await readEntry(adopter, "posts", "title", "Scheduled")).status).toBe("draft");
    expect(await readEntry(adopter, "posts", "title", "Gone")).toBeUndefined();
    expect((await readEntry(adopter, "blog-posts", "note", "m")).status).toBe("draft");
    const shipment = await readEntry(adopter, "shipments", "line", "2");
    expect(shipment.id).toBe("00000000-0000-4000-8000-000000000001");
    expect(shipment.data.order_lines).toBe(await idOf("order-lines", "line", "2"));
  });

  test("an unchanged source changes nothing", async () => {
    // A row that was only locked would have the transaction in xmax.
    const stamps = "SELECT xmin::text, xmax::text, id FROM precast.entries ORDER BY content_type_id, id";
    const before = await adopter.stored(stamps);
    expect(before.every(({ xmax }) => xmax === "0")).toBe(true);
    const { entries, types, fields } = await sync();
    expect([entries, types]).toEqual([changes(0, 0, 12, 0), changes(0, 0, 7, 0)]);
    expect([fields.created, fields.updated, fields.deleted]).toEqual([0, 0, 0]);
    expect(await adopter.stored(stamps)).toEqual(before);
  });

  test("new, changed, renamed and deleted rows arrive", async () => {
    await adopter.source(`
      UPDATE posts SET title = 'First again', price = NULL WHERE title = 'First';
      DELETE FROM posts WHERE title = 'Scheduled';
      INSERT INTO tags VALUES ('c', 'C');
      UPDATE tags SET label = 'A, renamed' WHERE code = 'a'`);
    // The post, the tag; the post that is gone, and its place among the related ones.
    expect((await sync()).entries).toEqual(changes(1, 2, 9, 1));
    expect((await readEntry(adopter, "posts", "title", "First again")).data).toMatchObject({ price: null, other: [] });
    // What is identified by its name is another entry under another name.
    await adopter.source("UPDATE tags SET code = 'd' WHERE code = 'c'");
    expect((await sync()).entries).toEqual(changes(1, 0, 11, 1));
  });

  test("an edit of the mapping is obeyed", async () => {
    adopter.editMap((text) => {
      const map = JSON.parse(text);
      const tags = map.types.find(
        ({ content_type }: { content_type: { slug: string } }) => content_type.slug === "tags",
      );
      tags.select = "SELECT code AS id, upper(label) AS label, length(label) AS size FROM tags WHERE code <> 'd'; ";
      tags.content_type.fields = TAG_FIELDS;
      return JSON.stringify(map);
    });
    const { entries, fields } = await sync();
    expect([entries.deleted, fields.created, fields.deleted]).toEqual([1, 1, 1]);
    expect((await readEntry(adopter, "tags", "label", "A, RENAMED")).data).toEqual({ label: "A, RENAMED", size: 10 });
  });

  /** Tries another SELECT for the tags, and returns what is said of it. */
  async function trySelect(select: string): Promise<string> {
    const before = readFileSync(adopter.mapFile, "utf8");
    const map = JSON.parse(before);
    const tags = map.types.find(({ content_type }: { content_type: { slug: string } }) => content_type.slug === "tags");
    Object.assign(tags, { select: select.split("\n") });
    Object.assign(tags.content_type, { fields: TAG_FIELDS, filterable_fields: [], sortable_fields: [] });
    writeFileSync(adopter.mapFile, JSON.stringify(map));
    try {
      return await refused();
    } finally {
      writeFileSync(adopter.mapFile, before);
    }
  }

  test.each([
    [
      "SELECT code AS id, label,\n  lable AS size\nFROM tags",
      /"tags" is wrong in line 2, column 3: column "lable" does not exist.*\n {4}lable AS size/,
    ],
    ["SELEC 1", /"tags" is wrong in line 1, column 7: syntax error/],
    ["SELECT 1 AS size, label FROM tags", /SELECT of "tags" yields no column "id"/],
    ["SELECT code AS id, label FROM tags", /SELECT of "tags" yields no column "size", but .* a field "size"/],
    ["SELECT code AS id, label, 1 / (length(code) - 1) AS size FROM tags", /SELECT of "tags" failed: division by zero/],
    ["SELECT NULL AS id, label, 1 AS size FROM tags", /SELECT of "tags" failed: row 1 has no id/],
    [
      "SELECT code AS id, label, label AS size FROM tags WHERE code = 'b'",
      /^tags, id b: field "size" must be a number.*, not "B"/,
    ],
    [
      "SELECT code AS id, 1 AS size, label, 2 AS more FROM tags WHERE code = 'b'",
      /^tags, id b: has an unknown field "more"/,
    ],
    ["SELECT 'x' AS id, 1 AS size, label FROM tags", /^tags, id x: "id" must be unique/],
    [
      "SELECT code AS id, 1 AS size, label, 'archived' AS status FROM tags WHERE code = 'b'",
      /^tags, id b: "status" must be "draft" or "published"/,
    ],
    ["DELETE FROM tags RETURNING code AS id, label, 1 AS size", /"tags" is wrong in line 1/],
  ])("a wrong SELECT brings nothing, and is told with its place: %j", async (select, sentence) => {
    expect(await trySelect(select)).toMatch(sentence);
  });

  test("faults of the file are told all at once, with their places", async () => {
    const write = (value: unknown) => writeFileSync(join(adopter.place.folder, "wrong.json"), JSON.stringify(value));
    const type = {
      slug: "tags",
      name: "Tags",
      description: "",
      icon: "",
      fields: [],
      filterable_fields: ["x"],
      sortable_fields: [],
    };
    write({
      app: { key: "own", name: "Own" },
      types: [
        { select: [], content_type: type },
        { select: [], content_type: { ...type, slug: "T" } },
      ],
    });
    const stderr = await refused("sync --map wrong.json");
    expect(stderr).toMatch(/wrong\.json: types\.0 \(tags\): "filterable_fields" must not contain "x"/);
    expect(stderr).toMatch(/wrong\.json: types\.1 \(T\): "slug" must be/);
    write({ apps: {}, types: {} });
    expect(await refused("sync --map wrong.json")).toMatch(
      /wrong\.json: app must be an object.*\n.*types must be an array/,
    );
    expect(await refused("sync --map none.json")).toContain("precast adopt");
  });

  test("content types that came from elsewhere are deleted only when that is asked for", async () => {
    adopter.editMap((text) =>
      text.replace('"slug":"tags"', '"slug":"labels"').replaceAll('"target":"tags"', '"target":"labels"'),
    );
    expect(await refused()).toMatch(/"own" has content types that the mapping lacks: tags\. .*--prune/);
    const { types } = await sync("--prune");
    expect([types.created, types.deleted]).toEqual([1, 1]);
  });

  test("a database that does not answer, or refuses the reader, is named as that of the tables", async () => {
    expect(await refused("sync --from postgres://nobody@127.0.0.1:1/none")).toMatch(
      /^The database of your tables: .*--from/,
    );
    await adopter.source("CREATE ROLE blind LOGIN");
    const blind = adopter.url.replace("postgres@", "blind@");
    expect(await refused(`sync --from ${blind}`)).toMatch(
      /SELECT of "blog-posts" .* permission denied for schema blog/,
    );
    expect(await refused(`adopt --from ${blind} --map blind.json`)).toMatch(/^No table can be adopted/);
    await adopter.source("DROP ROLE blind");
  });

  test("watching for what is not brought is refused", async () => {
    expect(await refused("sync --watch --dry-run")).toMatch(/^--dry-run .*--watch/);
  });

  test("watching, it looks for commits that nobody announces", async () => {
    const watch = adopter.place.start("sync --watch --every 1");
    await watch.printed(/Watching/);
    await adopter.source("UPDATE authors SET \"Full Name\" = 'Eve' WHERE id = 2");
    await until(
      "the name to arrive",
      async () => (await readEntry(adopter, "authors", "full_name", "Eve")) !== undefined,
    );
    expect((await watch.stop()).code).toBe(0);
  });
});

test("tables of Precast's own database: with triggers, a commit arrives at once, and nothing is missed", async () => {
  const adopter = await openAdopter(`CREATE TABLE "Odd name" (id int PRIMARY KEY, title text);`, true);
  const { place, source } = adopter;
  const arrives = (title: string) =>
    until(`${title} to arrive`, async () => (await readEntry(adopter, "odd-name", "title", title)) !== undefined);
  await place.json("adopt --app own");
  expect(JSON.parse(readFileSync(adopter.mapFile, "utf8")).from).toBeNull();
  const printed = await place.call("sync --triggers print");
  expect(printed.stdout).toContain('ON public."Odd name"');
  expect(await source("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'precast%'")).toEqual([]);
  await place.json("sync --triggers install");
  await place.json("sync --triggers install");
  await source(`INSERT INTO "Odd name" VALUES (1, 'While down')`);
  const watch = place.start("sync --watch --every 86400");
  await arrives("While down");
  await watch.printed(/1 created/);
  await source(`INSERT INTO "Odd name" VALUES (2, 'Then')`);
  await arrives("Then");
  await source(`UPDATE "Odd name" SET title = 'Renamed' WHERE id = 2`);
  await arrives("Renamed");
  await source(`INSERT INTO "Odd name" VALUES (3, 'Wrong'); ALTER TABLE "Odd name" RENAME title TO headline`);
  await watch.printed(/Changes could not be brought.*odd-name/);
  await source(`ALTER TABLE "Odd name" RENAME headline TO title`);
  await arrives("Wrong");
  await source(`TRUNCATE "Odd name"`);
  await until("all to be gone", async () => (await adopter.stored("SELECT FROM precast.entries")).length === 0);
  expect((await watch.stop()).code).toBe(0);
  await place.json("sync --triggers remove");
  expect(await source("SELECT tgname FROM pg_trigger WHERE tgname = 'precast_announce'")).toEqual([]);
  await adopter.close();
});

test("every step of the README works as it is written", async () => {
  const text = readFileSync(fileURLToPath(new URL("../../cli/adopt/README.md", import.meta.url)), "utf8");
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, kind, body]) => ({
    kind,
    body: body as string,
  }));
  const [{ body: tables } = { body: "" }] = blocks;
  const adopter = await openAdopter(tables);
  const { place } = adopter;
  for (const { kind, body } of blocks) {
    if (kind === "json")
      expect(readFileSync(adopter.mapFile, "utf8").replace(/^ +/gm, "")).toContain(body.replace(/^ +/gm, ""));
    if (kind !== "sh") continue;
    for (const line of body.trim().split("\n")) {
      const words = line
        .replace(/^npx precast /, "")
        .replace("postgres://cms@db.example.com/shop", `${adopter.url} --app shop`);
      if (words.includes("--watch")) continue;
      expect(await place.call(words)).toMatchObject({ code: 0 });
    }
  }
  const scarves = JSON.parse(
    readFileSync(join(place.folder, "out/s-shop/v1/products/filter/season/s-winter.json"), "utf8"),
  );
  expect(scarves.data.map(({ title }: { title: string }) => title)).toEqual(["A scarf"]);
  await adopter.close();
});
