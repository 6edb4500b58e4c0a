/** No function and no operator of another schema runs in place of one of PostgreSQL's: whoever may create some gains no right. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPlace, type Place, shop } from "../support/cli.ts";
import { arbitraryRequest } from "../support/requests.ts";
import { openStore, type Store } from "../support/site.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** What planted overloads take: PostgreSQL prefers them to its own, which take any type. */
const TYPES = "text integer bigint smallint float8 numeric boolean jsonb uuid date timestamptz oid name".split(" ");

let store: Store;
let place: Place;
let client: Client;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  client = new Client({ connectionString: store.url ?? "" });
  await client.connect();
  await place.import(shop());
  await client.query("CREATE SCHEMA planted");
  await client.query(await plantedFunctions());
  await client.query(await plantedOperators());
  const { pathname } = new URL(store.url ?? "");
  await client.query(`ALTER DATABASE ${pathname.slice(1)} SET search_path = planted, public`);
});
afterAll(async () => {
  await place.close();
  await client.end();
  await store.close();
});

/** All text in which SQL may stand. */
function sources(): string {
  return ["cli", "server", "shared"]
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((path) => join(ROOT, folder, path)),
    )
    .filter((path) => /\.(ts|sql)$/.test(path))
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
}

/** For each function that SQL calls and that takes any type, one for each type, which fails. */
async function plantedFunctions(): Promise<string> {
  const called = [...new Set([...sources().matchAll(/\b([a-z_]+)\(/g)].map(([, name]) => name))];
  const { rows } = await client.query<{ name: string; types: string[] }>(
    `SELECT DISTINCT proname AS name, proargtypes::regtype[]::text[] AS types FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY ($1)
      AND proargtypes::regtype[]::text[] && '{anyelement,anyarray,anynonarray,any,anycompatible,anycompatiblearray,anycompatiblenonarray}'`,
    [called],
  );
  expect(rows.length).toBeGreaterThan(10);
  const signatures = rows.flatMap(({ name, types }) =>
    TYPES.map((type) => `planted.${name}(${types.map((one) => concrete(one, type)).join(", ")})`),
  );
  return [...new Set(signatures)]
    .map(
      (signature) =>
        `CREATE FUNCTION ${signature} RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted %', $q$${signature}$q$; END $$`,
    )
    .join(";\n");
}

/** For each operator that takes any type, one for each type, which fails. */
async function plantedOperators(): Promise<string> {
  const { rows } = await client.query<{ name: string; left: string; right: string; result: string }>(
    `SELECT oprname AS name, oprleft::regtype::text AS left, oprright::regtype::text AS right FROM pg_operator
    WHERE oprnamespace = 'pg_catalog'::regnamespace AND (oprleft::regtype::text LIKE 'any%' OR oprright::regtype::text LIKE 'any%')
      AND oprleft <> 0 AND oprright <> 0`,
  );
  expect(rows.length).toBeGreaterThan(10);
  const made = new Set<string>();
  for (const { name, left, right } of rows)
    for (const type of TYPES) {
      const [one, other] = [concrete(left, type), concrete(right, type)];
      const known = await client.query(
        "SELECT FROM pg_operator WHERE oprname = $1 AND oprleft = $2::regtype AND oprright = $3::regtype",
        [name, one, other],
      );
      if (known.rowCount === 0) made.add(`${name} ${one} ${other}`);
    }
  return [...made]
    .map((key, index) => {
      const [name, one, other] = key.split(" ");
      return `CREATE FUNCTION planted.operator_${index}(${one}, ${other}) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted % % %', '${one}', '${name}', '${other}'; END $$;
        CREATE OPERATOR planted.${name} (LEFTARG = ${one}, RIGHTARG = ${other}, FUNCTION = planted.operator_${index})`;
    })
    .join(";\n");
}

function concrete(type: string, one: string): string {
  if (/^any(compatible)?array$/.test(type)) return `${one}[]`;
  return type === '"any"' || type.startsWith("any") ? one : type;
}

test("a planted overload is preferred in a session that finds it", async () => {
  const session = new Client({ connectionString: store.url ?? "" });
  await session.connect();
  await expect(session.query("SELECT unnest('{a}'::text[])")).rejects.toThrow("planted");
  await expect(session.query("SELECT '{a}'::text[] && '{b}'::text[]")).rejects.toThrow("planted");
  await session.end();
});

test("every command and every request is as without them", async () => {
  await place.import({ ...shop(), entries: shop().entries });
  for (const line of ["migrate", "build", "build --full", "verify", "status", "usage", "doctor", "doctor --fix"]) {
    const { code, stderr } = await place.call(line);
    expect([line, code, stderr]).toEqual([line, 0, ""]);
  }
  const server = await place.serve("--memory-cache 0");
  for (const { target, ...asked } of fc.sample(arbitraryRequest([shop()]), { numRuns: 300, seed: 1 }))
    expect((await server.get(target, asked)).status, target).toBeLessThan(500);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: "" });
});

test("a CMS whose session finds them writes entries all the same", async () => {
  const session = new Client({ connectionString: store.url ?? "" });
  await session.connect();
  await session.query("UPDATE precast.entries SET data = data::text::jsonb, updated_at = '2026-03-01'");
  await session.query("UPDATE precast.entries SET status = 'draft'");
  await session.query("UPDATE precast.entries SET status = 'published'");
  await session.query("DELETE FROM precast.entries");
  await session.query("DELETE FROM precast.content_types");
  await session.end();
});
