/** A transaction that fills an empty database may build the indexes after the rows; nobody else loses an index by it. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { importBundle } from "../../cli/commands/import.ts";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { writeBundle } from "../support/content.ts";
import { GOODS, KEY } from "../support/goods.ts";
import { ENGINES, loadBundles, openApiServer, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const LATE = sql("SELECT precast.index_at_commit()::text");
/** All indexes of entries in the order of their age, which decides between indexes that cost the same. */
const INDEXES = sql(
  "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'precast.entries'::regclass ORDER BY indexrelid",
);
/** What an operator can see of them. */
const STATE = sql(`SELECT pg_get_indexdef(indexrelid), coalesce(obj_description(indexrelid, 'pg_class'), ''),
    reltablespace::text, indisclustered::text, indisreplident::text
  FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid
  WHERE indrelid = 'precast.entries'::regclass ORDER BY relname`);
const FORBID = `CREATE FUNCTION public.forbid() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
  CREATE EVENT TRIGGER forbid ON ddl_command_start`;
/** What an operator may have done in the database, and whether the indexes can be built late then. */
const OPERATORS: readonly (readonly [what: string, script: string, isLate: boolean])[] = [
  ["has commented on an index", "COMMENT ON INDEX precast.entries_by_t1 IS 'the most important one'", true],
  ["has commented on the key", "COMMENT ON INDEX precast.entries_pkey IS 'the key'", true],
  ["has renamed the key", "ALTER TABLE precast.entries RENAME CONSTRAINT entries_pkey TO key", true],
  ["leaves space in the pages of the key", "ALTER INDEX precast.entries_pkey SET (fillfactor = 70)", true],
  ["replicates by the key", "ALTER TABLE precast.entries REPLICA IDENTITY USING INDEX entries_pkey", true],
  ["clusters by the key", "ALTER TABLE precast.entries CLUSTER ON entries_pkey", true],
  [
    "has added an index",
    "CREATE INDEX own ON precast.entries ((data ->> 'title')); COMMENT ON INDEX precast.own IS 'my own'",
    true,
  ],
  ["forbids to create indexes", `${FORBID} WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION public.forbid()`, false],
  ["forbids to alter tables", `${FORBID} WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.forbid()`, true],
  ["forbids to drop indexes", `${FORBID} WHEN TAG IN ('DROP INDEX') EXECUTE FUNCTION public.forbid()`, false],
];
const MANY = 5_000;

function goods(count: number) {
  const [chair] = GOODS.entries.goods ?? [];
  if (chair === undefined) throw new Error("The shop sells nothing.");
  const id = (number: number) => chair.id.slice(0, -4) + number.toString(16).padStart(4, "0");
  const entries = Array.from({ length: count }, (_, number) => ({
    ...chair,
    id: id(number),
    data: { title: `chair ${number}` },
  }));
  return { ...GOODS, entries: { goods: entries } };
}

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let before: string[];

  beforeEach(async () => {
    store = await openStore(engine);
    before = await indexes();
  });
  afterEach(() => store.close());

  const indexes = async (session: Pick<Session, "query"> = store.database) =>
    (await session.query(INDEXES)).map(([definition]) => definition as string);
  const ages = async () =>
    (await store.database.query(sql("SELECT min(oid)::text FROM pg_class WHERE relname LIKE 'entries_by_t_'")))[0]?.[0];
  const btrees = () => before.filter((definition) => definition.includes("USING btree"));

  test("an import into an empty database builds them after the rows, and the same ones", async () => {
    const age = await ages();
    await loadBundles(store, [goods(MANY)]);
    expect(await ages()).not.toBe(age);
    expect([...(await indexes())].sort()).toEqual([...before].sort());
    expect((await indexes()).at(-1)).toMatch(/ entries_pkey /);
    const api = await openApiServer(store);
    const { json } = await api.get("/api/v1/goods?filter[title][starts_with]=chair%2049&sort=title", { appKey: KEY });
    expect([json.meta.total, json.data[0].title]).toEqual([111, "chair 49"]);
    const found = await api.get("/api/v1/goods/search?q=hai+499", { appKey: KEY });
    expect([found.json.meta.total, found.json.data[0].title]).toEqual([15, "chair 499"]);
    await api.close();
  });

  test("a transaction drops the B-tree indexes but the primary key, and has them again when it ends", async () => {
    await store.database.transaction("write", async (session) => {
      expect(await session.query(LATE)).toEqual([["true"]]);
      expect(await indexes(session)).toEqual(
        before.filter((definition) => !btrees().includes(definition) || definition.includes("entries_pkey")),
      );
      expect(await session.query(LATE)).toEqual([["true"]]);
    });
    expect([...(await indexes())].sort()).toEqual([...before].sort());
    expect(await store.database.query(sql("SELECT name FROM precast.late_indexes"))).toEqual([]);
  });

  // The same statements in the same PostgreSQL, which takes seconds for them here.
  if (engine === "embedded") return;

  test("an import of few entries leaves the indexes alone, and so does everybody once there are entries", async () => {
    const age = await ages();
    await loadBundles(store, [GOODS]);
    expect(await store.database.query(LATE)).toEqual([["false"]]);
    expect([await ages(), await indexes()]).toEqual([age, before]);
  });

  test("a transaction that fails, or that turned triggers off before, keeps the indexes", async () => {
    const failed = store.database.transaction("write", async (session) => {
      await session.query(LATE);
      await session.query(sql("SELECT 1 / 0"));
    });
    await expect(failed).rejects.toThrow("division by zero");
    for (const off of [
      "SET LOCAL session_replication_role = replica",
      "ALTER TABLE precast.late_indexes DISABLE TRIGGER ALL",
    ])
      await store.database.transaction("write", async (session) => {
        await session.execute(off);
        expect(await session.query(LATE)).toEqual([["false"]]);
      });
    expect(await indexes()).toEqual(before);
  });

  test("the indexes stay as the operator has made them", async () => {
    const undo = new Error("undo");
    for (const [what, script, isLate] of OPERATORS)
      await store.database
        .transaction("write", async (session) => {
          await session.execute(script);
          const made = await session.query(STATE);
          expect(await session.query(LATE), what).toEqual([[String(isLate)]]);
          await session.execute("SET CONSTRAINTS ALL IMMEDIATE");
          expect(await session.query(STATE), what).toEqual(made);
          throw undo;
        })
        .catch((error) => expect(error, what).toBe(undo));
  });

  test("a transaction may check constraints at once, put new indexes elsewhere, or read entries meanwhile", async () => {
    for (const [what, script, isLate] of [
      ["at once", "SET CONSTRAINTS ALL IMMEDIATE", true],
      // No index of this database can be there.
      ["elsewhere", "SET LOCAL default_tablespace = pg_global", true],
      ["reading", "DECLARE reading CURSOR FOR SELECT FROM precast.entries", false],
    ] as const)
      await store.database.transaction("write", async (session) => {
        await session.execute(script);
        expect(await session.query(LATE), what).toEqual([[String(isLate)]]);
      });
    expect([...(await indexes())].sort()).toEqual([...before].sort());
  });

  test("a key of a CMS that refers to entries keeps no index away, and a check at commit keeps the indexes", async () => {
    await store.database.execute(`CREATE TABLE public.notes (type integer, entry uuid,
      FOREIGN KEY (type, entry) REFERENCES precast.entries)`);
    expect(await store.database.query(LATE)).toEqual([["true"]]);
    const made = await indexes();
    expect([...made].sort()).toEqual([...before].sort());

    await store.database.execute(`CREATE FUNCTION public.check_entry() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END';
      CREATE CONSTRAINT TRIGGER check_entry AFTER INSERT ON precast.entries DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION public.check_entry()`);
    expect(await store.database.query(LATE)).toEqual([["false"]]);
    expect(await indexes()).toEqual(made);
  });
});

describe("on postgres, beside others", () => {
  let store: Store;
  let other: Client;

  beforeEach(async () => {
    store = await openStore("postgres");
    other = new Client({ connectionString: store.url ?? "" });
    await other.connect();
  });
  afterEach(async () => {
    await other.end();
    await store.close();
  });

  test("a transaction does not wait for one that uses entries, and keeps the indexes", async () => {
    const before = await store.database.query(INDEXES);
    await other.query("BEGIN; SELECT FROM precast.entries");
    expect(await store.database.query(LATE)).toEqual([["false"]]);
    await loadBundles(store, [goods(MANY)]);
    await other.query("COMMIT");
    expect(await store.database.query(INDEXES)).toEqual(before);
  });

  test("nobody waits for a dry run", async () => {
    const folder = join(store.folder, "bundle");
    await writeBundle(folder, goods(MANY));
    await other.query("SET lock_timeout = '50ms'");
    const reads: Promise<unknown>[] = [];
    const onProgress = () => void reads.push(other.query("SELECT FROM precast.entries"));
    await importBundle(store.database, folder, { prune: false, dryRun: true, onProgress });
    await Promise.all(reads);
  });

  test("whoever changes fields meanwhile waits, and is in no deadlock with it", async () => {
    await loadBundles(store, [{ ...GOODS, entries: {} }]);
    const change = "INSERT INTO precast.fields SELECT id, 'note', 9, 'text', 'Note' FROM precast.content_types";
    const { changed } = await store.database.transaction("write", async (session) => {
      expect(await session.query(LATE)).toEqual([["true"]]);
      const changed = other.query(change);
      const isWaiting = sql("SELECT FROM pg_locks WHERE NOT granted AND relation::regclass::text LIKE 'precast.%'");
      await until("the change to wait", async () => (await session.query(isWaiting)).length > 0);
      await session.execute(`INSERT INTO precast.entries (content_type_id, id, status, data)
        SELECT id, gen_random_uuid(), 'draft', '{"title": "stool", "note": "three legs"}' FROM precast.content_types`);
      return { changed };
    });
    await changed;
  });

  test("a role that does not own the tables keeps the indexes", async () => {
    const role = `cms_${randomBytes(6).toString("hex")}`;
    await other.query(`CREATE ROLE ${role}; GRANT USAGE ON SCHEMA precast TO ${role};
      GRANT SELECT, INSERT ON precast.entries TO ${role}; SET ROLE ${role}`);
    expect((await other.query(LATE.text)).rows).toEqual([{ index_at_commit: "false" }]);
    await other.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
});
