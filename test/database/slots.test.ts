/**
 * Slots are indexed columns that all types share and that serve filters and sorts. Answers stay right for every writer,
 * also when the lists, the fields or the values change while a server runs.
 */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { MatchCondition } from "../../shared/api/filter.ts";
import { NO_SLOTS } from "../../shared/sql/columns.ts";
import { findIndex, testSql } from "../../shared/sql/conditions.ts";
import { sql, type Value } from "../../shared/sql/query.ts";
import { GOODS, ID, KEY } from "../support/goods.ts";
import { type ApiServer, ENGINES, loadBundles, openApiServer, openStore, type Store } from "../support/site.ts";
import { fieldOf } from "../support/types.ts";
import { until } from "../support/until.ts";

const TITLE = fieldOf("title", "text");
const LONG = "x".repeat(3_000);
const id = (number: number) => ID.slice(0, -2) + String(number).padStart(2, "0");

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  /** A server that runs all the time, without a tree. */
  let api: ApiServer;

  beforeAll(async () => {
    store = await openStore(engine, { connections: 4 });
    await loadBundles(store, [GOODS]);
    api = await openApiServer(store);
  });
  afterAll(async () => {
    expect(api.errors).toEqual([]);
    await api.close();
    await store.close();
  });

  const run = (text: string) => store.database.query(sql(text));
  const map = async () => JSON.parse((await run("SELECT map::text FROM precast.slots"))[0]?.[0] ?? "") as object;
  const titles = async (query: string): Promise<string[]> => {
    const got = await api.get(`/api/v1/goods?per_page=50&${query}`, { appKey: KEY });
    expect(got.status).toBe(200);
    const found = got.json.data.map(({ title }: { title: string | null }) => title?.slice(0, 8) ?? null);
    expect(got.json.meta.total).toBe(found.length);
    return found;
  };
  const add = (number: number, data: object) =>
    store.database.query(
      sql(
        `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
         SELECT id, $1::uuid, 'published', '2026-01-21T00:00Z', $2::jsonb FROM precast.content_types`,
        [id(number), JSON.stringify(data)],
      ),
    );

  test("a filterable and sortable field has a slot, and filters and sorts on it find its entries", async () => {
    expect(await map()).toEqual({ t1: ["title", "text"] });
    expect(await titles("filter[title]=lamp")).toEqual(["lamp"]);
    expect(await titles("sort=-title")).toEqual(["table", "lamp", "chair"]);
  });

  test("a filter on a field that becomes filterable finds entries written before", async () => {
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, 'price', 1, 'number' FROM precast.content_types`);
    await add(11, { title: "desk", price: 5 });
    await add(12, { title: "bed", price: 50.5 });
    await run(
      "UPDATE precast.content_types SET filterable_fields = '{title,price}', sortable_fields = '{title,price}'",
    );
    expect(await map()).toEqual({ n1: ["price", "number"], t1: ["title", "text"] });
    expect(await titles("filter[price]=5")).toEqual(["desk"]);
    expect(await titles("filter[price][gt]=5")).toEqual(["bed"]);
    expect(await titles("filter[price][neq]=5&sort=title")).toEqual(["bed", "chair", "lamp", "table"]);
    expect(await titles("sort=-price")).toEqual(["bed", "desk", "chair", "lamp", "table"]);
  });

  test("the pages of a sort list entries with a value, then those without, each entry once", async () => {
    const pages = await Promise.all(
      [1, 2, 3, 4].map((page) => api.get(`/api/v1/goods?per_page=2&page=${page}&sort=price`, { appKey: KEY })),
    );
    const found = pages.map((page) => page.json.data.map(({ title }: { title: string }) => title));
    expect(found).toEqual([["desk", "bed"], ["chair", "lamp"], ["table"], []]);
    expect(pages.map((page) => page.json.meta.total)).toEqual([5, 5, 5, 5]);
  });

  test("a filter finds the value that an entry has, whichever columns a statement writes", async () => {
    await run(`UPDATE precast.entries SET data = '{}', rich = data || '{"price": 9}' WHERE data ->> 'title' = 'chair'`);
    expect(await titles("filter[price]=9")).toEqual(["chair"]);
    for (const written of ["n1 = 5", "t1 = 'desk'", "texts = 'desk'"]) {
      await run(`UPDATE precast.entries SET ${written} WHERE data ->> 'title' = 'chair'`);
      expect(await titles("filter[price]=9&filter[title][contains]=chair")).toEqual(["chair"]);
    }
    await run("UPDATE precast.entries SET data = data - 'price' WHERE data ->> 'title' = 'chair'");
    expect(await titles("filter[price]=9")).toEqual([]);
  });

  test("filters and sorts follow a field that changes its type", async () => {
    await run("UPDATE precast.fields SET type = 'text' WHERE name = 'price'");
    expect(await map()).toEqual({ t1: ["title", "text"], t2: ["price", "text"] });
    expect(await titles("filter[price]=5")).toEqual([]);
    await run(`UPDATE precast.entries SET data = data || '{"price": "5"}' WHERE data ->> 'title' = 'lamp'`);
    expect(await titles("filter[price]=5")).toEqual(["lamp"]);
    expect(await titles("sort=price")).toEqual(["lamp", "desk", "bed", "chair", "table"]);
    await run("UPDATE precast.fields SET type = 'number' WHERE name = 'price'");
    expect(await titles("filter[price]=5")).toEqual(["desk"]);
  });

  test("a value that no longer fits its field is answered as null, with and without populate", async () => {
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, 'parts', 2, 'json' FROM precast.content_types`);
    await add(17, { title: "shelf", parts: [1, 2] });
    await run("UPDATE precast.fields SET type = 'relation', multiple = true, target = 'goods' WHERE name = 'parts'");
    const shown = async (target: string) => (await api.get(`/api/v1/goods/${target}`, { appKey: KEY })).json.data.parts;
    expect(await shown(id(17))).toBeNull();
    expect(await shown(`${id(17)}?populate=parts`)).toBeNull();
    await run(`UPDATE precast.entries SET data = data || '{"parts": ["${id(11)}"]}' WHERE data ->> 'title' = 'shelf'`);
    expect(await shown(id(17))).toEqual([id(11)]);
    expect(await shown(`${id(17)}?populate=parts`)).toMatchObject([{ id: id(11), title: "desk", parts: null }]);
    await run("DELETE FROM precast.entries WHERE data ->> 'title' = 'shelf'");
    await run("DELETE FROM precast.fields WHERE name = 'parts'");
  });

  test("contains matches anywhere in a text, starts_with only at its beginning", async () => {
    await add(16, { title: "sofa\n1lamp 100%_\\" });
    expect(await titles("filter[title][starts_with]=lamp")).toEqual(["lamp"]);
    expect(await titles("filter[title][starts_with]=1lamp")).toEqual([]);
    expect(await titles("filter[title][contains]=LAMP")).toEqual(["sofa\n1la", "lamp"]);
    for (const part of ["a\n1L", "0%_\\", "%_", "\\", "_"])
      expect(await titles(`filter[title][contains]=${encodeURIComponent(part)}`)).toEqual(["sofa\n1la"]);
    // A carriage return is not a line feed, although the shared index does not tell them apart.
    expect(await titles(`filter[title][starts_with]=${encodeURIComponent("SOFA\n1")}`)).toEqual(["sofa\n1la"]);
    expect(await titles(`filter[title][starts_with]=${encodeURIComponent("SOFA\r1")}`)).toEqual([]);
    expect(await titles(`filter[title][contains]=${encodeURIComponent("a\r1L")}`)).toEqual([]);
    await run("DELETE FROM precast.entries WHERE data ->> 'title' LIKE 'sofa%'");
  });

  // The embedded database takes several times as long, and has the same rules of order.
  const prefixes = engine === "postgres" ? ["la", "k", "i", "9", "s 1", "Q", "rz", "a ", "0"] : ["la", "9", "s 1"];
  test.each(prefixes)("%j begins one range of texts in the order of titles", async (text) => {
    const values: Value[] = [];
    const slots = { ...NO_SLOTS, slotOf: () => "t1" };
    const condition: MatchCondition = { kind: "match", column: TITLE, operator: "starts_with", text };
    const tested = testSql(condition, slots, (value) => {
      values.push(value);
      return `$${values.length}`;
    });
    expect(findIndex(condition, slots)).toBe("ordered");
    const wrong = await store.database.query(
      sql(
        `SELECT n::text, e.t1 FROM generate_series(1, 131071) AS n,
          unnest(ARRAY['${text}' || chr(n) || 'x', upper('${text}') || chr(n), chr(n) || 'x']) AS written,
          LATERAL (SELECT written COLLATE "und-x-icu" AS t1) AS e
        WHERE n NOT BETWEEN 55296 AND 57343 AND (${tested}) <> starts_with(lower(e.t1), lower('${text}')) LIMIT 5`,
        values,
      ),
    );
    expect(wrong).toEqual([]);
  });

  test("a text too long for an index is stored, filtered and sorted like any other", async () => {
    await add(13, { title: `lamp${LONG}` });
    expect(await map()).toMatchObject({ long: ["title"] });
    expect(await titles("sort=title")).toEqual(["bed", "chair", "desk", "lamp", "lampxxxx", "table"]);
    expect(await titles("filter[title]=lamp")).toEqual(["lamp"]);
    expect(await titles(`filter[title]=lamp${LONG}`)).toEqual(["lampxxxx"]);
    expect(await titles("filter[title][starts_with]=LAMP")).toEqual(["lampxxxx", "lamp"]);
  });

  test("a field with a text too long for an index is filtered right from the moment at which it becomes filterable", async () => {
    const [[lists = "{}"] = []] = await run("SELECT filterable_fields::text FROM precast.content_types");
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, 'story', 9, 'text' FROM precast.content_types`);
    await add(19, { title: "stool", story: LONG });
    await run("UPDATE precast.content_types SET filterable_fields = filterable_fields || '{story}'");
    expect(await titles(`filter[story]=${LONG}`)).toEqual(["stool"]);
    await run(
      `UPDATE precast.content_types SET filterable_fields = '${lists}'; DELETE FROM precast.fields WHERE name = 'story'`,
    );
    await run("DELETE FROM precast.entries WHERE data ->> 'title' = 'stool'");
  });

  test("a sortable field whose texts are short again gets its slot back as doctor says, though others wait for one", async () => {
    const [[sortable = "{}", filterable = "{}"] = []] = await run(
      "SELECT sortable_fields::text, filterable_fields::text FROM precast.content_types",
    );
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, field, 9, 'text' FROM precast.content_types, unnest('{tale,w1,w2,w3,w4,w5,w6,w7,w8}'::text[]) AS field`);
    await run(`UPDATE precast.content_types SET sortable_fields = sortable_fields || '{tale}',
      filterable_fields = filterable_fields || '{w1,w2,w3,w4,w5,w6,w7,w8}'`);
    await add(19, { title: "stool", tale: LONG });
    expect(await map()).toMatchObject({ long: expect.arrayContaining(["tale"]) });
    await run("UPDATE precast.entries SET data = data || '{\"tale\": \"short\"}' WHERE data ->> 'title' = 'stool'");
    await run("UPDATE precast.slots SET map = jsonb_set(map, '{long}', (map -> 'long') - 'tale')");
    await run("SELECT precast.assign_slots(content_type_id) FROM precast.slots");
    expect(Object.values(await map())).toContainEqual(["tale", "text"]);
    expect(await titles("filter[title]=stool&sort=tale")).toEqual(["stool"]);
    await run("DELETE FROM precast.entries WHERE data ->> 'title' = 'stool'");
    await run(`UPDATE precast.content_types SET sortable_fields = '${sortable}', filterable_fields = '${filterable}';
      DELETE FROM precast.fields WHERE name = 'tale' OR name LIKE 'w_'`);
  });

  test("a number gets a slot also under the name of a former field whose texts were too long for one", async () => {
    const [[lists = "{}"] = []] = await store.database.query(
      sql("SELECT sortable_fields::text FROM precast.content_types"),
    );
    await run(
      `INSERT INTO precast.fields (content_type_id, name, position, type) SELECT id, 'story', 9, 'text' FROM precast.content_types`,
    );
    await run("UPDATE precast.content_types SET sortable_fields = sortable_fields || '{story}'");
    await add(19, { title: "stool", story: LONG });
    expect(await map()).toMatchObject({ long: expect.arrayContaining(["story"]) });
    await run(
      `UPDATE precast.content_types SET sortable_fields = '${lists}'; DELETE FROM precast.fields WHERE name = 'story'`,
    );
    await run(
      `INSERT INTO precast.fields (content_type_id, name, position, type) SELECT id, 'story', 9, 'number' FROM precast.content_types`,
    );
    await run("UPDATE precast.content_types SET sortable_fields = sortable_fields || '{story}'");
    expect(Object.values(await map())).toContainEqual(["story", "number"]);
    await run(
      `UPDATE precast.content_types SET sortable_fields = '${lists}'; DELETE FROM precast.fields WHERE name = 'story'`,
    );
    await run("DELETE FROM precast.entries WHERE data ->> 'title' = 'stool'");
  });

  test("filters on a multiple field find and count entries with and without an element", async () => {
    const filter = (names: string) => run(`UPDATE precast.content_types SET filterable_fields = ${names}`);
    const sorted = async (query: string) => (await titles(query)).sort();
    const before = await titles("");
    const long = "y".repeat(600);
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, 'marks', 3, 'json' FROM precast.content_types`);
    for (const [index, marks] of [["a", "b"], ["b", "b"], ["b", long], ["a", 5], "a"].entries())
      await add(21 + index, { title: `mark ${index}`, marks });
    await run("UPDATE precast.fields SET type = 'select', multiple = true WHERE name = 'marks'");
    await filter("filterable_fields || '{marks}'");
    expect(await titles("filter[marks]=b&sort=-title")).toEqual(["mark 2", "mark 1", "mark 0"]);
    expect(await titles("filter[marks]=b&sort=title")).toEqual(["mark 0", "mark 1", "mark 2"]);
    expect(await sorted("filter[marks]=b")).toEqual(["mark 0", "mark 1", "mark 2"]);
    expect(await titles("filter[marks]=a")).toEqual(["mark 0"]);
    expect(await titles(`filter[marks]=${long}`)).toEqual(["mark 2"]);
    expect(await sorted("filter[marks][in]=a,b")).toEqual(["mark 0", "mark 1", "mark 2"]);
    expect(await sorted("filter[marks][neq]=b")).toEqual([...before, "mark 3", "mark 4"].sort());
    expect(await sorted("filter[marks][nin]=a,b")).toEqual([...before, "mark 3", "mark 4"].sort());
    const page = await api.get("/api/v1/goods?filter[marks]=b&sort=title&per_page=2&page=2", { appKey: KEY });
    expect(page.json).toMatchObject({ data: [{ title: "mark 2" }], meta: { total: 3, last_page: 2 } });
    await run("UPDATE precast.fields SET multiple = false WHERE name = 'marks'");
    expect(await titles("filter[marks]=a")).toEqual(["mark 4"]);
    expect(await titles("filter[marks]=b")).toEqual([]);
    await run("DELETE FROM precast.entries WHERE data ->> 'title' LIKE 'mark %'");
    await filter("array_remove(filterable_fields, 'marks')");
    await run("DELETE FROM precast.fields WHERE name = 'marks'");
  });

  test("fields beyond the number of slots can be filtered and sorted too", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `field_${index}`);
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT type.id, extra.name, 10, 'select' FROM precast.content_types AS type, unnest('{${names.join(",")}}'::text[]) AS extra(name)`);
    await run(
      `UPDATE precast.content_types SET filterable_fields = '{${names.join(",")}}', sortable_fields = '{${names.join(",")}}'`,
    );
    await add(14, { title: "shelf", ...Object.fromEntries(names.map((name) => [name, "red"])) });
    for (const name of names) {
      expect(await titles(`filter[${name}]=red`)).toEqual(["shelf"]);
      expect((await titles(`sort=${name}`))[0]).toBe("shelf");
    }
    // An index entry can hold each of these values, but not all of them together.
    const noise = (name: string) => createHash("shake256", { outputLength: 300 }).update(name).digest("hex");
    await add(15, { title: "bench", ...Object.fromEntries(names.map((name) => [name, noise(name)])) });
    for (const name of names) {
      expect(await titles(`filter[${name}]=${noise(name)}`)).toEqual(["bench"]);
      expect(await titles(`filter[${name}][in]=${noise(name)},red&sort=-${name}`)).toHaveLength(2);
    }
  });

  test("each of six numbers and eight texts with a slot finds its own values", async () => {
    const [[lists = "{}"] = []] = await run("SELECT filterable_fields::text FROM precast.content_types");
    const texts = Array.from({ length: 8 }, (_, index) => `text_${index}`);
    const numbers = Array.from({ length: 6 }, (_, index) => `number_${index}`);
    await run("UPDATE precast.content_types SET filterable_fields = '{}', sortable_fields = '{}'");
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT type.id, extra.name, 10, split_part(extra.name, '_', 1)
      FROM precast.content_types AS type, unnest('{${[...texts, ...numbers, "number_6"].join(",")}}'::text[]) AS extra(name)`);
    await run(`UPDATE precast.content_types SET filterable_fields = '{${[...texts, ...numbers].join(",")}}'`);
    for (const [index, title] of ["shelf", "stool"].entries()) {
      const values = numbers.map((name, place) => [name, 10 * place + index] as const);
      await add(25 + index, {
        title,
        ...Object.fromEntries([...texts.map((name) => [name, `OWN ${name} ${title}`]), ...values]),
      });
    }
    for (const [place, name] of numbers.entries()) {
      expect(await titles(`filter[${name}]=${10 * place}`)).toEqual(["shelf"]);
      expect(await titles(`filter[${name}][gt]=${10 * place}`)).toEqual(["stool"]);
    }
    for (const name of texts) {
      expect(await titles(`filter[${name}][contains]=${name}%20st`)).toEqual(["stool"]);
      expect(await titles(`filter[${name}][starts_with]=own%20${name}%20sh`)).toEqual(["shelf"]);
    }
    for (const name of [...numbers, "number_6"]) {
      await run(`UPDATE precast.entries SET data = data || '{"${name}": 7.50}' WHERE data ->> 'title' = 'stool'`);
      expect(await run(`SELECT data ->> '${name}' FROM precast.entries WHERE data ->> 'title' = 'stool'`)).toEqual([
        ["7.5"],
      ]);
    }
    await run(`UPDATE precast.content_types SET filterable_fields = '${lists}'`);
    await run("DELETE FROM precast.fields WHERE name LIKE 'text!_%' ESCAPE '!' OR name LIKE 'number!_%' ESCAPE '!'");
    await run("DELETE FROM precast.entries WHERE data ->> 'title' = 'stool' OR data ? 'number_0'");
  });

  test("two filters on fields with few values find and count entries that match both, long values too", async () => {
    const names = ["field_0", "field_1", "field_2", "field_3", "field_4", "field_5", "field_6"];
    const long = "l".repeat(501);
    await run("DELETE FROM precast.entries WHERE data ->> 'title' = 'bench'");
    await add(17, { title: "stool", ...Object.fromEntries(names.map((name) => [name, "1 red"])) });
    await add(18, { title: "couch", ...Object.fromEntries(names.map((name) => [name, long])) });
    for (const [index, one] of names.entries())
      for (const other of names.slice(index + 1)) {
        expect(await titles(`filter[${one}]=red&filter[${other}]=red`)).toEqual(["shelf"]);
        expect(await titles(`filter[${other}]=1%20red&filter[${one}]=1%20red`)).toEqual(["stool"]);
        expect(await titles(`filter[${one}]=red&filter[${other}]=1%20red`)).toEqual([]);
        expect(await titles(`filter[${one}]=${long}&filter[${other}]=${long}`)).toEqual(["couch"]);
        expect(await titles(`filter[${one}][in]=red,1%20red,red,${long}&filter[${other}]=red`)).toEqual(["shelf"]);
        expect(await titles(`filter[${one}]=red&filter[${other}][neq]=red`)).toEqual([]);
        expect(await titles(`filter[${one}][neq]=1%20red&filter[${other}]=red`)).toEqual(["shelf"]);
        expect(await titles(`filter[${one}]=red&filter[${one}]=red`)).toEqual(["shelf"]);
      }
    await run("DELETE FROM precast.entries WHERE data ->> 'title' IN ('stool', 'couch')");
  });

  test("filling slots again does not mark entries as changed", async () => {
    const stamps = () => run("SELECT id::text, changed_in::text FROM precast.entries ORDER BY id");
    const before = await stamps();
    await run("UPDATE precast.content_types SET filterable_fields = '{title}'");
    await run("UPDATE precast.content_types SET filterable_fields = '{title,price}', sortable_fields = '{price}'");
    expect(await stamps()).toEqual(before);
    expect(await titles("filter[price]=5")).toEqual(["desk"]);
  });
});

describe("an entry that is not committed when its type changes", () => {
  let store: Store;
  let api: ApiServer;
  beforeAll(async () => {
    store = await openStore("postgres", { connections: 4 });
    await loadBundles(store, [GOODS]);
    api = await openApiServer(store);
  });
  afterAll(async () => {
    await api.close();
    await store.close();
  });
  const run = (text: string) => store.database.query(sql(text));

  /** Inserts an entry, starts `change` before the commit, and commits once the change waits or is done. */
  async function changeMeanwhile(number: number, data: object, change: string): Promise<void> {
    let commit = () => {};
    const decided = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let wrote = () => {};
    const written = new Promise<void>((resolve) => {
      wrote = resolve;
    });
    const insert = `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
      SELECT id, '${id(number)}', 'published', now(), '${JSON.stringify(data)}' FROM precast.content_types`;
    const writer = store.database.transaction("write", async (session) => {
      // An insert that is taken back holds the change up no longer.
      await session.execute(`SAVEPOINT before; ${insert}; ROLLBACK TO SAVEPOINT before`);
      await session.query(sql(insert));
      wrote();
      await decided;
    });
    await written;
    // Changes that do not affect how entries are stored do not wait.
    await run("UPDATE precast.content_types SET name = 'Others'");
    await run("UPDATE precast.fields SET label = 'Other', position = position + 1");
    let changed = false;
    const changing = run(change).finally(() => {
      changed = true;
    });
    const waits = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query = $1`;
    await until(
      "the change to wait, or to be done",
      async () => changed || (await store.database.query(sql(waits, [change]))).length > 0,
    );
    commit();
    await Promise.all([writer, changing]);
  }

  test("is found by a filter that the change adds", async () => {
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, 'price', 1, 'number' FROM precast.content_types`);
    const change = "UPDATE precast.content_types SET filterable_fields = '{price}'";
    await changeMeanwhile(15, { title: "late", price: 77 }, change);
    const got = await api.get("/api/v1/goods?filter[price]=77&per_page=5", { appKey: KEY });
    expect(got.json.data).toMatchObject([{ title: "late" }]);
  });

  test("is stored and searched as the rich text field that the change adds requires", async () => {
    const change = `INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
      SELECT id, 'note', 2, 'rich_text', true FROM precast.content_types`;
    await changeMeanwhile(16, { title: "later", note: "<b>mar</b>ginal" }, change);
    const [[data, rich] = []] = await run(`SELECT data::text, rich::text FROM precast.entries WHERE id = '${id(16)}'`);
    expect([data, rich]).toEqual(['{"title": "later"}', '{"note": "<b>mar</b>ginal"}']);
    const got = await api.get("/api/v1/goods/search?q=marginal", { appKey: KEY });
    expect(got.json.data).toMatchObject([{ title: "later" }]);
  });
});

test("an entry can be edited while a change of its type waits, and both succeed", async () => {
  const store = await openStore("postgres", { connections: 4 });
  onTestFinished(() => store.close());
  await loadBundles(store, [GOODS]);
  const api = await openApiServer(store);
  onTestFinished(() => api.close());
  const run = (text: string) => store.database.query(sql(text));
  await run(`INSERT INTO precast.fields (content_type_id, name, position, type)
    SELECT id, 'price', 1, 'number' FROM precast.content_types`);
  const ids = (await run("SELECT id::text FROM precast.entries ORDER BY ctid")).map(([id]) => id as string);

  // The change waits for the first entry, which another transaction holds, and has not reached the last one.
  const holder = await holdEntry(store, ids[0] as string);
  const change = "UPDATE precast.content_types SET filterable_fields = '{title}', sortable_fields = '{price}'";
  const changing = run(change);
  const waits = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query = $1`;
  await until("the change to wait", async () => (await store.database.query(sql(waits, [change]))).length > 0);
  const edit = `UPDATE precast.entries SET data = '{"title": "edited", "price": 9}' WHERE id = '${ids.at(-1)}'`;
  await run(edit);
  await holder.release();
  await changing;

  const got = await api.get("/api/v1/goods?filter[title]=edited&sort=-price&per_page=5", { appKey: KEY });
  expect(got.json.data).toMatchObject([{ id: ids.at(-1), price: 9 }]);
});

/** Locks an entry in a transaction until `release`. */
async function holdEntry({ database }: Store, id: string): Promise<{ release: () => Promise<void> }> {
  let free = () => {};
  const released = new Promise<void>((resolve) => {
    free = resolve;
  });
  let over: Promise<void> = Promise.resolve();
  await new Promise<void>((locked, failed) => {
    over = database.transaction("write", async (session) => {
      await session.query(sql("SELECT FROM precast.entries WHERE id = $1::uuid FOR UPDATE", [id]));
      locked();
      await released;
    });
    over.catch(failed);
  });
  return {
    release: async () => {
      free();
      await over;
    },
  };
}
