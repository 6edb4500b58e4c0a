/** `precast doctor`: what it finds, what it says of it, and what `--fix` does while others write. */
import { hash } from "node:crypto";
import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { importBundle } from "../../cli/commands/import.ts";
import { openDatabase } from "../../cli/database.ts";
import { estimateDistinct } from "../../cli/doctor/content.ts";
import { replicationCheck } from "../../cli/doctor/server.ts";
import type { Database } from "../../shared/database/database.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { sql } from "../../shared/sql/query.ts";
import { idOf, openEmbeddedPlace, openPlace, type Place, SHOP, shop } from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

type Finding = {
  readonly check: string;
  readonly kind: string;
  readonly subject: string;
  readonly problem: string;
  readonly gain: string;
  readonly remedy: string;
  readonly fix: string[] | null;
};
type Report = { readonly findings: Finding[]; readonly fixed: Finding[] };

/** A type whose entries each have a slug of their own and one of seven colours. */
const MANY = 5_000;
const logs = (count = MANY, isSearchable = false) => `INSERT INTO precast.content_types (app_id, slug)
  SELECT id, 'logs' FROM precast.apps WHERE key = '${SHOP}';
INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
  SELECT type.id, field.* FROM precast.content_types AS type,
    (VALUES ('slug', 1, 'text', ${isSearchable}), ('color', 2, 'select', false)) AS field WHERE slug = 'logs';
UPDATE precast.content_types SET filterable_fields = '{slug,color}' WHERE slug = 'logs';
INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
  SELECT id, gen_random_uuid(), 'published', now(), jsonb_build_object('slug', 's' || n, 'color', 'c' || n % 7)
  FROM precast.content_types, generate_series(1, ${count}) AS n WHERE slug = 'logs'`;
const OF_LOGS = "content_type_id = (SELECT id FROM precast.content_types WHERE slug = 'logs')";

async function examine(place: Place, line = ""): Promise<Report & { code: number | null; stderr: string }> {
  const { code, stdout, stderr } = await place.call(`doctor ${line} --json`);
  expect([stdout.split("\n").length, stderr]).toEqual([2, expect.not.stringMatching(/^\s+at /m)]);
  return { code, stderr, ...(JSON.parse(stdout) as Report) };
}

/** As if the indexes had been created with another version of the collation library. */
const REORDERED = "UPDATE pg_collation SET collversion = '1.1' WHERE collname = 'und-x-icu'";

const subjects = (findings: readonly Finding[]) => findings.map(({ subject }) => subject);

describe("doctor on PostgreSQL", () => {
  let store: Store;
  let place: Place;
  const clients: Client[] = [];

  beforeAll(async () => {
    store = await openStore("postgres");
    place = openPlace({ DATABASE_URL: store.url ?? "" });
    // Autovacuum would repair what the tests expect to be found.
    const tables = await store.database.query({
      text: "SELECT tablename::text FROM pg_tables WHERE schemaname = 'precast'",
      values: [],
    });
    for (const [table] of tables) {
      await store.database.execute(`ALTER TABLE precast.${table} SET (autovacuum_enabled = off)`);
    }
    await place.import(shop());
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await place.close();
    await store.close();
  });

  async function connect(): Promise<Client> {
    const client = new Client({ connectionString: store.url ?? "", application_name: "a writer" });
    await client.connect();
    clients.push(client);
    return client;
  }
  const number = async (text: string) => Number((await store.database.query({ text, values: [] }))[0]?.[0]);

  test("finds nothing to change in a healthy database, and exits with 0", async () => {
    expect(await place.run("doctor")).toEqual({ code: 0, stdout: "Nothing to change.\n", stderr: "" });
    expect(await examine(place)).toMatchObject({ code: 0, findings: [], fixed: [] });
  });

  test("finds media whose address nobody has set", async () => {
    const { code, stdout } = await place.call("doctor --json", { PRECAST_MEDIA_BASE_URL: "" });
    const { findings } = JSON.parse(stdout) as Report;
    expect([code, subjects(findings)]).toEqual([2, [`${SHOP}: address of media`]]);
    expect(findings[0]?.problem).toMatch(/^posts\.cover has values, .* http:\/\/localhost:3000, /);
  });

  test("names triggers that are disabled or fire in the wrong mode, and the statements that restore them", async () => {
    await store.database.execute(`ALTER TABLE precast.entries DISABLE TRIGGER ALL;
      ALTER TABLE precast.entries ENABLE TRIGGER ALL; ALTER TABLE precast.fields DISABLE TRIGGER field_added`);
    const { code, findings } = await examine(place);
    expect(code).toBe(2);
    const names = ["announce_brought", "keep_move", "keep_removal", "stamp_all_types", "stamp_entry"];
    expect(findings).toMatchObject([
      {
        check: "triggers",
        kind: "advice",
        subject: `triggers: ${names.map((name) => `entries.${name}`).join(", ")}, fields.field_added`,
      },
    ]);
    const statements = /Run (ALTER .*;) as the owner/.exec(findings[0]?.remedy ?? "")?.[1] as string;
    await store.database.execute(statements);
    expect((await examine(place)).findings).toEqual([]);
  });

  test("names triggers that were dropped, and the statements that create them as they were", async () => {
    const triggers = () =>
      store.database.query({
        text: `SELECT tgenabled::text, pg_get_triggerdef(oid) FROM pg_trigger
          WHERE tgrelid::regclass::text LIKE 'precast.%' AND NOT tgisinternal ORDER BY 2`,
        values: [],
      });
    const before = await triggers();
    const names = await store.database.query({
      text: `SELECT relname::text, tgname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace = 'precast'::regnamespace AND NOT tgisinternal`,
      values: [],
    });
    for (const [table, name] of names) await store.database.execute(`DROP TRIGGER ${name} ON precast.${table}`);
    const { code, findings } = await examine(place);
    expect([code, findings.map(({ check }) => check)]).toEqual([2, ["triggers"]]);
    for (const [table, name] of names) expect(findings[0]?.subject).toContain(`${table}.${name} (dropped)`);
    await store.database.execute(/Run (CREATE [\s\S]*;) as the owner/.exec(findings[0]?.remedy ?? "")?.[1] as string);
    expect(await triggers()).toEqual(before);
    expect((await examine(place)).findings).toEqual([]);
  });

  test("names indexes that were dropped, and --fix makes them as they were", async () => {
    const indexes = () =>
      store.database.query({
        text: `SELECT pg_get_indexdef(indexrelid), array_agg(attstattarget::text ORDER BY attnum)::text
          FROM pg_index JOIN pg_attribute ON attrelid = indexrelid
          WHERE indrelid::regclass::text LIKE 'precast.%' GROUP BY indexrelid ORDER BY 1`,
        values: [],
      });
    const before = await indexes();
    const dropped = await store.database.query({
      text: `SELECT indexrelid::regclass::text FROM pg_index
        WHERE indrelid::regclass::text LIKE 'precast.%' AND NOT indisunique ORDER BY 1`,
      values: [],
    });
    const names = dropped.map(([name]) => name as string);
    await store.database.execute(`DROP INDEX ${names.join(", ")}`);
    const { code, findings } = await examine(place);
    const trigrams = ["precast.entries_by_texts", "precast.terms_by_part"];
    const wanted = names.filter((name) => !trigrams.includes(name)).map((name) => `${name}: missing`);
    expect([code, subjects(findings).sort()]).toEqual([2, wanted]);
    const { fixed } = await examine(place, "--fix");
    expect(subjects(fixed).sort()).toEqual(wanted);
    const [operators] = (
      await store.database.query({
        text: "SELECT extnamespace::regnamespace || '.gin_trgm_ops' FROM pg_extension WHERE extname = 'pg_trgm'",
        values: [],
      })
    )[0] as [string];
    await store.database.execute(`CREATE INDEX terms_by_part ON precast.terms USING gin (term ${operators});
      CREATE INDEX entries_by_texts ON precast.entries USING gin (texts ${operators}) WHERE status = 'published'`);
    expect(await indexes()).toEqual(before);
    expect((await examine(place)).findings).toEqual([]);
  });

  test("finds nothing about indexes whose storage an operator has tuned, nor where identifiers are quoted", async () => {
    const [[database] = []] = await store.database.query({
      text: "SELECT quote_ident(current_database())",
      values: [],
    });
    await store.database.execute(`ALTER DATABASE ${database} SET quote_all_identifiers = on;
      ALTER INDEX precast.entries_by_value SET (fastupdate = off); ALTER INDEX precast.entries_by_t1 SET (fillfactor = 70)`);
    expect((await examine(place)).findings).toEqual([]);
    await store.database.execute(`ALTER DATABASE ${database} RESET quote_all_identifiers;
      ALTER INDEX precast.entries_by_value RESET (fastupdate); ALTER INDEX precast.entries_by_t1 RESET (fillfactor)`);
  });

  test("finds foreign keys that are not checked, and the statements that check them and fire all triggers again", async () => {
    const modes = () =>
      store.database.query({
        text: `SELECT tgrelid::regclass::text, tgname::text, tgenabled::text FROM pg_trigger
          WHERE tgrelid::regclass::text LIKE 'precast.%' ORDER BY 1, 2`,
        values: [],
      });
    const before = await modes();
    await store.database.execute("ALTER TABLE precast.entries DISABLE TRIGGER ALL");
    const { code, findings } = await examine(place);
    expect([code, subjects(findings)]).toEqual([
      2,
      ["precast.entries: unchecked keys", expect.stringMatching(/^triggers: /)],
    ]);
    await store.database.execute(/^Run (.*;) as a superuser\.$/.exec(findings[0]?.remedy ?? "")?.[1] as string);
    expect(await modes()).toEqual(before);
    expect((await examine(place)).findings).toEqual([]);
  });

  test("finds the wrong total of a type that was written while triggers were off, and what keeps it anew", async () => {
    const writer = await connect();
    await writer.query(`SET session_replication_role = replica;
      INSERT INTO precast.entries (content_type_id, id, status, published_at)
      SELECT id, gen_random_uuid(), 'published', now() FROM precast.content_types ORDER BY slug LIMIT 1;
      RESET session_replication_role`);
    const { code, findings } = await examine(place);
    expect([code, subjects(findings)]).toEqual([2, ["precast.entry_counts: wrong totals"]]);
    expect(findings[0]?.problem).toMatch(/^Shop\/\w+ has (\d+) published entries, and (\d+) are kept/);
    await writer.query(/Run (.*;) as the owner/.exec(findings[0]?.remedy ?? "")?.[1] as string);
    expect((await examine(place)).findings).toEqual([]);
  });

  test("knows an index that was renamed, and one that another has replaced", async () => {
    await store.database.execute(`ALTER INDEX precast.entries_by_t1 RENAME TO "Old t1";
      DROP INDEX precast.entries_by_n1; CREATE INDEX entries_by_n1 ON precast.entries (n1)`);
    const { fixed, findings } = await examine(place, "--fix");
    expect(fixed).toMatchObject([
      {
        subject: "precast.entries_by_t1: missing",
        problem: expect.stringMatching(/^It is now Old t1\./),
        fix: ['ALTER INDEX precast."Old t1" RENAME TO entries_by_t1'],
      },
    ]);
    expect(findings).toMatchObject([
      {
        subject: "precast.entries_by_n1: replaced",
        problem: expect.stringMatching(/ USING btree \(n1\)\. /),
        fix: null,
      },
    ]);
    const statements = /Run (DROP INDEX .*?); (CREATE INDEX .*)\. It waits/.exec(findings[0]?.remedy ?? "") ?? [];
    for (const statement of statements.slice(1)) await store.database.execute(statement);
    expect((await examine(place)).findings).toEqual([]);
  });

  test("reports a changed collation version before other findings, until its remedies have been run", async () => {
    await store.database.execute(`${REORDERED}; ALTER TABLE precast.fields DISABLE TRIGGER field_added`);
    const { code, findings } = await examine(place);
    expect([code, findings.map(({ check }) => check)]).toEqual([2, ["collations", "triggers"]]);
    const [order] = findings as [Finding];
    expect(order.problem).toMatch(
      /^The indexes were built with version 1\.1 of the collation, but the server now has version \d+/,
    );
    const remedies = [/REINDEX SCHEMA \w+ precast/, /ALTER COLLATION \S+ REFRESH VERSION/];
    for (const remedy of remedies) await store.database.execute(remedy.exec(order.remedy)?.[0] as string);
    await store.database.execute("ALTER TABLE precast.fields ENABLE TRIGGER field_added");
    expect((await examine(place)).findings).toEqual([]);
  });

  /** Resolves when `examined` finds as many connections fewer as are opened. */
  async function untilCounted(
    examined: (line: string) => ReturnType<typeof examine>,
    url: string,
    application_name: string,
  ): Promise<void> {
    const free = async () => {
      const { findings } = await examined("--connections 1000");
      return Number(/PostgreSQL has (\d+) /.exec(findings.find(({ check }) => check === "server")?.problem ?? "")?.[1]);
    };
    // Other tests open and close connections to the same server meanwhile, but not twelve at a time.
    await until("twelve connections to be counted", async () => {
      const before = await free();
      const others = Array.from({ length: 12 }, () => new Client({ connectionString: url, application_name }));
      await Promise.all(others.map((client) => client.connect()));
      const counted = before - (await free());
      await Promise.all(others.map((client) => client.end()));
      return counted === others.length;
    });
  }

  test("counts Precast's connections to other databases of the server", () => {
    const remote = new URL(store.url ?? "");
    remote.pathname = "/postgres";
    return untilCounted((line) => examine(place, line), remote.href, "precast");
  });

  describe("run by a role that may only read", () => {
    let role: string;
    const examineAsReader = (line = "") => {
      const url = new URL(store.url ?? "");
      url.username = role;
      return examine(place, `${line} --database-url ${url.href}`);
    };
    beforeAll(async () => {
      role = `reader_${Math.random().toString(36).slice(2)}`;
      await store.database.execute(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA precast TO ${role};
        GRANT SELECT ON ALL TABLES IN SCHEMA precast TO ${role}`);
    });
    afterAll(() => store.database.execute(`DROP OWNED BY ${role}; DROP ROLE ${role}`));

    test("counts connections of other roles, although it may not see their type", () =>
      untilCounted(examineAsReader, store.url ?? "", "a writer"));

    test("does not report an index that another role is still creating as unfinished", async () => {
      const [open, maker] = [await connect(), await connect()];
      await open.query("BEGIN; LOCK TABLE precast.usage IN ROW EXCLUSIVE MODE");
      const made = maker.query("CREATE INDEX CONCURRENTLY usage_by_day ON precast.usage (day)");
      const begun = "SELECT count(*)::text FROM pg_index WHERE NOT indisvalid";
      await until("the index to be begun", async () => (await number(begun)) === 1);
      expect((await examineAsReader()).findings.filter(({ check }) => check === "indexes")).toEqual([]);
      await open.query("ROLLBACK");
      await made;
      await maker.query("DROP INDEX precast.usage_by_day");
    });

    test("says that it cannot see the age of other roles' transactions, unless it has pg_read_all_stats", async () => {
      const open = await connect();
      await open.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
      const { findings } = await examineAsReader();
      expect(findings).toMatchObject([{ check: "snapshots", kind: "information", fix: null }]);
      expect(findings[0]?.problem).toMatch(/^1 transaction of other roles /);
      const grant = /GRANT pg_read_all_stats/.exec(findings[0]?.remedy ?? "")?.[0];
      await store.database.execute(`${grant} TO ${role}`);
      expect((await examineAsReader()).findings).toEqual([]);
      await store.database.execute(`REVOKE pg_read_all_stats FROM ${role}`);
      await open.query("ROLLBACK");
    });

    test("does not report a running VACUUM as a transaction", async () => {
      const keeper = await connect();
      // So that VACUUM goes on for long: a tenth of a second for each of a few hundred pages.
      await keeper.query(`CREATE TABLE precast.notes (body text) WITH (autovacuum_enabled = off);
        INSERT INTO precast.notes SELECT repeat('a', 200) FROM generate_series(1, 10000)`);
      await keeper.query("SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1");
      const swept = keeper.query("VACUUM precast.notes").catch(() => {});
      const begun =
        "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE 'VACUUM%' AND backend_xmin IS NOT NULL";
      await until("VACUUM to begin", async () => (await number(begun)) === 1);
      expect((await examineAsReader()).findings.filter(({ check }) => check === "snapshots")).toEqual([]);
      expect(await number(begun)).toBe(1);
      await store.database.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum");
      await swept;
      await keeper.query("DROP TABLE precast.notes");
    });
  });

  test("knows how much WAL a replication slot without a reader keeps, and drops it as it advises", async () => {
    const database = await openDatabase({ url: store.url, dataDir: "", queryTimeout: 5_000, connections: 1 });
    const gone = async () => {
      const { slots } = await replicationCheck.gather({ database } as never);
      return slots.find(({ name }) => name === "gone");
    };
    await database.query(sql("SELECT pg_create_physical_replication_slot('gone', true)::text"));
    const before = await gone();
    expect(before).toMatchObject({ isRead: false, transactions: 0 });
    await store.database.execute("CREATE TABLE precast.notes AS SELECT repeat('a', 100) FROM generate_series(1, 5000)");
    expect((await gone())?.walBytes).toBeGreaterThan((before?.walBytes ?? 0) + 500_000);
    await database.query(sql(before?.dropStatement ?? ""));
    expect(await gone()).toBeUndefined();
    await store.database.execute("DROP TABLE precast.notes");
    await database.close();
  });

  test("does not ask for statistics of a table from which all rows were deleted", async () => {
    await store.database.execute(`CREATE TABLE precast.notes (body text) WITH (autovacuum_enabled = off);
      INSERT INTO precast.notes SELECT repeat('a', 100) FROM generate_series(1, 5000); DELETE FROM precast.notes`);
    expect(subjects((await examine(place, "--fix")).findings)).not.toContain("precast.notes: statistics");
    expect((await examine(place)).findings).toEqual([]);
    await store.database.execute("DROP TABLE precast.notes");
  });

  test("finds an index whose pages are nearly empty, and --fix builds it anew", async () => {
    const writer = await connect();
    // PostgreSQL may count what was written later than it is analysed: what doctor says of statistics is left out.
    const ofBloat = (findings: readonly Finding[]) => findings.filter(({ check }) => check === "bloat");
    await writer.query(`CREATE TABLE precast.notes (number integer, body text) WITH (autovacuum_enabled = off);
      INSERT INTO precast.notes SELECT n, repeat(md5(n::text), 12) FROM generate_series(1, 100000) AS n;
      CREATE INDEX notes_by_body ON precast.notes (body)`);
    await writer.query("VACUUM ANALYZE precast.notes");
    expect(ofBloat((await examine(place)).findings)).toEqual([]);
    await writer.query("DELETE FROM precast.notes WHERE number % 20 > 0");
    await writer.query("VACUUM ANALYZE precast.notes");
    const { fixed, findings } = await examine(place, "--fix");
    await writer.query("DROP TABLE precast.notes");
    expect(ofBloat(findings)).toEqual([]);
    expect(ofBloat(fixed)).toMatchObject([
      {
        subject: "precast.notes_by_body: bloat",
        problem: expect.stringMatching(/^It takes \d\d\.\d MB, and a new one would take about [23]\.\d MB/),
        fix: ["REINDEX INDEX CONCURRENTLY precast.notes_by_body"],
      },
    ]);
  });

  test("says while it waits that another session may hold a lock, and reports when it has it no longer", async () => {
    const holder = await connect();
    await holder.query("BEGIN; LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
    const waited = place.run("doctor");
    await until("doctor to have waited for eleven seconds", async () => {
      const waiting = `SELECT count(*)::text FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '11 seconds'`;
      return (await number(waiting)) === 1;
    });
    await holder.query("ROLLBACK");
    expect(await waited).toEqual({
      code: 0,
      stdout: "Nothing to change.\n",
      stderr: expect.stringMatching(/^The database has not told everything after 10 seconds\. .* hold a lock .*\n$/),
    });
  });

  test("says that journals were not looked for where their folder cannot be read", async () => {
    const folder = join(place.folder, ".precast", "ledger");
    mkdirSync(dirname(folder), { recursive: true });
    // A file in its place, because root may read every folder.
    writeFileSync(folder, "");
    const { code, findings } = await examine(place);
    rmSync(folder);
    expect([code, subjects(findings)]).toEqual([0, [".precast/ledger: cannot be read"]]);
    expect(findings[0]).toMatchObject({ kind: "information", problem: expect.stringContaining("ENOTDIR") });
  });

  describe("on a database with many problems", () => {
    beforeAll(async () => {
      const writer = await connect();
      await writer.query(logs());
      for (const _ of [1, 2]) await writer.query(`UPDATE precast.entries SET updated_at = now() WHERE ${OF_LOGS}`);
      await writer.query(`INSERT INTO precast.usage_batches (id, removed_at)
        SELECT gen_random_uuid(), now() - interval '3 days' FROM generate_series(1, 10001)`);
      await writer.query(`INSERT INTO precast.usage (app_key, day, shape, status, count, saving) VALUES
        ('Shop', current_date, 'list', 200, 900, 'per_page=20'), ('Shop', current_date, 'list', 200, 20, 'page=1'),
        ('Shop', current_date, 'search', 504, 60, ''), ('Gone', current_date, 'search', 504, 60, ''),
        ('Shop', current_date, 'search', 200, 20, ''),
        ('Shop', current_date - 40, 'list', 200, 100000, 'fields'), ('Shop', current_date - 40, 'list', 504, 1000, '')`);
      await leaveIndex(writer);
      // PostgreSQL counts what a connection has written when the connection ends, at the latest.
      await writer.end();
      clients.splice(clients.indexOf(writer), 1);
      const dead = "SELECT n_dead_tup::text FROM pg_stat_user_tables WHERE relid = 'precast.entries'::regclass";
      await until("the dead rows to be counted", async () => (await number(dead)) >= 2 * MANY);
      leaveJournals(join(place.folder, ".precast", "ledger"));
    });

    /** Leaves an unfinished index: its creation waits for a writing transaction until it times out. */
    async function leaveIndex(client: Client): Promise<void> {
      const open = await connect();
      await open.query("BEGIN; LOCK TABLE precast.usage IN ROW EXCLUSIVE MODE");
      await client.query("SET statement_timeout = 300");
      await expect(client.query("CREATE INDEX CONCURRENTLY usage_by_day ON precast.usage (day)")).rejects.toThrow(
        "statement timeout",
      );
      await open.query("ROLLBACK");
    }

    function leaveJournals(folder: string): void {
      for (const owner of ["1-01234567", "live"]) mkdirSync(join(folder, owner), { recursive: true });
      // A process that is alive as long as this one.
      writeFileSync(join(folder, "live/lock"), `${process.ppid}\n`);
      const unsent = ["1-01234567/01234567-0000-4000-8000-000000000000", "live/01234567-0000-4000-8000-000000000002"];
      const old = new Date(Date.now() - 3 * 3_600_000);
      for (const file of [...unsent, "live/fresh"]) writeFileSync(join(folder, `${file}.ndjson`), "{}\n");
      for (const file of unsent) utimesSync(join(folder, `${file}.ndjson`), old, old);
      writeFileSync(join(folder, "01234567-0000-4000-8000-000000000001.ndjson.broken"), "{}\n");
    }

    const SAFE = [
      "precast.entries: statistics",
      "precast.usage_by_day: unfinished index",
      "precast.entries",
      "precast.usage_batches",
    ];
    const FOR_PEOPLE = [
      "Shop: slow search requests",
      "Shop: requests that could be free",
      ".precast/ledger: unsent journals",
      ".precast/ledger: broken journals",
    ];
    const TO_KNOW = "Shop/logs: filter on slug";

    test("reports the problem, the gain and the remedy of each finding, and exits with 2", async () => {
      const { code, findings, fixed } = await examine(place);
      expect([code, fixed]).toEqual([2, []]);
      expect(subjects(findings).sort()).toEqual([...SAFE, ...FOR_PEOPLE, TO_KNOW].sort());
      for (const { subject, problem, gain, remedy, fix } of findings) {
        for (const text of [problem, gain, remedy])
          expect([subject, text]).toEqual([subject, expect.stringMatching(/\w/)]);
        expect([subject, fix !== null]).toEqual([subject, SAFE.includes(subject)]);
      }
      const found = Object.fromEntries(findings.map((finding) => [finding.subject, finding]));
      expect(found[TO_KNOW]).toMatchObject({
        kind: "information",
        problem: expect.stringMatching(/5,000 values in 5,000 entries.* 49 %/),
      });
      expect(found["Shop: slow search requests"]?.problem).toMatch(/^60 of 80 /);
      expect(found["Shop: requests that could be free"]).toMatchObject({
        problem: expect.stringMatching(/^900 of 1,000 .*\(90\.0 %\)/),
        remedy: expect.stringContaining("drop per_page=20, which is the default"),
      });
      expect(found["precast.entries"]?.problem).toMatch(/^10,\d{3} of its 15,\d{3} rows are dead \(67 %\)/);
      expect(found[".precast/ledger: unsent journals"]?.problem).toMatch(/^1 journal .* 3 hours/);
    });

    test("prints a paragraph for each finding, and a summary line", async () => {
      const { code, stdout, stderr } = await place.run("doctor");
      expect([code, stderr]).toEqual([2, ""]);
      const paragraphs = stdout.trimEnd().split("\n\n");
      expect(paragraphs).toHaveLength(10);
      expect(paragraphs.at(-1)).toBe("8 to change (4 with --fix), 1 for information.");
      for (const paragraph of paragraphs.slice(0, -1)) {
        expect(paragraph).toMatch(
          /^\S.*\n {2}Problem {2}\S.*\n {2}Gain {5}\S.*\n {2}Remedy {3}\S.*(\n {2}--fix {4}\S.*)?$/,
        );
      }
    });

    test("reports that PostgreSQL allows fewer connections than --connections needs", async () => {
      const { findings } = await examine(place, "--connections 1000");
      const found = findings.find(({ check }) => check === "server");
      expect(found).toMatchObject({ kind: "advice", subject: "Connections", fix: null });
      expect(found?.problem).toMatch(/--connections 1000, .* need 1006 connections; PostgreSQL has \d+ /);
    });

    test("counts a connection for the ledger of each worker", async () => {
      const { findings } = await examine(place, "--connections 1000 --workers 4");
      const found = findings.find(({ check }) => check === "server");
      expect(found?.problem).toMatch(/--connections 1000 and --workers 4, .* need 1009 connections; /);
    });

    test("needs no rights but to read, and names the owner in remedies that a reader may not run", async () => {
      const role = `reader_${Math.random().toString(36).slice(2)}`;
      await store.database.execute(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA precast TO ${role};
        GRANT SELECT ON ALL TABLES IN SCHEMA precast TO ${role}`);
      const url = new URL(store.url ?? "");
      url.username = role;
      const { code, findings } = await examine(place, `--database-url ${url.href}`);
      expect(code).toBe(2);
      const found = Object.fromEntries(findings.map((finding) => [finding.subject, finding]));
      for (const subject of SAFE) {
        expect(found[subject]).toMatchObject({ fix: null, remedy: expect.stringMatching(/^Have .*owner/) });
      }
      await store.database.execute(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });

    test("--fix makes the safe changes without blocking writers, prints each, and exits with 2", async () => {
      const [looking, writing, other] = [await connect(), await connect(), await connect()];
      // ANALYZE, REINDEX and VACUUM each have to wait for a lock: if they blocked writers, those would wait too.
      await looking.query("BEGIN; LOCK TABLE precast.entries IN SHARE UPDATE EXCLUSIVE MODE");
      await writing.query("BEGIN; LOCK TABLE precast.usage IN ROW EXCLUSIVE MODE");
      await other.query("SET lock_timeout = '2s'");
      const write = async () => {
        const { rowCount } = await other.query(
          `UPDATE precast.entries SET updated_at = now() WHERE ${OF_LOGS} AND data->>'slug' = 's1'`,
        );
        await other.query("UPDATE precast.usage SET count = count + 1 WHERE shape = 'search' AND status = 200");
        await other.query("INSERT INTO precast.usage_batches (id) VALUES (gen_random_uuid())");
        return rowCount;
      };
      const waits = (statement: string) => async () =>
        (await number(`SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database()
          AND application_name = 'precast' AND wait_event_type = 'Lock' AND query LIKE '${statement}%'`)) === 1;

      const doctor = place.start("doctor --fix");
      await until("ANALYZE to wait", waits("ANALYZE precast.entries"));
      expect(await write()).toBe(1);
      await looking.query("ROLLBACK");
      await until("REINDEX to wait", waits("REINDEX INDEX CONCURRENTLY precast.usage_by_day"));
      expect(await write()).toBe(1);
      await looking.query("BEGIN; LOCK TABLE precast.entries IN SHARE UPDATE EXCLUSIVE MODE");
      await writing.query("ROLLBACK");
      await until("VACUUM to wait", waits("VACUUM"));
      expect(await write()).toBe(1);
      await looking.query("ROLLBACK");

      const { code, stdout, stderr } = await doctor.end();
      expect([code, stderr]).toEqual([2, ""]);
      const done = stdout.match(/^.*: done in [\d.]+ s$/gm)?.map((line) => line.replace(/: done.*/, ""));
      expect(done).toEqual([
        "ANALYZE precast.entries",
        "REINDEX INDEX CONCURRENTLY precast.usage_by_day",
        "VACUUM (TRUNCATE false) precast.entries",
        expect.stringMatching(/^DELETE FROM precast\.usage_batches /),
      ]);
      expect(stdout).toMatch(/ s\n\nShop: slow search requests\n/);
      expect(stdout).toMatch(/\n\n4 to change, 1 for information\.\n$/);
    });

    test("reports after --fix only what --fix does not change", async () => {
      const { code, findings } = await examine(place);
      expect(code).toBe(2);
      expect(subjects(findings).sort()).toEqual([...FOR_PEOPLE, TO_KNOW].sort());
      expect(await number("SELECT count(*)::text FROM pg_index WHERE NOT indisvalid")).toBe(0);
      expect(await number("SELECT count(*)::text FROM precast.usage_batches WHERE removed_at IS NOT NULL")).toBe(0);
    });

    test("--fix keeps a finding that its statement does not change, and says so", async () => {
      const [holder, writer] = [await connect(), await connect()];
      await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM precast.apps");
      for (const _ of [1, 2]) await writer.query(`UPDATE precast.entries SET updated_at = now() WHERE ${OF_LOGS}`);
      await writer.end();
      clients.splice(clients.indexOf(writer), 1);
      const found = async () => subjects((await examine(place)).findings).includes("precast.entries");
      await until("the dead rows to be found", found);
      const { code, stderr, findings, fixed } = await examine(place, "--fix");
      expect(code).toBe(2);
      expect(subjects(fixed)).not.toContain("precast.entries");
      expect(stderr).toMatch(/^precast\.entries: the fix was applied and did not help\. /m);
      expect(subjects(findings)).toContain("precast.entries");
      // Once nothing holds the old rows, it helps.
      await holder.query("ROLLBACK");
      expect(subjects((await examine(place, "--fix")).fixed)).toContain("precast.entries");
    });

    test("--fix reports a statement that fails, and keeps its finding", async () => {
      const writer = await connect();
      await writer.query("CREATE TABLE precast.notes (body text); INSERT INTO precast.notes VALUES ('a'), ('a')");
      await expect(
        writer.query("CREATE UNIQUE INDEX CONCURRENTLY notes_key ON precast.notes (body)"),
      ).rejects.toThrow();
      const { code, stderr, findings, fixed } = await examine(place, "--fix");
      expect([code, fixed]).toEqual([2, []]);
      expect(stderr).toMatch(/^REINDEX INDEX CONCURRENTLY precast\.notes_key: failed, could not create unique index/m);
      expect(subjects(findings)).toContain("precast.notes_key: unfinished index");
      // The failed rebuild has left another index, which can be dropped.
      const next = await examine(place, "--fix");
      expect(subjects(next.fixed)).toEqual([expect.stringMatching(/^precast\.notes_key_ccnew: /)]);
      await writer.query("DROP TABLE precast.notes");
    });
  });

  /** Creates two tables with an unfinished index each. The client that it returns holds a lock on the table `held`. */
  const holdUnfinished = async (free: string): Promise<Client> => {
    const holder = await connect();
    for (const table of ["held", free]) {
      await holder.query(`CREATE TABLE precast.${table} (body text); INSERT INTO precast.${table} VALUES ('a'), ('a')`);
      const unique = `CREATE UNIQUE INDEX CONCURRENTLY ${table}_key ON precast.${table} (body)`;
      await expect(holder.query(unique)).rejects.toThrow();
      await holder.query(`TRUNCATE precast.${table}`);
    }
    await holder.query("BEGIN; LOCK TABLE precast.held IN SHARE UPDATE EXCLUSIVE MODE");
    return holder;
  };

  test("says of the old index of an interrupted rebuild that another has replaced it, and --fix drops it", async () => {
    const [reader, rebuilder] = [await connect(), await connect()];
    await reader.query("CREATE TABLE precast.notes (body text); CREATE INDEX notes_key ON precast.notes (body)");
    await reader.query("BEGIN; LOCK TABLE precast.notes IN ACCESS SHARE MODE");
    const rebuild = "REINDEX INDEX CONCURRENTLY precast.notes_key";
    const rebuilt = expect(rebuilder.query(rebuild)).rejects.toThrow("canceling statement");
    // The reader holds up nothing before the old index is dropped, but other transactions may: the name tells.
    await until("the rebuild to wait before it drops the old index, and be cancelled", async () => {
      const cancelled = `SELECT count(pg_cancel_backend(pid))::text FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query = '${rebuild}'
          AND to_regclass('precast.notes_key_ccold') IS NOT NULL`;
      return (await number(cancelled)) === 1;
    });
    await rebuilt;
    await reader.query("ROLLBACK");
    const { fixed } = await examine(place, "--fix");
    expect(fixed.filter(({ check }) => check === "indexes")).toMatchObject([
      {
        subject: "precast.notes_key_ccold: unfinished index",
        problem: expect.stringMatching(/ because a rebuild has replaced it, /),
        fix: ["DROP INDEX CONCURRENTLY precast.notes_key_ccold"],
      },
    ]);
    await reader.query("DROP TABLE precast.notes");
  });

  test("--fix reports a statement that exceeds the lock timeout, and makes the other changes", async () => {
    const holder = await holdUnfinished("free");
    const url = new URL(store.url ?? "");
    url.searchParams.set("options", "-c lock_timeout=200ms");
    const { code, stderr, fixed } = await examine(place, `--fix --database-url ${url.href}`);
    await holder.query("ROLLBACK; DROP TABLE precast.held, precast.free");
    expect([code, subjects(fixed)]).toEqual([2, ["precast.free_key: unfinished index"]]);
    expect(stderr).toMatch(/^REINDEX INDEX CONCURRENTLY precast\.held_key: failed, .*lock timeout$/m);
  });

  test("--fix reports a statement that an administrator cancels, and makes the other changes", async () => {
    const holder = await holdUnfinished("later");
    const doctor = examine(place, "--fix");
    await until("REINDEX to wait, and be cancelled", async () => {
      const cancelled = `SELECT count(pg_cancel_backend(pid))::text FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query = 'REINDEX INDEX CONCURRENTLY precast.held_key'`;
      return (await number(cancelled)) === 1;
    });
    const { code, stderr, fixed } = await doctor;
    await holder.query("ROLLBACK; DROP TABLE precast.held, precast.later");
    expect([code, subjects(fixed)]).toEqual([2, ["precast.later_key: unfinished index"]]);
    expect(stderr).toMatch(/^REINDEX INDEX CONCURRENTLY precast\.held_key: failed, canceling statement /m);
  });

  test("--fix creates missing trigram indexes, and a search then uses one", async () => {
    await store.database.execute("DROP EXTENSION pg_trgm CASCADE");
    await store.database.execute(`DELETE FROM precast.content_types WHERE slug = 'logs'; ${logs(10_000, true)}`);
    const missing = "pg_trgm, terms_by_part, entries_by_texts: missing";
    expect(subjects((await examine(place)).findings)).toContain(missing);
    const { fixed } = await examine(place, "--fix");
    expect(subjects(fixed)).toContain(missing);
    expect(subjects((await examine(place)).findings)).not.toContain(missing);
    await place.json(`explain /logs/search?q=s9999 --app ${SHOP}`);
    const scans = "SELECT idx_scan::text FROM pg_stat_user_indexes WHERE indexrelname = 'terms_by_part'";
    await until("the index to be used", async () => (await number(scans)) > 0);
  });

  test("finds counts that writers with one snapshot for a transaction have left, and --fix adds them up", async () => {
    const writer = await connect();
    await writer.query("SET default_transaction_isolation = 'repeatable read'");
    await writer.query(`DO $$ BEGIN FOR n IN 1..1000 LOOP
      UPDATE precast.entries SET updated_at = now() WHERE ${OF_LOGS} AND data->>'slug' = 's1';
    END LOOP; END $$`);
    const { code, findings } = await examine(place);
    expect(code).toBe(2);
    expect(findings.find(({ check }) => check === "counts")?.problem).toMatch(
      /^The entries of one type are counted in 1,0\d\d rows: /,
    );
    const { fixed } = await examine(place, "--fix");
    expect(subjects(fixed)).toContain("precast.entry_counts");
    expect(
      await number(
        "SELECT max(rows)::text FROM (SELECT count(*) AS rows FROM precast.entry_counts GROUP BY content_type_id) AS types",
      ),
    ).toBe(1);
    expect(await number(`SELECT sum(change)::text FROM precast.entry_counts WHERE ${OF_LOGS}`)).toBe(
      await number(`SELECT count(*)::text FROM precast.entries WHERE ${OF_LOGS}`),
    );
  });

  test("says in which fields filters and sorts take a number for another", async () => {
    const set = (id: number, price: string) =>
      `UPDATE precast.entries SET data = data || '{"price": ${price}}' WHERE id = '${idOf(id)}' AND data ? 'price';`;
    // The category of an entry is a long text, which no number is.
    const texts = "UPDATE precast.fields SET type = 'number' WHERE name = 'category';";
    const found = async () => (await examine(place)).findings.filter(({ check }) => check === "numbers");
    await store.database.execute(set(1, "9007199254740993") + set(2, "1234567.50000000000") + texts);
    expect(await found()).toEqual([
      expect.objectContaining({ kind: "information", subject: `${SHOP}/posts: price: long numbers` }),
    ]);
    expect((await found())[0]?.problem).toMatch(
      /^1 entry has .* they take 9007199254740993 for 9007199254740992\. Answers /,
    );
    await store.database.execute(set(2, "1e-400"));
    expect((await found())[0]?.problem).toMatch(/^2 entries have .* they take 0\.0{58}… for 0\. /);
    await place.import(shop());
    expect(await found()).toEqual([]);
  });
});

describe("doctor on the embedded database", () => {
  let place: Place;

  beforeAll(async () => {
    place = await openEmbeddedPlace();
    const bundle = join(place.folder, "bundle");
    await writeBundle(bundle, shop());
    await change(async (database) => {
      await migrate(database);
      await importBundle(database, bundle, { prune: false, dryRun: false });
      await database.execute(logs());
    });
  });
  afterAll(() => place.close());

  async function change(run: (database: Database) => Promise<void>): Promise<void> {
    const options = { url: null, dataDir: join(place.folder, ".precast"), queryTimeout: null, connections: 1 };
    const database = await openDatabase(options);
    await run(database).finally(database.close);
  }

  test("finds a table without current statistics, and --fix analyzes it while a server answers", async () => {
    const server = await place.serve("--out nowhere");
    const before = await examine(place);
    expect([before.code, subjects(before.findings)]).toEqual([
      2,
      ["precast.entries: statistics", "Shop/logs: filter on slug"],
    ]);
    const { code, fixed, findings } = await examine(place, "--fix");
    expect([code, subjects(fixed), subjects(findings)]).toEqual([
      0,
      ["precast.entries: statistics"],
      ["Shop/logs: filter on slug"],
    ]);
    expect((await server.get("/api/v1/logs?filter[slug]=s7&per_page=1", { appKey: SHOP })).json.meta.total).toBe(1);
    expect((await server.stop()).code).toBe(0);
    expect((await place.call("doctor")).stdout).toMatch(/\n\nNothing to change, 1 for information\.\n$/);
  });

  test("--fix repairs the indexes after a change of the collation version", async () => {
    await change((database) => database.execute(REORDERED));
    expect((await examine(place, "--fix")).fixed[0]?.check).toBe("collations");
    expect((await examine(place)).findings.map(({ check }) => check)).not.toContain("collations");
  });
});

describe("the estimate of distinct values from a sample of entries", () => {
  test.each([
    ["each entry has a value of its own", (n: number) => n],
    ["every two entries share a value", (n: number) => Math.floor(n / 2)],
    ["all entries share 50 values", (n: number) => n % 50],
  ])("is within 15 % of the exact number: %s", (_, valueAt) => {
    const all = 40_000;
    const values = Array.from({ length: all }, (_, n) => valueAt(n));
    const exact = new Set(values).size;
    const part = values.filter((_, n) => (hash("md5", String(n), "buffer")[0] as number) % 4 === 0);
    const times = new Map<number, number>();
    for (const value of part) times.set(value, (times.get(value) ?? 0) + 1);
    const valuesSeenOnce = [...times.values()].filter((count) => count === 1).length;
    const estimate = estimateDistinct({ values: times.size, valuesSeenOnce, occurrences: part.length }, all);
    expect(Math.abs(estimate - exact) / exact).toBeLessThan(0.15);
  });

  test("is exact when the sample contains all entries", () => {
    expect(estimateDistinct({ values: 7, valuesSeenOnce: 3, occurrences: 20 }, 20)).toBe(7);
    expect(estimateDistinct({ values: 0, valuesSeenOnce: 0, occurrences: 0 }, 0)).toBe(0);
  });
});
