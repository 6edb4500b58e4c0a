/**
 * A field that changes its type leaves values that do not fit it. They read as null everywhere: in the entry, lists,
 * filters, sorts, `populate` and the tree; and no request fails because of them.
 */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { runBuild } from "../support/history.ts";
import { type ApiServer, ENGINES, MEDIA, openApiServer, openStore, type Store } from "../support/site.ts";

const KEY = "odd";
const idOf = (index: number) => `00000000-0000-4000-8000-0000000000${String(index + 10)}`;
const asOdd = { appKey: KEY };

const SINGLE: readonly unknown[] = [
  "p",
  "",
  "true",
  "5",
  5,
  -0.5,
  true,
  false,
  null,
  {},
  { a: [] },
  idOf(0),
  idOf(3).toUpperCase(),
  "-".repeat(36),
  "a".repeat(36),
  "00000000-00004000-80000000-0000000001",
  "2026-02-28",
  "2026-03-01",
  "2026-02-31",
  "0000-01-01",
  "2026-02-28T10:00:00.000+00:00",
  "2026-02-28T10:00:00+01:00",
  "2026-02-31T10:00:00.000+00:00",
  "2026-02-28T99:00:00.000+00:00",
  "0000-02-28T10:00:00.000+00:00",
];
const VALUES: readonly unknown[] = [
  ...SINGLE,
  [],
  ["p"],
  ["p", "5"],
  [1, "p"],
  ["p", 1],
  ["p", null, { a: [] }, ["q"]],
  [[], "p"],
  [["p"]],
  [idOf(0)],
  [idOf(0), idOf(1), idOf(0)],
  [idOf(0), "p"],
  ["p", idOf(0)],
  [idOf(3).toUpperCase()],
  ["-".repeat(36)],
  [idOf(0), 'a "quoted\\" b', "c, d"],
];
const ASKED = ["p", "5", "-0.5", "true", "q", "1", idOf(0), idOf(3), "2026-02-28", "2026-02-28T10:00:00Z"];
const TYPES: readonly (readonly [type: string, multiple: boolean])[] = [
  ...["text", "select", "media", "relation", "number", "boolean", "date", "datetime"].map(
    (type) => [type, false] as const,
  ),
  ...["text", "select", "media", "relation"].map((type) => [type, true] as const),
];

type Shown = { readonly id: string; readonly x: unknown };

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let live: ApiServer;
  beforeAll(async () => {
    store = await openStore(engine);
    await store.database.execute(`INSERT INTO precast.apps (key) VALUES ('${KEY}');
      INSERT INTO precast.content_types (app_id, slug) SELECT id, 'things' FROM precast.apps;
      INSERT INTO precast.fields (content_type_id, name, position, type)
        SELECT id, 'x', 1, 'json' FROM precast.content_types;`);
    for (const [index, value] of VALUES.entries())
      await store.database.query(
        sql(
          `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
           SELECT id, $1::uuid, 'published', '2026-01-20', jsonb_build_object('x', $2::jsonb) FROM precast.content_types`,
          [idOf(index), JSON.stringify(value)],
        ),
      );
    live = await openApiServer(store);
  });
  afterAll(async () => {
    expect(live.errors).toEqual([]);
    await live.close();
    await store.close();
  });

  const list = async (query: string): Promise<Shown[]> => {
    const got = await live.get(`/api/v1/things?per_page=100&${query}`, asOdd);
    expect([query, got.status]).toEqual([query, 200]);
    expect([query, got.json.meta.total]).toEqual([query, got.json.data.length]);
    return got.json.data;
  };

  describe.each(TYPES)("a field that becomes %s (multiple: %s)", (type, multiple) => {
    let shown: Shown[];
    beforeAll(async () => {
      const sortable = multiple || type === "relation" ? "{}" : "{x}";
      await store.database.transaction("write", (session) =>
        session.execute(`UPDATE precast.content_types SET filterable_fields = '{}', sortable_fields = '{}';
          UPDATE precast.fields SET type = '${type}', multiple = ${multiple},
            target = ${type === "relation" ? "'things'" : "NULL"};
          UPDATE precast.content_types SET filterable_fields = '{x}', sortable_fields = '${sortable}';`),
      );
      shown = await list("");
    });

    test("shows every entry, and only values of the type", () => {
      expect(shown).toHaveLength(VALUES.length);
      const values = shown.map(({ x }) => x).filter((x) => x !== null);
      expect(values.length).toBeGreaterThan(1);
      const isOne = (value: unknown) => typeof value === (["number", "boolean"].includes(type) ? type : "string");
      for (const value of values) expect(Array.isArray(value) ? value.every(isOne) : isOne(value)).toBe(true);
      for (const value of values) expect(Array.isArray(value)).toBe(multiple);
    });

    test("filters match the values that are shown, and sorts put null last", async () => {
      const idsOf = (entries: readonly Shown[]) => entries.map(({ id }) => id).sort();
      for (const asked of ASKED) {
        const value = encodeURIComponent(asked);
        const found = await list(`filter[x]=${value}`);
        for (const { x } of found) expect(x).not.toBe(null);
        const among = idsOf(found);
        // The empty parts of a list are dropped, and do not find the empty text.
        expect(idsOf(await list(`filter[x][in]=,${value},,nothing`))).toEqual(among);
        const others = idsOf(shown.filter(({ id }) => !among.includes(id)));
        expect(idsOf(await list(`filter[x][neq]=${value}`))).toEqual(others);
        if (type === "text" || type === "relation") {
          const matching = shown.filter(({ x }) => [x].flat().includes(asked));
          expect([asked, among]).toEqual([asked, idsOf(matching)]);
        }
      }
      if (multiple || type === "relation") return;
      const sorted = await list("sort=x");
      const without = sorted.findIndex(({ x }) => x === null);
      expect(sorted.slice(without).every(({ x }) => x === null)).toBe(true);
    });

    test("each entry is answered, also with its relation populated", async () => {
      for (const { id, x } of shown) {
        const got = await live.get(`/api/v1/things/${id}`, asOdd);
        expect([got.status, got.json.data.x]).toEqual([200, x]);
        if (type !== "relation") continue;
        const populated = await live.get(`/api/v1/things/${id}?populate=x`, asOdd);
        const inner = populated.json.data.x;
        const related = Array.isArray(inner) ? inner.map((entry) => entry.id) : (inner?.id ?? null);
        expect([populated.status, related]).toEqual([200, x]);
      }
    });

    test("the tree gives the same bytes as live answers", async () => {
      const out = join(mkdtempSync(join(store.folder, "tree-")), "out");
      await runBuild(store.database, {
        ...{ out, apps: null, full: true, dryRun: false, mediaBaseUrl: MEDIA },
        now: () => new Date(),
      });
      const api = await openApiServer(store, out);
      for (const asked of [...ASKED.map((value) => `?filter[x]=${encodeURIComponent(value)}`), "", "?sort=x"]) {
        const [free, counted] = [
          await api.get(`/api/v1/things${asked}`, asOdd),
          await live.get(`/api/v1/things${asked}`, asOdd),
        ];
        expect([asked, free.text]).toEqual([asked, counted.text]);
      }
      await api.close();
    });
  });
});

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let live: ApiServer;
  beforeAll(async () => {
    store = await openStore(engine);
    live = await openApiServer(store);
  });
  afterAll(async () => {
    expect(live.errors).toEqual([]);
    await live.close();
    await store.close();
  });

  /** Adds a type whose json field `x` holds these values, applies `change` to the field, and then runs `more`. */
  async function retype(slug: string, values: readonly unknown[], change: string, more = ""): Promise<void> {
    const rows = values.map((value, index) => `('${idOf(index)}'::uuid, '${JSON.stringify(value)}'::jsonb)`);
    await store.database.transaction("write", (session) =>
      session.execute(`INSERT INTO precast.apps (key) VALUES ('${slug}');
        INSERT INTO precast.content_types (app_id, slug) SELECT id, '${slug}' FROM precast.apps WHERE key = '${slug}';
        CREATE TEMP TABLE kind ON COMMIT DROP AS SELECT id FROM precast.content_types WHERE slug = '${slug}';
        INSERT INTO precast.fields (content_type_id, name, position, type) SELECT id, 'x', 9, 'json' FROM kind;
        INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
          SELECT kind.id, entry.id, 'published', '2026-01-20', jsonb_build_object('x', value)
          FROM kind, (VALUES ${rows}) AS entry(id, value);
        UPDATE precast.fields SET ${change} WHERE content_type_id = (SELECT id FROM kind); ${more}`),
    );
  }

  const totalOf = async (app: string, target: string) => {
    const got = await live.get(`/api/v1/${app}${target}`, { appKey: app });
    expect([target, got.status]).toEqual([target, 200]);
    return got.json.meta.total;
  };

  test("search finds only texts in a field that has become rich text", async () => {
    const values = [4711, true, { hello: "world" }, ["listed"], "<p>shown</p>"];
    await retype("rich", values, "type = 'rich_text', searchable = true");
    const words = ["4711", "true", "hello", "world", "listed", "shown"];
    const totals = await Promise.all(words.map((word) => totalOf("rich", `/search?q=${word}`)));
    expect(totals).toEqual([0, 0, 0, 0, 0, 1]);
  });

  test.each(["date", "datetime"])(
    "a filter on a %s finds no value that is answered as null, with or without a slot",
    async (type) => {
      const times = ["0000-01-01", "0000-01-01T00:00:00.000+00:00"];
      const asked = [...times, "0000-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"].map(encodeURIComponent);
      const crowd = Array.from({ length: 8 }, (_, index) => `t${index + 1}`);
      const crowded = `INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, name, 1, 'text' FROM kind, unnest('{${crowd}}'::text[]) AS name;`;
      for (const [app, fields, more] of [
        [`alone-${type}`, ["x"], ""],
        [`crowded-${type}`, ["x", ...crowd], crowded],
      ] as const) {
        const lists = `UPDATE precast.content_types SET filterable_fields = '{${fields}}' WHERE slug = '${app}';`;
        await retype(app, [...times, "-", "~"], `type = '${type}'`, `${more} ${lists}`);
        for (const value of asked) {
          expect(await totalOf(app, `?filter[x]=${value}`)).toBe(0);
          expect(await totalOf(app, `?filter[x][in]=${value},nothing`)).toBe(0);
          expect(await totalOf(app, `?filter[x][neq]=${value}`)).toBe(4);
        }
      }
    },
  );
});
