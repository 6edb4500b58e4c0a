/** Rows that a role may not see are an error, and never count as deleted. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPlace, type Place, shop } from "../support/cli.ts";
import { openStore, type Store } from "../support/site.ts";

const ROLE = `limited_${process.pid}`;

let store: Store;
let place: Place;
let asRole: { readonly DATABASE_URL: string };

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  await place.call("build");
  await store.database.execute(`CREATE ROLE ${ROLE} LOGIN; GRANT USAGE ON SCHEMA precast TO ${ROLE};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA precast TO ${ROLE};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA precast TO ${ROLE};
    ALTER TABLE precast.entries ENABLE ROW LEVEL SECURITY`);
  const url = new URL(store.url ?? "");
  url.username = ROLE;
  asRole = { DATABASE_URL: url.href };
});
afterAll(async () => {
  await place.close();
  await store.database.execute(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`);
  await store.close();
});

const files = () => readdirSync(join(place.folder, "out"), { recursive: true }).length;

test.each(["build", "build --full", "verify", "status"])(
  "%s fails, names row-level security and deletes nothing",
  async (line) => {
    const before = files();
    const { code, stderr } = await place.call(line, asRole);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Row-level security hides rows from the role")]);
    expect(stderr).toContain('"entries"');
    expect(files()).toBe(before);
  },
);

test("serve does not start, names the table, and starts after what it says", async () => {
  const { code, stderr } = await place.run("serve --port 0", asRole);
  expect([code, stderr]).toEqual([1, expect.stringContaining("row-level security hides rows of precast.entries")]);
  expect(stderr).toContain("ALTER TABLE precast.entries DISABLE ROW LEVEL SECURITY");
  await store.database.execute("ALTER TABLE precast.entries DISABLE ROW LEVEL SECURITY");
  const server = await place.serve("", asRole);
  expect(await server.stop()).toMatchObject({ code: 0 });
  await store.database.execute("ALTER TABLE precast.entries ENABLE ROW LEVEL SECURITY");
});

test("doctor finds it on every table of the schema", async () => {
  await store.database.execute("ALTER TABLE precast.value_counts ENABLE ROW LEVEL SECURITY");
  const { code, stdout } = await place.call("doctor --json");
  expect(code).toBe(2);
  const { findings } = JSON.parse(stdout) as { findings: { check: string; subject: string }[] };
  expect(findings.filter(({ check }) => check === "row-security").map(({ subject }) => subject)).toEqual([
    "precast.entries: row-level security",
    "precast.value_counts: row-level security",
  ]);
});
