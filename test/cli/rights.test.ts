/**
 * The rights that the role of `serve` needs: it names each missing one and does not start, and answers with all of them.
 * And what a role can build that may only read.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openPlace, type Place, SHOP, shop } from "../support/cli.ts";
import type { Bundle } from "../support/model-bundle.ts";
import { arbitraryRequest } from "../support/requests.ts";
import { openStore, type Store } from "../support/site.ts";

const TEXTS = ["a", "b", "c", "d", "e", "f", "g", "h"];
const text = { label: "", required: false, searchable: false, type: "text" as const };
/** Its text fields take all slots, so its `date` and `datetime` fields are read from the entries' `data`. */
const CROWDED: Bundle["types"][number] = {
  slug: "crowded",
  name: "Crowded",
  description: "",
  icon: "",
  fields: [
    ...TEXTS.map((name) => ({ ...text, name })),
    { ...text, name: "day", type: "date" },
    { ...text, name: "at", type: "datetime" },
  ],
  filterable_fields: ["day", "at"],
  sortable_fields: TEXTS,
};
const BUNDLE: Bundle = { ...shop(), types: [...shop().types, CROWDED] };
/** Requests that the generated ones seldom contain. */
const RARE = ["crowded?filter[day][gt]=2026-01-01", "crowded?filter[at][gt]=2026-01-01T00:00:00Z"];

let store: Store;
let place: Place;
let client: Client;
let role: string;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  client = new Client({ connectionString: store.url ?? "" });
  await client.connect();
  await place.import(BUNDLE);
  // As in a database that was hardened by ALTER DEFAULT PRIVILEGES … REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC.
  await client.query("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA precast FROM PUBLIC");
});
beforeEach(async () => {
  role = `server_${Math.random().toString(36).slice(2)}`;
  await client.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA precast TO ${role};
    GRANT SELECT ON precast.migrations TO ${role}`);
});
afterEach(async () => {
  await place.quit();
  await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
});
afterAll(async () => {
  await place.close();
  await client.end();
  await store.close();
});

function asRole() {
  const url = new URL(store.url ?? "");
  url.username = role;
  return { DATABASE_URL: url.href };
}

/** The rights that `serve` says the role lacks, and the statements that it says the owner should run. */
async function refusal() {
  const { code, stderr } = await place.run("serve --port 0", asRole());
  const [, lacking = "", remedy = ""] = /: it lacks (.*)\. Have the owner run (.*)\.\n$/.exec(stderr) ?? [];
  expect([code, lacking], stderr).toEqual([1, expect.stringMatching(/./)]);
  return { lacking: lacking.split(", "), remedy };
}

test("a role with only the rights that the refusal names starts serve, and no request gets a 500", async () => {
  const { lacking } = await refusal();
  for (const right of lacking) {
    const [, kind, name] = /^(\w+) on (\S+)$/.exec(right) as RegExpExecArray;
    const functions = `SELECT oid::regprocedure::text AS name FROM pg_proc WHERE oid::regproc::text = '${name}'`;
    const names = kind === "EXECUTE" ? (await client.query(functions)).rows.map((row) => row.name) : [name];
    for (const one of names)
      await client.query(`GRANT ${kind} ON ${kind === "EXECUTE" ? "FUNCTION" : ""} ${one} TO ${role}`);
  }
  const server = await place.serve("--memory-cache 0", asRole());
  const rare = RARE.map((path) => ({ target: `/api/v1/${path}`, appKey: SHOP }));
  for (const { target, ...asked } of [...rare, ...fc.sample(arbitraryRequest([BUNDLE]), { numRuns: 500, seed: 1 })]) {
    expect((await server.get(target, asked)).status, target).not.toBe(500);
  }
  expect(await server.stop()).toMatchObject({ code: 0, stderr: "" });
});

test.each([
  "SELECT ON precast.entries",
  "SELECT ON precast.value_counts",
  "SELECT ON precast.entry_words",
  "SELECT ON precast.terms",
  "SELECT ON precast.slots",
  "EXECUTE ON FUNCTION precast.is_day(text)",
  "EXECUTE ON FUNCTION precast.double(text)",
  "EXECUTE ON FUNCTION precast.keys_with(integer, text)",
  "UPDATE ON precast.usage",
])("a role that lacks %s is refused, and accepted after the GRANT that the refusal names", async (right) => {
  await client.query(`GRANT SELECT ON ALL TABLES IN SCHEMA precast TO ${role};
    GRANT INSERT, UPDATE, DELETE ON precast.usage, precast.usage_batches TO ${role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA precast TO ${role}; REVOKE ${right} FROM ${role}`);
  const { lacking, remedy } = await refusal();
  expect(lacking).toEqual([right.replace(/ ON (FUNCTION )?/, " on ").replace(/\(.*/, "")]);
  await client.query(remedy);
  const server = await place.serve("", asRole());
  expect((await server.get("/api/v1/posts?filter[day][gt]=2026-01-01", { appKey: SHOP })).status).toBe(200);
  await server.stop();
});

test("a role is accepted that may read only the needed columns of precast.apps", async () => {
  await client.query(`GRANT SELECT ON ALL TABLES IN SCHEMA precast TO ${role};
    GRANT INSERT, UPDATE, DELETE ON precast.usage, precast.usage_batches TO ${role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA precast TO ${role};
    REVOKE SELECT ON precast.apps FROM ${role}; GRANT SELECT (id, key, name, media_base_url) ON precast.apps TO ${role}`);
  const server = await place.serve("", asRole());
  expect((await server.get("/api/v1/posts", { appKey: SHOP })).status).toBe(200);
  await server.stop();
});

describe("a role that may only read", () => {
  const UNRECORDED = /^The role may read but not write, .* the next build will be full\. .*\n$/;
  const buildReport = (env?: Record<string, string>) =>
    place.json<{ apps: { mode: string; reason: string }[] }>("build --out reading", env);

  beforeEach(async () => {
    rmSync(join(place.folder, "reading"), { recursive: true, force: true });
    await client.query(`GRANT SELECT ON ALL TABLES IN SCHEMA precast TO ${role};
      GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA precast TO ${role}`);
  });

  test.each([
    ["because its transactions are read-only", () => `ALTER ROLE ${role} SET default_transaction_read_only = on`],
    ["because it lacks keep_mark", () => `REVOKE EXECUTE ON FUNCTION precast.keep_mark FROM ${role}`],
  ])("%s builds in full each time, and is told why", async (_, restrict) => {
    await client.query(restrict());
    for (const reason of ["it was not built before", "the database could not record its last build"]) {
      const { code, stdout, stderr } = await place.run("build --out reading --json --quiet", asRole());
      expect([code, stderr]).toEqual([0, expect.stringMatching(UNRECORDED)]);
      expect(JSON.parse(stdout)).toMatchObject({ apps: [{ mode: "full", reason }] });
      expect(await place.run("verify --out reading", asRole())).toMatchObject({ code: 0, stderr: "" });
    }
    expect((await place.run("status --out reading", asRole())).stdout).toContain(
      "by a role that may only read: what has changed since is not known",
    );
    expect((await buildReport()).apps).toMatchObject([{ mode: "full" }]);
    expect((await buildReport()).apps).toMatchObject([{ mode: "incremental" }]);
  });

  test("watches, and is told once", async () => {
    await client.query(`ALTER ROLE ${role} SET default_transaction_read_only = on`);
    const watch = place.start("watch --out reading", asRole());
    await watch.printed(/wrote .* \(full: it was not built before\)\n/);
    await client.query("UPDATE precast.content_types SET name = name || '!' WHERE slug = 'posts'");
    await watch.printed(/wrote .* \(full: the database could not record its last build\)\n/);
    expect(await watch.stop()).toMatchObject({ code: 0, stderr: expect.stringMatching(UNRECORDED) });
  });
});
