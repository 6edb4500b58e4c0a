/**
 * Migrations say what a database must have and work for an owner with few rights, and the locale of the database does
 * not change what is read.
 */
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { type DatabaseTraits, missingRequirement, readTraits } from "../../cli/commands/migrate.ts";
import { openDatabase } from "../../cli/database.ts";
import { readApp } from "../../shared/apps.ts";
import type { Database } from "../../shared/database/database.ts";
import { findMigrations, migrate, readMigration } from "../../shared/schema/migrate.ts";
import { sql } from "../../shared/sql/query.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";
import { ENGINES, MEDIA, openStore } from "../support/site.ts";

const OPTIONS = { dataDir: "", queryTimeout: null, connections: 1 };

describe("an owner that is not a superuser and may not create schemas", () => {
  const owner = `owner_${randomBytes(6).toString("hex")}`;
  let url: string;
  let admin: Client;
  let database: Database;

  beforeEach(async () => {
    url = await createDatabase(inject("postgresUrl"), "owned");
    admin = new Client({ connectionString: url });
    await admin.connect();
    await admin.query(`CREATE ROLE ${owner} LOGIN PASSWORD 'secret'; CREATE SCHEMA precast AUTHORIZATION ${owner}`);
    const own = new URL(url);
    [own.username, own.password] = [owner, "secret"];
    database = await openDatabase({ ...OPTIONS, url: own.href });
  });
  afterEach(async () => {
    await database.close();
    await admin.query(`DROP OWNED BY ${owner} CASCADE; DROP ROLE ${owner}`);
    await admin.end();
    await dropDatabase(url);
  });

  const indexes = async () => {
    const partly =
      "SELECT count(*)::text FROM pg_indexes WHERE schemaname = 'precast' AND indexdef LIKE '%gin_trgm_ops%'";
    return (await database.query(sql(partly)))[0]?.[0];
  };

  test("migrates the schema that an administrator has created, and a second run has nothing to do", async () => {
    expect((await findMigrations()).length).toBeGreaterThan(0);
    expect(await migrate(database)).toEqual(await findMigrations());
    expect(await migrate(database)).toEqual([]);
  });

  test("gets the trigram indexes when it may use the schema of pg_trgm", async () => {
    await admin.query("CREATE SCHEMA extensions; CREATE EXTENSION pg_trgm SCHEMA extensions");
    await admin.query(`GRANT USAGE ON SCHEMA extensions TO ${owner}`);
    await migrate(database);
    expect(await indexes()).toBe("2");
  });

  test("migrates without trigram indexes when it may not use the schema of pg_trgm", async () => {
    await admin.query("CREATE SCHEMA extensions; CREATE EXTENSION pg_trgm SCHEMA extensions");
    await migrate(database);
    expect(await indexes()).toBe("0");
  });
});

test("fields with the same position are ordered by the bytes of their names, in an English locale too", async () => {
  const url = await createDatabase(inject("postgresUrl"), "english", "LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'");
  const database = await openDatabase({ ...OPTIONS, url });
  await migrate(database);
  const names = ["a_b", "a_c", "aa", "c1", "c_1"];
  await database.execute(`INSERT INTO precast.apps (key) VALUES ('words');
    INSERT INTO precast.content_types (app_id, slug) SELECT id, 'posts' FROM precast.apps;
    INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, field, 0, 'text' FROM precast.content_types, unnest('{${names}}'::text[]) AS field`);
  const app = await readApp(database, "words", { mediaBaseUrl: MEDIA });
  expect(app?.types[0]?.fields.map(({ name }) => name)).toEqual([...names].sort());
  await database.close();
  await dropDatabase(url);
});

test("an app whose media address is refused by now stays as it is, until it is written", async () => {
  const url = await createDatabase(inject("postgresUrl"), "older");
  const database = await openDatabase({ ...OPTIONS, url });
  const address = "https://media.example.com/?file=";
  const latest = "0014_media_address.sql";
  await database.execute("CREATE SCHEMA precast; CREATE TABLE precast.migrations (name text, applied_at timestamptz)");
  for (const name of (await findMigrations()).filter((one) => one < latest)) {
    await database.execute(readMigration(name));
    await database.query(sql("INSERT INTO precast.migrations (name) VALUES ($1)", [name]));
  }
  await database.execute(`INSERT INTO precast.apps (key, media_base_url) VALUES ('old', '${address}')`);
  expect(await migrate(database)).toContain(latest);
  expect(await database.query(sql("SELECT media_base_url FROM precast.apps"))).toEqual([[address]]);
  await expect(database.execute("UPDATE precast.apps SET name = 'Old'")).rejects.toThrow("media_base_url_has_no_query");
  await database.execute("UPDATE precast.apps SET name = 'Old', media_base_url = 'https://media.example.com'");
  await database.close();
  await dropDatabase(url);
});

test.each(ENGINES)(
  "a statement that a CMS prepares on an empty %s database finds an entry by its key",
  async (engine) => {
    const store = await openStore(engine);
    const plan = await store.database.transaction("write", async ({ execute, query }) => {
      await execute(`SET LOCAL plan_cache_mode = force_generic_plan;
      PREPARE edit (integer, uuid) AS UPDATE precast.entries SET status = 'draft' WHERE content_type_id = $1 AND id = $2`);
      const rows = await query(sql("EXPLAIN EXECUTE edit (1, '0b7e8f52-6c1d-4f0e-9d53-0d2f6a1c9a01')"));
      await execute("DEALLOCATE edit");
      return rows.flat().join("\n");
    });
    expect(plan).toContain("Index Cond: ((content_type_id = $1) AND (id = $2))");
    await store.close();
  },
);

describe("what a database must have", () => {
  test.each(ENGINES)("%s has it", async (engine) => {
    const store = await openStore(engine);
    expect(missingRequirement(await readTraits(store.database))).toBeNull();
    await store.close();
  });

  const suitable: DatabaseTraits = { version: "13.0", versionNumber: 130_000, encoding: "UTF8", hasIcu: true };
  test.each<[string, Partial<DatabaseTraits>, string]>([
    [
      "a version before 13",
      { version: "12.22 (Ubuntu 12.22-1)", versionNumber: 120_022 },
      "Precast needs PostgreSQL 13 or newer, but the server is PostgreSQL 12.22 (Ubuntu 12.22-1).",
    ],
    ["an encoding other than UTF8", { encoding: "LATIN1" }, "The encoding of the database is LATIN1"],
    ["a server without ICU", { hasIcu: false }, "The PostgreSQL server was built without ICU"],
  ])("%s is refused with a sentence that says so", (_, traits, message) => {
    expect(missingRequirement(suitable)).toBeNull();
    expect(missingRequirement({ ...suitable, ...traits })).toContain(message);
  });
});
