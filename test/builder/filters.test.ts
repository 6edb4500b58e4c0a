/** Each filter value has its own file, also in a type so large that the build reads the values by a query. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiServer, buildSite, ENGINES, openApiServer, openStore, type Store } from "../support/site.ts";

const ODD = ["\ufefffoo", "foo", "=foo", " foo", "foo ", "\ufeff", "\ufeff\ufefffoo", "𝒇oo", "f\u0300oo"];
const MANY = 1_200;

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let tree: ApiServer;
  let live: ApiServer;
  beforeAll(async () => {
    store = await openStore(engine);
    const odd = ODD.map((value, index) => `(${index + 1}, ${literal(value)})`);
    await store.database.transaction("write", (session) =>
      session.execute(`INSERT INTO precast.apps (key) VALUES ('many');
        INSERT INTO precast.content_types (app_id, slug) SELECT id, 'posts' FROM precast.apps;
        INSERT INTO precast.fields (content_type_id, name, position, type) SELECT id, 'kind', 1, 'select' FROM precast.content_types;
        UPDATE precast.content_types SET filterable_fields = '{kind}';
        INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
          SELECT type.id, gen_random_uuid(), 'published', '2026-01-20', jsonb_build_object('kind', value)
          FROM precast.content_types AS type, (
            SELECT 'v' || number FROM generate_series(1, ${MANY}) AS number
            UNION ALL SELECT value FROM (VALUES ${odd}) AS odd(times, value), generate_series(1, times)) AS held(value)`),
    );
    await buildSite(store);
    tree = await openApiServer(store);
    live = await openApiServer(store, join(store.folder, "none"));
  });
  afterAll(async () => {
    await Promise.all([tree, live].map((api) => api.close()));
    await store.close();
  });

  test.each(ODD.map((value, index) => [encodeURIComponent(value), index + 1]))(
    "the filter value %s has a file, equal to the live answer",
    async (value, total) => {
      const target = `/api/v1/posts?filter[kind]=${value}`;
      const [file, answer] = await Promise.all([tree, live].map((api) => api.get(target, { appKey: "many" })));
      expect(file?.headers["cache-status"]).toBe("precast; hit");
      expect(file?.text).toBe(answer?.text);
      expect(file?.json.meta.total).toBe(total);
    },
  );
});

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
