/** A page that is too large to be held as a text in Node.js fails alone: the server goes on. */
import { expect, test } from "vitest";
import { openApiServer, openStore } from "../support/site.ts";

test("a page of 600 MB gets 500, and smaller ones are answered", async () => {
  const store = await openStore("postgres", { queryTimeout: 60_000 });
  const api = await openApiServer(store);
  await store.database.execute(`
    INSERT INTO precast.apps (key) VALUES ('maps');
    INSERT INTO precast.content_types (app_id, slug) SELECT id, 'areas' FROM precast.apps;
    INSERT INTO precast.fields (content_type_id, name, position, type)
      SELECT id, 'shape', 1, 'json' FROM precast.content_types;
    INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
      SELECT type.id, gen_random_uuid(), 'published', now(), jsonb_build_object('shape', array_fill(1e100000, '{60}'))
      FROM precast.content_types AS type, generate_series(1, 100);`);
  const statusOf = async (perPage: number) =>
    (await api.get(`/api/v1/areas?per_page=${perPage}`, { appKey: "maps" })).status;
  expect([await statusOf(2), await statusOf(100), await statusOf(3)]).toEqual([200, 500, 200]);
  expect(api.errors.map(String)).toEqual(['Error: a page of "areas" is too large to be answered']);
  await api.close();
  await store.close();
}, 120_000);
