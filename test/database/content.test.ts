/** Constraints and triggers of the tables refuse invalid content, and the error says why. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_FIELDS } from "../../shared/api/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { ask, ENGINES, openApiServer, openStore, type Store } from "../support/site.ts";

const ID = "0b7e8f52-6c1d-4f0e-9d53-0d2f6a1c9a01";

let store: Store;

beforeAll(async () => {
  store = await openStore("postgres");
  await store.database.execute(`
    INSERT INTO precast.apps (key) VALUES ('a');
    INSERT INTO precast.content_types (app_id, slug) SELECT id, 'posts' FROM precast.apps;
    INSERT INTO precast.fields (content_type_id, name, position, type, multiple, target)
    SELECT id, field.name, place, type, multiple, CASE type WHEN 'relation' THEN 'posts' END
    FROM precast.content_types, (VALUES
      ('title', 1, 'text', false), ('body', 2, 'rich_text', false), ('more', 3, 'json', false), ('tags', 4, 'select', true),
      ('author', 5, 'relation', false), ('cover', 6, 'media', false), ('price', 7, 'number', false), ('day', 8, 'date', false),
      ('seen', 9, 'datetime', false), ('sold', 10, 'boolean', false)) AS field(name, place, type, multiple);
    INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
    SELECT id, '${ID}', 'published', '2026-01-20', '{"title": "One"}' FROM precast.content_types;`);
});
afterAll(() => store.close());

/** Commits, so that checks across rows run too: they are deferred. */
const write = (statement: string) => store.database.execute(statement);

const addField = (name: string, type: string, flag: "searchable" | "multiple" | null = null) =>
  `INSERT INTO precast.fields (content_type_id, name, position, type${flag === null ? "" : `, ${flag}`})
   SELECT id, '${name}', 99, '${type}'${flag === null ? "" : ", true"} FROM precast.content_types`;
const setType = (assignment: string) => `UPDATE precast.content_types SET ${assignment}`;
const setEntry = (assignment: string) => `UPDATE precast.entries SET ${assignment}`;
const setData = (data: string) => setEntry(`data = '${data}'`);

describe("apps, types and fields", () => {
  /** How often the rules of types have been checked, in this transaction and before. */
  const checks = async (session: Session) => {
    await session.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED");
    const calls = "SELECT pg_stat_get_xact_function_calls('precast.refuse_bad_lists(integer)'::regprocedure)::text";
    return Number((await session.query(sql(calls)))[0]?.[0] ?? 0);
  };
  const addFields = (first: number, last: number) =>
    `INSERT INTO precast.fields (content_type_id, name, position, type)
     SELECT id, 'field_' || number, number, 'text' FROM precast.content_types, generate_series(${first}, ${last}) AS number`;
  const undo = new Error("as it was");
  /** Rolls back what it did. */
  const tryOut = (run: (session: Session) => Promise<void>) =>
    expect(
      store.database.transaction("write", async (session) => {
        await session.execute("SET LOCAL track_functions = 'all'");
        await run(session);
        throw undo;
      }),
    ).rejects.toBe(undo);

  test("a type is checked once, however many of its fields a transaction writes, and again when it writes more", () =>
    tryOut(async (session) => {
      const before = await checks(session);
      await session.execute(
        `${addFields(1, 100)}; ${addFields(101, 101)}; ${setType("filterable_fields = '{field_7}'")}`,
      );
      expect((await checks(session)) - before).toBe(1);
      await session.execute(`SAVEPOINT two; ${addFields(102, 103)}`);
      expect((await checks(session)) - before).toBe(2);
      await session.execute(`ROLLBACK TO two; ${setType("slug = 'other'")}`);
      expect((await checks(session)) - before).toBe(3);
      const removed = "DELETE FROM precast.fields WHERE name = 'field_7'";
      await session.execute("SAVEPOINT three");
      await session.execute(removed);
      await expect(checks(session)).rejects.toThrow('filterable_fields cannot hold "field_7"');
      await session.execute("ROLLBACK TO three");
      await expect(session.execute(`SET CONSTRAINTS ALL IMMEDIATE; ${removed}`)).rejects.toThrow("cannot hold");
    }));

  test("a type has at most 1,000 fields", () =>
    tryOut(async (session) => {
      await session.execute(addFields(11, MAX_FIELDS));
      await checks(session);
      await session.execute(addFields(MAX_FIELDS + 1, MAX_FIELDS + 1));
      await expect(checks(session)).rejects.toThrow(
        'content type "posts": has 1001 fields, but at most 1000 are allowed',
      );
    }));

  test.each([
    ["an app key with a dot", "UPDATE precast.apps SET key = 'a.b'", "apps_key_check"],
    ["an app key of 129 characters", `UPDATE precast.apps SET key = '${"k".repeat(129)}'`, "apps_key_check"],
    [
      "a media address without a scheme",
      "UPDATE precast.apps SET media_base_url = 'media'",
      "apps_media_base_url_check",
    ],
    ...["?", "#", " ", "\u0001", "\u009f", "\u00a0", "\u3000", "\ufeff", "\n"].map(
      (character): [string, string, string] => [
        `a media address with ${JSON.stringify(character)}`,
        `UPDATE precast.apps SET media_base_url = 'https://media.example.com/a${character}b'`,
        "media_base_url_has_no_query_fragment_blank_or_control",
      ],
    ),
    ["a slug in upper case", setType("slug = 'Posts'"), "content_types_slug_check"],
    ["a slug of 65 characters", setType(`slug = '${"s".repeat(65)}'`), "content_types_slug_check"],
    ["a per_page of 0", setType("per_page = 0"), "content_types_per_page_check"],
    ["a per_page above 100", setType("per_page = 101"), "content_types_per_page_check"],
    ["a filter on rich text", setType("filterable_fields = '{title,body}'"), 'filterable_fields cannot hold "body"'],
    ["a filter on json", setType("filterable_fields = '{more}'"), 'filterable_fields cannot hold "more"'],
    ["a filter on the id", setType("filterable_fields = '{id}'"), 'filterable_fields cannot hold "id"'],
    ["NULL in filterable_fields", setType("filterable_fields = '{NULL}'"), "filterable_fields cannot hold NULL"],
    ["a sort by a multiple field", setType("sortable_fields = '{tags}'"), 'sortable_fields cannot hold "tags"'],
    ["a sort by a relation", setType("sortable_fields = '{author}'"), 'sortable_fields cannot hold "author"'],
    ["NULL in sortable_fields", setType("sortable_fields = '{NULL}'"), "sortable_fields cannot hold NULL"],
    ["an unknown field in summary_fields", setType("summary_fields = '{x}'"), 'summary_fields cannot hold "x"'],
    ["NULL in summary_fields", setType("summary_fields = '{NULL}'"), "summary_fields cannot hold NULL"],
    [
      "a field named twice in filterable_fields",
      setType("filterable_fields = '{title,title}'"),
      'filterable_fields holds "title" twice',
    ],
    [
      "a nested array in sortable_fields",
      setType("sortable_fields = '{{title},{title}}'"),
      "sortable_fields must be a one-dimensional array",
    ],
    ["a default sort by rich text", setType("default_sort = 'body'"), 'default_sort cannot be "body"'],
    ["a default sort with two minus signs", setType("default_sort = '--title'"), 'default_sort cannot be "--title"'],
    ["a field named id", addField("id", "text"), "fields_name_check"],
    ["a field named published_at", addField("published_at", "text"), "fields_name_check"],
    ["a field named created_at", addField("created_at", "text"), "fields_name_check"],
    ["a field named updated_at", addField("updated_at", "text"), "fields_name_check"],
    ["a field named search", addField("search", "text"), "fields_name_check"],
    ["a field name of 64 characters", addField("f".repeat(64), "text"), "fields_name_check"],
    ["a field name with a capital letter", addField("Title", "text"), "fields_name_check"],
    [
      "a field named like the address of a media field",
      addField("cover_url", "text"),
      'field "cover_url" has the name that is reserved for the address of media field "cover"',
    ],
    ["an unknown field type", addField("x", "colour"), "fields_type_check"],
    ["a relation without a target", addField("x", "relation"), "relations_and_no_others_have_a_target"],
    ["a searchable number", addField("x", "number", "searchable"), "text_rich_text_and_select_can_be_searchable"],
    ["a multiple number", addField("x", "number", "multiple"), "text_select_media_and_relation_can_be_multiple"],
  ])("refuse %s", async (_, statement, message) => {
    await expect(write(statement)).rejects.toThrow(message);
  });
});

test("TRUNCATE of fields that a list names is refused unless the same transaction restores them", async () => {
  await write(setType("summary_fields = '{title}'"));
  await expect(write("TRUNCATE precast.fields")).rejects.toThrow('summary_fields cannot hold "title"');
  await write(`CREATE TEMP TABLE former AS TABLE precast.fields; TRUNCATE precast.fields;
    INSERT INTO precast.fields TABLE former; DROP TABLE former`);
  await write(setType("summary_fields = '{}'"));
});

describe("entries", () => {
  const YEARS = "timestamps_are_in_the_years_0001_to_9999_of_utc";
  test.each([
    ["an unknown status", setEntry("status = 'archived'"), "entries_status_check"],
    [
      "a published entry whose published_at is NULL",
      setEntry("published_at = NULL"),
      "published_entries_have_a_published_at",
    ],
    ["a published_at of infinity", setEntry("published_at = 'infinity'"), YEARS],
    ["a published_at of -infinity", setEntry("published_at = '-infinity'"), YEARS],
    ["a published_at before the year 1", setEntry("published_at = '0044-03-15 BC'"), YEARS],
    ["a created_at that rounds up to the year 10000", setEntry("created_at = '9999-12-31T23:59:59.9996Z'"), YEARS],
    ["an updated_at in the year 0 in UTC", setEntry("updated_at = '0001-01-01T00:00:00+01:00'"), YEARS],
    ["a number in a text field", setData('{"title": 1}'), 'field "title" must hold a text value'],
    ["a text in a number field", setData('{"price": "1"}'), 'field "price" must hold a number value'],
    ["a date that does not exist", setData('{"day": "2026-02-29"}'), 'field "day" must hold a date value'],
    [
      "a datetime without an offset",
      setData('{"seen": "2026-01-20T15:30:00"}'),
      'field "seen" must hold a datetime value',
    ],
    [
      "a datetime in the year 10000 in UTC",
      setData('{"seen": "9999-12-31T23:00:00-01:00"}'),
      'field "seen" must hold a datetime value',
    ],
    ["a relation that is not a UUID", setData('{"author": "x"}'), 'field "author" must hold a relation value'],
    [
      "a single value in a multiple field",
      setData('{"tags": "a"}'),
      'field "tags" must hold an array of select values',
    ],
    [
      "null among the values of a multiple field",
      setData('{"tags": ["a", null]}'),
      'field "tags" must hold an array of select values',
    ],
    ["data that is not an object", setData("[]"), "entries_data_check"],
  ])("refuse %s", async (_, statement, message) => {
    await expect(write(statement)).rejects.toThrow(message);
  });

  test.each([
    ['{"title": 1}', "A text value is a string."],
    ['{"price": "1"}', "A number value is a JSON number such as 12.5."],
    ['{"sold": "yes"}', "A boolean value is true or false."],
    ['{"author": "x"}', "A relation value is the UUID of an entry."],
    ['{"day": "20.1.2026"}', 'A date value is a string such as "2026-01-20".'],
    [
      '{"seen": "2026-01-20T15:30:00"}',
      'A datetime value is a string such as "2026-01-20T15:30:00Z", with Z or an offset.',
    ],
    ['{"tags": "a"}', "A select value is a string."],
  ])("and the hint says what would be right in place of %s", async (data, hint) => {
    await expect(write(setData(data))).rejects.toMatchObject({ hint });
  });
});

test("the earliest and the latest instants that can be stored are answered to the millisecond", async () => {
  const [first, last] = ["0001-01-01T00:00:00.000+00:00", "9999-12-31T23:59:59.999+00:00"];
  await write(
    setEntry(`published_at = '${first}', updated_at = '${last}', data = '{"seen": "9999-12-31T23:59:59.9999Z"}'`),
  );
  const api = await openApiServer(store);
  const { json } = await ask(api.url, `/api/v1/posts/${ID}`, { appKey: "a" });
  await api.close();
  expect(json.data).toMatchObject({ published_at: first, updated_at: last, seen: last });
});

test.each(ENGINES)("the SQL of the README makes an app, a type and an entry that is served (%s)", async (engine) => {
  const readme = readFileSync(new URL("../../shared/schema/README.md", import.meta.url), "utf8");
  const fresh = await openStore(engine);
  for (const [, statements = ""] of readme.matchAll(/^```sql\n(.*?)^```/gms)) await fresh.database.execute(statements);
  const server = await openApiServer(fresh);
  const { json } = await ask(server.url, "/api/v1/posts?filter[category]=news", { appKey: "blog" });
  expect(json).toMatchObject({ data: [{ title: "Hello", category: "news" }], meta: { total: 1 } });
  await server.close();
  await fresh.close();
});
