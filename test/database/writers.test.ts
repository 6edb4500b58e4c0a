/**
 * Writers of SQL: answers show what was written, whichever statement wrote it and whatever other triggers do, and no
 * total counts an entry twice.
 */
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ApiServer, ask, ENGINES, openApiServer, openStore, type Store } from "../support/site.ts";

const ID = "0b7e8f52-6c1d-4f0e-9d53-0d2f6a1c9a01";
const TYPE = "(SELECT id FROM precast.content_types WHERE slug = 'posts')";
const TYPES = `
  DELETE FROM precast.apps;
  INSERT INTO precast.apps (key) VALUES ('a');
  INSERT INTO precast.content_types (app_id, slug) SELECT id, 'posts' FROM precast.apps;
  INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
    SELECT id, 'title', 1, 'text', false FROM precast.content_types;
  INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
    SELECT id, 'body', 2, 'rich_text', true FROM precast.content_types;
  UPDATE precast.content_types SET filterable_fields = '{title}'`;

const lit = (value: unknown) => `'${JSON.stringify(value)}'`;
const insert = (data: object, id = ID) => `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
  VALUES (${TYPE}, '${id}', 'published', '2026-01-20', ${lit(data)})`;

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let api: ApiServer;

  beforeAll(async () => {
    store = await openStore(engine);
    api = await openApiServer(store);
  });
  afterAll(async () => {
    await api.close();
    await store.close();
  });
  beforeEach(() => store.database.execute(TYPES));

  const write = (statement: string) => store.database.execute(statement);
  const read = async (path: string) => (await ask(api.url, `/api/v1${path}`, { appKey: "a" })).json;
  const totalOf = async (path: string) => (await read(path)).meta.total;

  describe("an upsert", () => {
    beforeEach(() => write(insert({ title: "Old", body: "<p>heron</p>" })));

    test.each([
      ["data = excluded.data", { title: "New", body: "<p>kestrel</p>" }],
      ["(data, rich) = (excluded.data, excluded.rich)", { title: "New", body: "<p>kestrel</p>" }],
      ["data = entries.data || excluded.data", { title: "New", body: "<p>kestrel</p>" }],
      [`data = entries.data || '{"title":"New"}'`, { title: "New", body: "<p>heron</p>" }],
      ["status = excluded.status", { title: "Old", body: "<p>heron</p>" }],
    ])("with SET %s writes the values that it names, rich text included", async (assignment, expected) => {
      const written = insert({ title: "New", body: "<p>kestrel</p>" });
      await write(`${written} ON CONFLICT (content_type_id, id) DO UPDATE SET ${assignment}`);
      expect((await read(`/posts/${ID}`)).data).toMatchObject(expected);
      const isNew = expected.body.includes("kestrel");
      expect(await totalOf("/posts/search?q=kestrel")).toBe(isNew ? 1 : 0);
      expect(await totalOf("/posts/search?q=heron")).toBe(isNew ? 0 : 1);
      expect(await totalOf(`/posts?filter[title]=${expected.title}&per_page=1`)).toBe(1);
    });

    test("that finds no entry inserts one, with its rich text in the column rich", async () => {
      const other = randomUUID();
      const written = insert({ title: "Other", body: "<p>wren</p>" }, other);
      await write(`${written} ON CONFLICT (content_type_id, id) DO UPDATE SET data = excluded.data`);
      expect((await read(`/posts/${other}`)).data).toMatchObject({ title: "Other", body: "<p>wren</p>" });
      const [row] = await store.database.query({
        text: `SELECT data::text, rich::text FROM precast.entries WHERE id = '${other}'`,
        values: [],
      });
      expect(row).toEqual(['{"title": "Other"}', '{"body": "<p>wren</p>"}']);
    });
  });

  test.each([
    ["never analyzed", ""],
    ["analyzed when it was small", "ANALYZE precast.entries"],
  ])("each entry that a transaction adds and edits is looked up by its key, in a table %s", async (_, before) => {
    const many = 300;
    const edit = `UPDATE precast.entries SET data = '{"body":"<p>kestrel</p>"}'`;
    await write(`${insert({ body: "<p>heron</p>" }, randomUUID())}; ${before}`);
    const read = await store.database.transaction("write", async ({ execute, query }) => {
      // A session keeps the plans that it has made for the first few entries.
      for (let turn = 0; turn < 8; turn++) await execute(`${insert({ body: "<p>heron</p>" }, randomUUID())}; ${edit}`);
      await execute(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
        SELECT ${TYPE}, gen_random_uuid(), 'published', now(), '{"body":"<p>heron</p>"}' FROM generate_series(1, ${many});
        ${edit}`);
      const rows = await query({
        text: `SELECT (seq_tup_read + idx_tup_fetch)::text FROM pg_stat_xact_user_tables
          WHERE relid = 'precast.entries'::regclass`,
        values: [],
      });
      return Number(rows[0]?.[0]);
    });
    expect(read).toBeLessThan(10 * many);
  });

  test("an entry that a custom AFTER INSERT trigger edits has the inserted and the edited values", async () => {
    await write(`CREATE FUNCTION pg_temp.retitle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE precast.entries SET data = data || '{"title":"Again"}' WHERE id = NEW.id; RETURN NULL; END $$;
      CREATE TRIGGER retitle AFTER INSERT ON precast.entries FOR EACH ROW EXECUTE FUNCTION pg_temp.retitle();
      ${insert({ title: "Once", body: "<p>wren</p>" })};
      DROP TRIGGER retitle ON precast.entries`);
    expect((await read(`/posts/${ID}`)).data).toMatchObject({ title: "Again", body: "<p>wren</p>" });
    expect(await totalOf("/posts?filter[title]=Again&per_page=1")).toBe(1);
  });

  test("filters see data as a custom BEFORE trigger has changed it", async () => {
    await write(`CREATE FUNCTION pg_temp.shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.data := NEW.data || jsonb_build_object('title', upper(NEW.data ->> 'title')); RETURN NEW; END $$;
      CREATE TRIGGER shout BEFORE INSERT OR UPDATE OF data ON precast.entries FOR EACH ROW EXECUTE FUNCTION pg_temp.shout();
      ${insert({ title: "loud" })};
      DROP TRIGGER shout ON precast.entries`);
    expect(await totalOf("/posts?filter[title]=LOUD&per_page=1")).toBe(1);
    expect(await totalOf("/posts?filter[title]=loud&per_page=1")).toBe(0);
  });

  test.each([
    ["edits it once more", `UPDATE precast.entries SET data = data || '{"body":"<p>wren</p>"}'`, { heron: 0, wren: 1 }],
    ["hides it", "UPDATE precast.entries SET status = 'draft'", { heron: 0, wren: 0 }],
    ["deletes it", "DELETE FROM precast.entries", { heron: 0, wren: 0 }],
  ])("search sees an entry as it is after a custom AFTER UPDATE trigger that %s", async (_, then, totals) => {
    await write(`${insert({ title: "Old", body: "<p>stork</p>" })};
      CREATE OR REPLACE FUNCTION pg_temp.audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF pg_trigger_depth() < 2 THEN ${then} WHERE id = NEW.id; END IF; RETURN NULL; END $$;
      CREATE TRIGGER audit AFTER UPDATE ON precast.entries FOR EACH ROW EXECUTE FUNCTION pg_temp.audit();
      UPDATE precast.entries SET data = data || '{"body":"<p>heron</p>"}';
      DROP TRIGGER audit ON precast.entries`);
    for (const [word, total] of Object.entries(totals)) expect(await totalOf(`/posts/search?q=${word}`)).toBe(total);
  });

  test.each([
    [
      "unpublishes",
      "publishes it again",
      "UPDATE",
      "UPDATE precast.entries SET status = 'published' WHERE id = OLD.id",
      "heron",
    ],
    ["deletes", "adds another with its id", "DELETE", insert({ body: "<p>wren</p>" }), "wren"],
  ])("search finds an entry that somebody %s when a custom trigger %s", async (_, _then, event, then, word) => {
    await write(`${insert({ title: "Old", body: "<p>heron</p>" })};
      CREATE OR REPLACE FUNCTION pg_temp.again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF pg_trigger_depth() < 2 THEN ${then}; END IF; RETURN NULL; END $$;
      CREATE TRIGGER again AFTER ${event} ON precast.entries FOR EACH ROW EXECUTE FUNCTION pg_temp.again();
      ${event === "UPDATE" ? "UPDATE precast.entries SET status = 'draft'" : "DELETE FROM precast.entries"};
      DROP TRIGGER again ON precast.entries`);
    expect(await totalOf("/posts")).toBe(1);
    for (const one of ["heron", "wren"])
      expect(await totalOf(`/posts/search?q=${one}`), one).toBe(one === word ? 1 : 0);
  });

  test("one statement can insert an entry and edit it through a function", async () => {
    await write(`CREATE FUNCTION pg_temp.retitle(entry uuid) RETURNS void LANGUAGE sql VOLATILE AS
        $$ UPDATE precast.entries SET data = data || '{"title":"Again"}' WHERE id = entry $$;
      WITH added AS (${insert({ title: "Once", body: "<p>wren</p>" })} RETURNING id) SELECT pg_temp.retitle(id) FROM added`);
    expect((await read(`/posts/${ID}`)).data).toMatchObject({ title: "Again", body: "<p>wren</p>" });
  });

  test("a statement that inserts a type, its fields and its entries counts each entry once", async () => {
    await write(`WITH type AS (
        INSERT INTO precast.content_types (app_id, slug, filterable_fields) SELECT id, 'notes', '{kind}' FROM precast.apps RETURNING id),
      field AS (
        INSERT INTO precast.fields (content_type_id, name, position, type) SELECT id, 'kind', 1, 'select' FROM type)
      INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
        SELECT id, gen_random_uuid(), 'published', now(), '{"kind":"a"}' FROM type, generate_series(1, 5)`);
    expect(await totalOf("/notes?filter[kind]=a&per_page=1")).toBe(5);
    expect(await totalOf("/notes?filter[kind][neq]=a")).toBe(0);
  });

  test("a statement that writes entries and lists of their type counts each once, as a later insert does", async () => {
    await write(`INSERT INTO precast.fields (content_type_id, name, position, type) SELECT ${TYPE}, 'kind', 3, 'select';
      ${insert({ kind: "a" })};
      WITH added AS (${insert({ kind: "a" }, randomUUID())}),
        changed AS (UPDATE precast.entries SET data = '{"kind":"b"}' WHERE id = '${ID}')
      UPDATE precast.content_types SET filterable_fields = '{title,kind}' WHERE slug = 'posts';
      ${insert({ kind: "a" }, randomUUID())}`);
    expect(await totalOf("/posts?filter[kind]=a&per_page=1")).toBe(2);
    expect(await totalOf("/posts?filter[kind]=b&per_page=1")).toBe(1);
    expect(await totalOf("/posts?filter[kind][neq]=a")).toBe(1);
  });

  test("totals are right for entries of another type that a custom trigger edits while slots are filled", async () => {
    await write(`INSERT INTO precast.content_types (app_id, slug) SELECT id, 'notes' FROM precast.apps;
      INSERT INTO precast.fields (content_type_id, name, position, type)
        SELECT id, 'kind', 1, 'select' FROM precast.content_types WHERE slug = 'notes';
      UPDATE precast.content_types SET filterable_fields = '{kind}' WHERE slug = 'notes';
      ${insert({ title: "Old" })};
      ${insert({ kind: "idle" }, randomUUID()).replace(TYPE, TYPE.replace("posts", "notes"))};
      CREATE FUNCTION pg_temp.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE precast.entries SET data = '{"kind":"busy"}' WHERE data ? 'kind'; RETURN NULL; END $$;
      CREATE TRIGGER note AFTER UPDATE ON precast.entries FOR EACH ROW WHEN (NEW.data ? 'title') EXECUTE FUNCTION pg_temp.note();
      UPDATE precast.content_types SET filterable_fields = '{}' WHERE slug = 'posts';
      DROP TRIGGER note ON precast.entries`);
    expect(await totalOf("/notes?filter[kind]=busy&per_page=1")).toBe(1);
    expect(await totalOf("/notes?filter[kind]=idle&per_page=1")).toBe(0);
  });

  test("totals of two filters are right after an entry gets a value that is too long for an index", async () => {
    const names = ["s1", "s2", "s3", "s4", "s5", "s6"];
    await write(`INSERT INTO precast.fields (content_type_id, name, position, type)
        SELECT ${TYPE}, name, 10 + place, 'select' FROM unnest('{${names.join(",")}}'::text[]) WITH ORDINALITY AS names(name, place);
      UPDATE precast.content_types SET filterable_fields = '{${names.join(",")}}' WHERE slug = 'posts'`);
    const data = Object.fromEntries(names.map((name) => [name, name]));
    for (let count = 0; count < 3; count++) await write(insert(data, randomUUID()));
    await write(insert({ ...data, s1: "x".repeat(2_001) }));
    for (const other of ["s3", "s6"]) {
      expect(await totalOf(`/posts?filter[s2]=s2&filter[${other}]=${other}`)).toBe(4);
      expect(await totalOf(`/posts?filter[s2]=s2&filter[${other}][neq]=${other}`)).toBe(0);
    }
    expect(await totalOf("/posts?filter[s1]=s1&filter[s2]=s2")).toBe(3);
  });

  test("a value that no longer fits its field does not block edits of other fields", async () => {
    await write(`${insert({ title: "Old" })}; UPDATE precast.fields SET type = 'number' WHERE name = 'title';
      INSERT INTO precast.fields (content_type_id, name, position, type) SELECT ${TYPE}, 'note', 3, 'text';
      UPDATE precast.entries SET data = data || '{"note":"kept"}'`);
    expect((await read(`/posts/${ID}`)).data).toMatchObject({ title: null, note: "kept" });
    await expect(write(`UPDATE precast.entries SET data = data || '{"title":"Older"}'`)).rejects.toThrow(
      'field "title" must hold a number value',
    );
  });

  test("an entry that moves to another type is stored and checked by the fields of that type", async () => {
    await write(`INSERT INTO precast.content_types (app_id, slug) SELECT id, 'notes' FROM precast.apps;
      INSERT INTO precast.fields (content_type_id, name, position, type)
        SELECT id, field.name, 1, type FROM precast.content_types,
          (VALUES ('title', 'rich_text'), ('body', 'text'), ('note', 'number')) AS field (name, type) WHERE slug = 'notes'`);
    const move =
      "UPDATE precast.entries SET content_type_id = (SELECT id FROM precast.content_types WHERE slug = 'notes')";
    await write(insert({ title: "<b>Old</b>", body: "heron", note: "wren" }));
    await expect(write(move)).rejects.toThrow('field "note" must hold a number value');
    await write(`UPDATE precast.entries SET data = data - 'note'; ${move}`);
    expect((await read("/notes")).data).toMatchObject([{ body: "heron" }]);
    expect((await read("/notes")).data[0]).not.toHaveProperty("title");
    expect((await read(`/notes/${ID}`)).data).toMatchObject({ title: "<b>Old</b>", body: "heron" });
  });

  const added = (type: string) => `INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
    VALUES (${TYPE}, 'body', 2, '${type}', true)`;
  const renamed = (from: string, to: string) => `UPDATE precast.fields SET name = '${to}' WHERE name = '${from}'`;
  const truncate = "UPDATE precast.content_types SET filterable_fields = '{}'; TRUNCATE precast.fields";
  test.each([
    ["text", "removed", "DELETE FROM precast.fields WHERE name = 'body'", added("text")],
    ["rich_text", "removed", "DELETE FROM precast.fields WHERE name = 'body'", added("rich_text")],
    ["text", "renamed", renamed("body", "other"), renamed("other", "body")],
    ["rich_text", "renamed", renamed("body", "other"), renamed("other", "body")],
    ["text", "truncated", truncate, added("text")],
    ["rich_text", "truncated", truncate, added("text")],
  ])("a %s field that is %s is searched again only when it is back", async (type, _, gone, back) => {
    await write(`UPDATE precast.fields SET type = '${type}' WHERE name = 'body'; ${insert({ body: "heron" })}`);
    await write(gone);
    expect(await totalOf("/posts/search?q=heron")).toBe(0);
    await write(back);
    expect(await totalOf("/posts/search?q=heron")).toBe(1);
    expect((await read(`/posts/${ID}`)).data).toMatchObject({ body: "heron" });
  });

  test("a field that is no longer multiple takes and searches single values, and no arrays", async () => {
    await write(`INSERT INTO precast.fields (content_type_id, name, position, type, searchable, multiple)
        VALUES (${TYPE}, 'tags', 3, 'select', true, true);
      ${insert({ tags: ["heron"] })}; UPDATE precast.fields SET multiple = false WHERE name = 'tags'`);
    expect(await totalOf("/posts/search?q=heron")).toBe(0);
    await expect(write(`UPDATE precast.entries SET data = '{"tags":["wren"]}'`)).rejects.toThrow(
      'field "tags" must hold a select value',
    );
    await write(`UPDATE precast.entries SET data = '{"tags":"wren"}'`);
    expect(await totalOf("/posts/search?q=wren")).toBe(1);
  });

  test("keep_anew makes totals and search right after writes without triggers", async () => {
    const other = randomUUID();
    await write(`${insert({ title: "Old", body: "<p>heron</p>" })}; ${insert({ title: "Gone", body: "<p>wren</p>" }, other)};
      BEGIN; SET LOCAL session_replication_role = replica;
      DELETE FROM precast.entries WHERE id = '${other}';
      UPDATE precast.entries SET data = '{"title":"New"}', rich = '{"body":"<p>kestrel</p>"}';
      ${insert({ title: "New", body: "<p>kestrel</p>" }, randomUUID())};
      ${insert({ title: "Gone", body: "<p>wren</p>" }, other).replace("'published'", "'draft'")};
      UPDATE precast.fields SET searchable = true WHERE name = 'title'; COMMIT;
      SELECT precast.keep_anew()`);
    expect(await totalOf("/posts?filter[title]=New&per_page=1")).toBe(2);
    expect(await totalOf("/posts?filter[title]=Old&per_page=1")).toBe(0);
    expect(await totalOf("/posts?filter[title][neq]=New")).toBe(0);
    expect(await totalOf("/posts/search?q=kestrel")).toBe(2);
    expect(await totalOf("/posts/search?q=New")).toBe(2);
    for (const word of ["heron", "wren"]) expect(await totalOf(`/posts/search?q=${word}`)).toBe(0);
    expect((await read("/posts?per_page=5")).meta.total).toBe(2);
    expect((await read("/_schemas")).data[0].entry_count).toBe(2);
  });

  test("keep_anew makes totals and search right for a type that was written without triggers", async () => {
    const id = 1_000_000;
    await write(`BEGIN; SET LOCAL session_replication_role = replica;
      INSERT INTO precast.content_types (id, app_id, slug, filterable_fields)
        OVERRIDING SYSTEM VALUE SELECT ${id}, id, 'notes', '{kind}' FROM precast.apps;
      INSERT INTO precast.fields (content_type_id, name, position, type, searchable) VALUES (${id}, 'kind', 1, 'select', true);
      ${insert({ kind: "heron" }).replace(TYPE, String(id))};
      COMMIT;
      SELECT precast.keep_anew()`);
    expect(await totalOf("/notes?filter[kind]=heron&per_page=1")).toBe(1);
    expect(await totalOf("/notes/search?q=heron")).toBe(1);
    await write(insert({ kind: "heron" }, randomUUID()).replace(TYPE, String(id)));
    expect(await totalOf("/notes?filter[kind]=heron&per_page=1")).toBe(2);
  });

  test.each(["REPEATABLE READ", "SERIALIZABLE"])("keep_anew is refused at isolation level %s", async (level) => {
    await write(insert({ title: "Old" }));
    await expect(write(`BEGIN ISOLATION LEVEL ${level}; SELECT precast.keep_anew()`)).rejects.toThrow(
      "can be changed only at READ COMMITTED",
    );
    await write("ROLLBACK");
  });

  test.each(["REPEATABLE READ", "SERIALIZABLE"])("at %s, fields can change only in a new type", async (level) => {
    const change = (slug: string) => `BEGIN ISOLATION LEVEL ${level};
      INSERT INTO precast.content_types (app_id, slug) SELECT id, 'fresh' FROM precast.apps;
      INSERT INTO precast.fields (content_type_id, name, position, type)
        SELECT id, 'kind', 1, 'select' FROM precast.content_types WHERE slug = '${slug}';
      UPDATE precast.content_types SET filterable_fields = '{kind}' WHERE slug = '${slug}';
      COMMIT`;
    await expect(write(change("posts"))).rejects.toThrow(
      `content type "posts": fields and lists of an existing type can be changed only at READ COMMITTED, because ${level} `,
    );
    await write("ROLLBACK");
    const lists = "UPDATE precast.content_types SET filterable_fields = '{}'";
    await expect(write(`BEGIN ISOLATION LEVEL ${level}; ${lists}; COMMIT`)).rejects.toThrow("only at READ COMMITTED");
    await write("ROLLBACK");
    await write(change("fresh"));
    expect(await totalOf("/fresh?filter[kind]=a&per_page=1")).toBe(0);
  });
});

describe("concurrent writers on PostgreSQL", () => {
  let store: Store;
  let first: Client;
  let second: Client;

  beforeAll(async () => {
    store = await openStore("postgres");
    first = new Client({ connectionString: store.url as string });
    second = new Client({ connectionString: store.url as string });
    await Promise.all([first.connect(), second.connect()]);
  });
  afterAll(async () => {
    await Promise.all([first.end(), second.end()]);
    await store.close();
  });
  beforeEach(() => store.database.execute(TYPES));

  const waits =
    "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

  /** Runs `late`, which waits until the first writer commits `early`. Resolves to the error of `late`, or null. */
  const oneAfterTheOther = async (early: string, late: string): Promise<unknown> => {
    await first.query("BEGIN");
    await first.query(early);
    const answer = second.query(late).then(
      () => null,
      (error) => error,
    );
    await expect.poll(async () => (await first.query(waits)).rows[0].count).toBe("1");
    await first.query("COMMIT");
    return answer;
  };

  test("the later of two concurrent upserts of a new entry fails with 40001, and its retry succeeds", async () => {
    const upsert = (word: string) =>
      `${insert({ title: word, body: word })} ON CONFLICT (content_type_id, id) DO UPDATE SET data = excluded.data`;
    expect(await oneAfterTheOther(upsert("heron"), upsert("kestrel"))).toMatchObject({ code: "40001" });
    await second.query(upsert("kestrel"));
    const { rows } = await second.query("SELECT data, rich FROM precast.entries");
    expect(rows).toEqual([{ data: { title: "kestrel" }, rich: { body: "kestrel" } }]);
  });

  test("an upsert of an entry that another transaction is deleting inserts it whole", async () => {
    await first.query(insert({ title: "Old", body: "heron" }));
    const upsert = `${insert({ title: "New", body: "kestrel" })} ON CONFLICT (content_type_id, id) DO UPDATE SET data = excluded.data`;
    expect(await oneAfterTheOther("DELETE FROM precast.entries", upsert)).toBe(null);
    const { rows } = await first.query("SELECT data, rich, t1 FROM precast.entries");
    expect(rows).toEqual([{ data: { title: "New" }, rich: { body: "kestrel" }, t1: "New" }]);
  });

  test("an entry that ON CONFLICT DO NOTHING leaves to another transaction can then be edited", async () => {
    await second.query("BEGIN");
    const given = `${insert({ title: "Late", body: "kestrel" })} ON CONFLICT DO NOTHING`;
    expect(await oneAfterTheOther(insert({ title: "Early", body: "heron" }), given)).toBe(null);
    await second.query(`UPDATE precast.entries SET data = '{"title":"Edited"}'; COMMIT`);
    const { rows } = await first.query("SELECT data, rich FROM precast.entries");
    expect(rows).toEqual([{ data: { title: "Edited" }, rich: { body: "heron" } }]);
  });

  test.each([
    [
      "a searchable field",
      "text",
      { title: "Old", note: "heron" },
      { data: { title: "Old", note: "heron" }, rich: {} },
    ],
    ["a rich text", "rich_text", { title: "Old", note: "heron" }, { data: { title: "Old" }, rich: { note: "heron" } }],
  ])("%s added while an entry gets a value for it stores and searches that value", async (_, type, data, kept) => {
    await first.query(insert({ title: "Old" }));
    const given = `UPDATE precast.entries SET data = ${lit(data)}`;
    const added = `INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
      VALUES (${TYPE}, 'note', 3, '${type}', true)`;
    expect(await oneAfterTheOther(given, added)).toBe(null);
    expect((await first.query("SELECT data, rich FROM precast.entries")).rows).toEqual([kept]);
    const api = await openApiServer(store);
    expect((await ask(api.url, "/api/v1/posts/search?q=heron", { appKey: "a" })).json.meta.total).toBe(1);
    await api.close();
  });

  const addField = (
    name: string,
    type: string,
  ) => `INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
    VALUES (${TYPE}, '${name}', 9, '${type}', ${type !== "number"})`;

  test("two fields that are added concurrently both take effect", async () => {
    expect(await oneAfterTheOther(addField("intro", "rich_text"), addField("weight", "number"))).toBe(null);
    await first.query(insert({ intro: "heron" }));
    expect((await first.query("SELECT data, rich FROM precast.entries")).rows).toEqual([
      { data: {}, rich: { intro: "heron" } },
    ]);
    await expect(first.query(insert({ weight: "light" }, randomUUID()))).rejects.toThrow('"weight" must hold a number');
  });

  test.each(["REPEATABLE READ", "SERIALIZABLE"])("an edit at %s that misses a new field is refused", async (level) => {
    await first.query(insert({ title: "Old" }));
    await second.query(`BEGIN ISOLATION LEVEL ${level}; SELECT count(*) FROM precast.entries`);
    await first.query(addField("intro", "rich_text"));
    const edit = `UPDATE precast.entries SET data = data || '{"intro":"heron"}'`;
    await expect(second.query(edit)).rejects.toMatchObject({ code: "40001" });
    await second.query(`ROLLBACK; ${edit}`);
    expect((await second.query("SELECT data, rich FROM precast.entries")).rows).toEqual([
      { data: { title: "Old" }, rich: { intro: "heron" } },
    ]);
  });

  test("an entry is found by a text too long for the slot that its field is being given", async () => {
    await first.query(addField("slug", "text"));
    const lists = "UPDATE precast.content_types SET filterable_fields = '{title,slug}', sortable_fields = '{slug}'";
    const slug = `zz${"x".repeat(2_500)}`;
    expect(await oneAfterTheOther(lists, insert({ title: "Long", slug }))).toBe(null);
    const api = await openApiServer(store);
    const found = await ask(api.url, "/api/v1/posts?filter[slug][starts_with]=zz", { appKey: "a" });
    expect(found.json.meta.total).toBe(1);
    await api.close();
  });

  test("entries with the first texts too long for a slot wait for an insert, and not for each other", async () => {
    await first.query(`BEGIN; ${insert({ title: "Short" })}`);
    const long = () => insert({ title: "x".repeat(2_500) }, randomUUID());
    const inserted = Promise.all([second.query(long()), store.database.execute(long())]);
    await expect.poll(async () => (await first.query(waits)).rows[0].count).toBe("2");
    await first.query("COMMIT");
    await inserted;
    expect((await first.query("SELECT count(*) FROM precast.entries")).rows).toEqual([{ count: "3" }]);
    expect((await first.query("SELECT map FROM precast.slots")).rows).toEqual([{ map: { long: ["title"] } }]);
  });

  test("keep_anew keeps the total of a type that is added while keep_anew waits", async () => {
    await first.query(`${insert({})}; BEGIN; UPDATE precast.entries SET updated_at = now()`);
    const renewed = second.query("SELECT precast.keep_anew()");
    await expect.poll(async () => (await first.query(waits)).rows[0].count).toBe("1");
    let isAdded = false;
    const added = store.database
      .execute(
        `INSERT INTO precast.content_types (app_id, slug) SELECT id, 'notes' FROM precast.apps;
         ${insert({}, randomUUID()).replace(TYPE, TYPE.replace("posts", "notes"))}`,
      )
      .then(() => {
        isAdded = true;
      });
    await expect.poll(async () => isAdded || (await first.query(waits)).rows[0].count === "2").toBe(true);
    await first.query("COMMIT");
    await Promise.all([renewed, added]);
    const { rows } = await first.query("SELECT sum(change)::text FROM precast.entry_counts GROUP BY content_type_id");
    expect(rows).toEqual([{ sum: "1" }, { sum: "1" }]);
  });

  test("the deletion of a type waits for a statement that adds entries to it and to another type", async () => {
    await first.query(`INSERT INTO precast.content_types (app_id, slug) SELECT id, 'notes' FROM precast.apps`);
    const notes = "(SELECT id FROM precast.content_types WHERE slug = 'notes')";
    const taken = randomUUID();
    await first.query(`BEGIN; ${insert({}, taken).replace(TYPE, notes)}`);
    const added = second.query(`${insert({})}, (${notes}, '${taken}', 'published', '2026-01-20', '{}')`);
    await expect.poll(async () => (await first.query(waits)).rows[0].count).toBe("1");
    const deleted = store.database.execute("DELETE FROM precast.content_types WHERE slug = 'posts'");
    await expect.poll(async () => (await first.query(waits)).rows[0].count).toBe("2");
    await first.query("ROLLBACK");
    await Promise.all([added, deleted]);
    expect((await first.query("SELECT id FROM precast.entries")).rows).toEqual([{ id: taken }]);
  });

  test("an insert into a type that is being deleted waits, then fails with a foreign key violation", async () => {
    const late = insert({ title: "Late" }).replace(TYPE, (await first.query(`SELECT ${TYPE} AS id`)).rows[0].id);
    expect(await oneAfterTheOther("DELETE FROM precast.content_types", late)).toMatchObject({ code: "23503" });
  });

  test("a field that a role adds applies also to entries that row-level security hides from the role", async () => {
    const role = `cms_${Math.random().toString(36).slice(2)}`;
    await first.query(`${insert({ title: "Hidden", intro: "<p>heron</p>" })};
      CREATE ROLE ${role}; GRANT USAGE ON SCHEMA precast TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON precast.content_types, precast.fields, precast.entries TO ${role};
      ALTER TABLE precast.entries ENABLE ROW LEVEL SECURITY;
      CREATE POLICY shown ON precast.entries TO ${role} USING (data ->> 'title' <> 'Hidden')`);
    await first.query(`SET ROLE ${role}; ${addField("intro", "rich_text")}; RESET ROLE`);
    await first.query(`DROP POLICY shown ON precast.entries; ALTER TABLE precast.entries DISABLE ROW LEVEL SECURITY;
      DROP OWNED BY ${role}; DROP ROLE ${role}`);
    expect((await first.query("SELECT data, rich FROM precast.entries")).rows).toEqual([
      { data: { title: "Hidden" }, rich: { intro: "<p>heron</p>" } },
    ]);
  });

  test("standard_conforming_strings = off does not change what is stored", async () => {
    const body = "<p title=a>Žlutý&nbsp;kůň</p><script>no</script> caf&eacute; &#x2019;s";
    const statements = [
      `INSERT INTO precast.fields (content_type_id, name, position, type) SELECT id, 'at', 3, 'datetime' FROM precast.content_types`,
      insert({ title: "1.50", body, at: "2026-01-20T16:30:00.123456+01:00" }),
      insert({ title: "2.50", body }, randomUUID()),
      "UPDATE precast.fields SET type = 'number' WHERE name = 'title'",
      "UPDATE precast.fields SET type = 'text' WHERE name = 'at'",
      `UPDATE precast.entries SET data = data || '{"title": 1.50}' WHERE data ->> 'title' = '2.50'`,
    ];
    const kept = `SELECT data, rich, n1, t1, words FROM precast.entries
      JOIN precast.entry_words USING (content_type_id, id) ORDER BY n1 NULLS FIRST`;
    const writtenWith = async (setting: string) => {
      await store.database.execute(TYPES);
      // A new session each time, because cached plans outlive a change of the setting.
      const writer = new Client({ connectionString: store.url as string });
      await writer.connect();
      try {
        await writer.query(`SET standard_conforming_strings = ${setting}`);
        for (const statement of statements) await writer.query(statement);
        return (await writer.query(kept)).rows;
      } finally {
        await writer.end();
      }
    };
    const written = await writtenWith("off");
    expect(written).toMatchObject([
      { data: { at: "2026-01-20T15:30:00.123+00:00" } },
      { data: { title: 1.5 }, n1: 1.5 },
    ]);
    expect(written).toEqual(await writtenWith("on"));
  });
});
