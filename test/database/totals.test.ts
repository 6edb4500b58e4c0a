/**
 * Totals: triggers count published entries, and those that have a value, as they are written. The sums equal a count of
 * the rows, however the entries are written and by however many writers at once.
 */
import fc from "fast-check";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { buildSite, ENGINES, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const COUNTED =
  "SELECT content_type_id::text, count(*)::text FROM precast.entries WHERE status = 'published' GROUP BY 1";
/** Kept counts, here and below, include those of types that are gone: there are none. */
const KEPT =
  "SELECT content_type_id::text, sum(change)::text FROM precast.entry_counts GROUP BY 1 HAVING sum(change) <> 0";
/** Counts by type, field and value for fields that are counted by value or element, by type and field for others. */
const VALUES_COUNTED = `SELECT type.id || ' ' || field.name || coalesce(' ' || value, ''), count(*)::text
  FROM precast.entries AS e JOIN precast.content_types AS type ON type.id = e.content_type_id
  JOIN precast.fields AS field ON field.content_type_id = type.id AND field.name = ANY (type.filterable_fields),
  LATERAL (SELECT CASE field.type WHEN 'select' THEN e.data ->> field.name
    WHEN 'boolean' THEN (e.data ->> field.name)::boolean::integer::text END AS value) AS read
  WHERE e.status = 'published' AND jsonb_typeof(e.data -> field.name) = CASE field.type
    WHEN 'number' THEN 'number' WHEN 'boolean' THEN 'boolean' ELSE 'string' END AND NOT field.multiple
  GROUP BY 1
  UNION ALL
  SELECT type.id || ' tags ' || tag, count(DISTINCT e.id)::text
  FROM precast.entries AS e JOIN precast.content_types AS type ON type.id = e.content_type_id
  CROSS JOIN jsonb_array_elements_text(CASE jsonb_typeof(e.data -> 'tags') WHEN 'array' THEN e.data -> 'tags' ELSE '[]' END) AS tag
  WHERE e.status = 'published' AND 'tags' = ANY (type.filterable_fields) AND length(tag) <= 500
    AND NOT e.data -> 'tags' @> '[5]'
  GROUP BY type.id, tag`;
const VALUES_KEPT = `SELECT content_type_id || ' ' || coalesce(map -> slot ->> 0, slot) || coalesce(' ' || value, ''), sum(change)::text
  FROM precast.value_counts LEFT JOIN precast.slots USING (content_type_id)
  WHERE (map ? slot) IS NOT FALSE GROUP BY 1 HAVING sum(change) <> 0`;
/** Counts by type, fields and values for two fields that have few values. */
const PAIRS_COUNTED = `SELECT type.id || ' open kind 1 ' || (e.data ->> 'open')::boolean::integer || (e.data ->> 'kind'), count(*)::text
  FROM precast.entries AS e JOIN precast.content_types AS type ON type.id = e.content_type_id
  JOIN precast.fields AS kind ON kind.content_type_id = type.id AND kind.name = 'kind' AND kind.type = 'select'
  WHERE e.status = 'published' AND type.filterable_fields @> '{kind,open}'
    AND jsonb_typeof(e.data -> 'kind') = 'string' AND jsonb_typeof(e.data -> 'open') = 'boolean'
  GROUP BY 1`;
const PAIRS_KEPT = `SELECT content_type_id || ' ' || (map -> split_part(slot, ' ', 1) ->> 0) || ' ' || (map -> split_part(slot, ' ', 2) ->> 0)
    || ' ' || value, sum(change)::text
  FROM precast.value_counts JOIN precast.slots USING (content_type_id)
  WHERE slot LIKE '% %' GROUP BY 1 HAVING sum(change) <> 0`;

const idOf = (number: number) => `0b7e8f52-6c1d-4f0e-9d53-${String(number).padStart(12, "0")}`;
const typeOf = (slug: string) => `(SELECT id FROM precast.content_types WHERE slug = '${slug}')`;
const insert = (slug: string, status: string, ...numbers: readonly number[]) =>
  `INSERT INTO precast.entries (content_type_id, id, status, published_at)
   SELECT ${typeOf(slug)}, id, '${status}', now() FROM unnest('{${numbers.map(idOf).join(",")}}'::uuid[]) AS id
   ON CONFLICT (content_type_id, id) DO UPDATE SET status = excluded.status`;

const slug = fc.constantFrom("one", "two");
const status = fc.constantFrom("draft", "published");
const number = fc.integer({ min: 1, max: 12 });
const tags = fc.constantFrom(["a", "b"], ["b", "a", "b"], ["a", 5], "a", null, ["x".repeat(600), "c"]);
const STATEMENT = fc.oneof(
  fc.tuple(slug, status, fc.uniqueArray(number, { minLength: 1 })).map(([of, as, all]) => insert(of, as, ...all)),
  fc
    .tuple(status, number)
    .map(([as, below]) => `UPDATE precast.entries SET status = '${as}' WHERE id < '${idOf(below)}'`),
  fc.tuple(slug, number).map(
    ([to, one]) => `UPDATE precast.entries SET content_type_id = ${typeOf(to)}
    WHERE id = '${idOf(one)}' AND NOT EXISTS (SELECT FROM precast.entries WHERE content_type_id = ${typeOf(to)} AND id = '${idOf(one)}')`,
  ),
  number.map((above) => `DELETE FROM precast.entries WHERE id > '${idOf(above)}'`),
  fc
    .tuple(fc.constantFrom("a", "b", null), fc.constantFrom(true, false, null), tags, number)
    .map(([kind, open, tags, below]) => {
      const data = JSON.stringify({ kind, open, size: below, name: kind, tags });
      return `UPDATE precast.entries SET data = '${data}' WHERE id < '${idOf(below)}'`;
    }),
  fc.tuple(slug, fc.subarray(["kind", "open", "size", "name", "tags"])).map(([of, names]) => {
    return `UPDATE precast.content_types SET filterable_fields = '{${names.join(",")}}' WHERE slug = '${of}'`;
  }),
  fc
    .constantFrom("text", "select", "number")
    .map((type) => `UPDATE precast.fields SET type = '${type}' WHERE name = 'kind'`),
  fc.constantFrom(
    "UPDATE precast.entries SET data = '{}'",
    "TRUNCATE precast.entries",
    "TRUNCATE precast.content_types CASCADE",
  ),
  slug.map((of) => `DELETE FROM precast.content_types WHERE slug = '${of}'`),
);
/** Rolls back only this statement when it is refused, not the transaction around it. */
const alone = (statement: string) => `DO $$ BEGIN ${statement}; EXCEPTION WHEN OTHERS THEN NULL; END $$`;

const TYPES = `INSERT INTO precast.content_types (app_id, slug, filterable_fields) SELECT id, slug, '{kind,open,size,name,tags}'
  FROM precast.apps CROSS JOIN unnest('{one,two}'::text[]) AS slug ON CONFLICT DO NOTHING;
  INSERT INTO precast.fields (content_type_id, name, type, position, multiple)
  SELECT id, field.name, field.type, field.position, field.name = 'tags' FROM precast.content_types CROSS JOIN (VALUES ('kind', 'select', 1),
    ('open', 'boolean', 2), ('size', 'number', 3), ('name', 'text', 4), ('tags', 'select', 5)) AS field(name, type, position)
  ON CONFLICT DO NOTHING`;

/**
 * Rows of value_counts that the transaction has read. May include reads of earlier transactions of the connection,
 * because PostgreSQL flushes those once a second.
 */
async function countsRead(query: Session["query"]): Promise<number> {
  const [[read] = []] = await query(
    sql(
      `SELECT (seq_tup_read + idx_tup_fetch)::text FROM pg_stat_xact_user_tables WHERE relid = 'precast.value_counts'::regclass`,
    ),
  );
  return Number(read);
}

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;

  beforeAll(async () => {
    store = await openStore(engine, { connections: 4 });
    await store.database.query(sql("INSERT INTO precast.apps (key) VALUES ('shop')"));
  });
  afterAll(() => store.close());

  const rows = async (text: string) => new Map((await store.database.query(sql(text))) as [string, string][]);
  const agree = async () => {
    expect(await rows(KEPT)).toEqual(await rows(COUNTED));
    expect(await rows(VALUES_KEPT)).toEqual(await rows(VALUES_COUNTED));
    expect(await rows(PAIRS_KEPT)).toEqual(await rows(PAIRS_COUNTED));
  };

  test("random statements in committed and rolled-back transactions leave the totals right", async () => {
    const transaction = fc.record({
      statements: fc.array(STATEMENT, { minLength: 1, maxLength: 6 }),
      commits: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(transaction, { minLength: 1, maxLength: 4 }), async (transactions) => {
        for (const { statements, commits } of transactions) {
          await store.database.execute(TYPES);
          const script = ["BEGIN", ...statements.map(alone), commits ? "COMMIT" : "ROLLBACK"].join(";\n");
          await store.database.execute(script);
          await agree();
        }
      }),
      { numRuns: 40, seed: 7 },
    );
  });

  test("counter tables stay below 150 rows through 240 statements, and the totals are right", async () => {
    await store.database.execute(`TRUNCATE precast.entries; ${TYPES}`);
    await store.database.execute("UPDATE precast.content_types SET filterable_fields = '{kind,open}'");
    for (let turn = 1; turn <= 120; turn++) {
      await store.database.execute(insert("one", "published", turn));
      await store.database.execute(`UPDATE precast.entries SET data = '{"kind": "${"ab"[turn % 2]}"}'`);
    }
    await agree();
    for (const table of ["entry_counts", "value_counts"]) {
      const [[held] = []] = await store.database.query(sql(`SELECT count(*)::text FROM precast.${table}`));
      expect(Number(held)).toBeLessThan(150);
    }
    await store.database.execute("TRUNCATE precast.entries");
    await agree();
  });

  test.each([
    ["", ""],
    [", also when the planner estimates that there are none", "relpages = 20, reltuples = 0"],
  ])("edits of a field that has as many values as entries read few counter rows%s", async (_, belief) => {
    const many = 2_000;
    await store.database.execute(`TRUNCATE precast.entries; ${TYPES}`);
    await store.database.execute("UPDATE precast.content_types SET filterable_fields = '{kind,open}'");
    if (belief !== "")
      await store.database.execute(`UPDATE pg_class SET ${belief} WHERE oid = 'precast.value_counts'::regclass`);
    const { read, kept } = await store.database.transaction("write", async ({ execute, query }) => {
      const before = await countsRead(query);
      await execute(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
        SELECT ${typeOf("one")}, gen_random_uuid(), 'published', now(), jsonb_build_object('kind', 'k' || n)
        FROM generate_series(1, ${many}) AS n`);
      for (let turn = 1; turn <= 250; turn++) {
        const data = `jsonb_build_object('kind', 'new ${turn}')`;
        await execute(`UPDATE precast.entries SET data = ${data} WHERE data ->> 'kind' = 'k${turn}'`);
      }
      const read = (await countsRead(query)) - before;
      const held = await query(
        sql("SELECT count(*)::text, sum(change)::text FROM precast.value_counts WHERE value IS NOT NULL"),
      );
      return { read, kept: held[0] ?? [] };
    });
    // New rows are added up about every hundred edits, and rows from before are left alone.
    expect(read).toBeLessThan(5 * many);
    expect(Number(kept[0])).toBeLessThan(many + 250);
    expect(kept[1]).toBe(String(many));
    await agree();
  });
});

describe("concurrent writers", () => {
  let store: Store;
  let client: Client;

  beforeEach(async () => {
    store = await openStore("postgres");
    await store.database.execute(`INSERT INTO precast.apps (key) VALUES ('shop'); ${TYPES}`);
    client = new Client({ connectionString: store.url as string });
    await client.connect();
  });
  afterEach(async () => {
    await client.end();
    await store.close();
  });

  const expectRight = async (total: number) => {
    const rows = (text: string) => store.database.query(sql(text));
    const kept = await rows(KEPT);
    expect(kept).toEqual(await rows(COUNTED));
    expect(kept.map(([, count]) => count)).toEqual(total === 0 ? [] : [String(total)]);
    expect(new Map((await rows(VALUES_KEPT)) as [string, string][])).toEqual(
      new Map((await rows(VALUES_COUNTED)) as [string, string][]),
    );
  };

  test("do not wait for an open transaction, and the total is right", async () => {
    await client.query(`BEGIN; ${insert("one", "published", 1)}`);
    await Promise.all(
      [1, 2, 3, 4].map(async (writer) => {
        const client = new Client({ connectionString: store.url as string });
        await client.connect();
        // Half of the writers have one snapshot for each transaction, the others one for each statement.
        const level = writer % 2 === 0 ? "REPEATABLE READ" : "READ COMMITTED";
        await client.query(`SET default_transaction_isolation = '${level}'`);
        for (let turn = 1; turn <= 150; turn++) await client.query(insert("one", "published", writer * 1_000 + turn));
        await client.end();
      }),
    );
    await client.query("COMMIT");
    await expectRight(601);
    // Writers at REPEATABLE READ do not add up counter rows: the next build does when more than twenty are left.
    await buildSite(store);
    await expectRight(601);
    const [rows] = await store.database.query(sql("SELECT count(*)::text FROM precast.entry_counts"));
    expect(Number(rows?.[0])).toBeLessThanOrEqual(20);
  });

  test("do not wait for a transaction that has added up counter rows", async () => {
    const insertEach = (count: number) => `DO $$ BEGIN FOR n IN 1..${count} LOOP
      INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
        VALUES (${typeOf("one")}, gen_random_uuid(), 'published', now(), '{"kind": "a", "size": 5}');
    END LOOP; END $$`;
    // Leaves rows that have been added up, and rows that have not.
    await store.database.execute(insertEach(130));
    await client.query(`BEGIN; ${insertEach(100)}`);
    await store.database.execute(`BEGIN; SET LOCAL lock_timeout = '1s'; ${insertEach(100)}; COMMIT`);
    await client.query("COMMIT");
    await expectRight(330);
  });

  test("change a type's lists while a build adds up counter rows, and the totals are right", async () => {
    for (let turn = 1; turn <= 30; turn++)
      await store.database.execute(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
        VALUES (${typeOf("one")}, '${idOf(turn)}', 'published', now(), '{"kind": "a", "open": true, "size": 5}')`);
    await client.query("BEGIN; SELECT precast.fold_crowded()");
    const recounted = store.database.execute(
      "UPDATE precast.content_types SET filterable_fields = '{kind,open}' WHERE slug = 'one'",
    );
    const waits = `SELECT count(*)::text FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until("the recount to wait", async () => Number((await client.query(waits)).rows[0].count) > 0);
    await client.query("COMMIT");
    await recounted;
    await expectRight(30);
  });

  test("leave no counts behind TRUNCATE in a transaction that does not see their entries", async () => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM precast.entries");
    await store.database.execute(insert("one", "published", 1, 2));
    await client.query("TRUNCATE precast.entries; COMMIT");
    await expectRight(0);
  });
});
