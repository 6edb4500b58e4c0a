/** Loads the content of the benchmarks into PostgreSQL in batches, then vacuums, analyses and makes a checkpoint. */
import type { Client } from "pg";
import { withClient } from "./client.ts";
import { type AppContent, type Entry, entryOf, FIELDS, FILTERABLE, SORTABLE, TYPE } from "./content.ts";

const BATCH = 2_000;

/** The database must be migrated and empty. */
export async function loadApps(url: string, apps: readonly AppContent[]): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("SET synchronous_commit = off");
    for (const app of apps) await loadApp(client, app);
    await client.query("VACUUM ANALYZE");
    await client.query("CHECKPOINT");
  });
}

async function loadApp(client: Client, { key, first, count, body }: AppContent): Promise<void> {
  const typeId = await defineType(client, key);
  for (let start = first; start < first + count; start += BATCH) {
    const size = Math.min(BATCH, first + count - start);
    await insertEntries(
      client,
      typeId,
      Array.from({ length: size }, (_, index) => entryOf(start + index, body)),
    );
  }
}

async function defineType(client: Client, key: string): Promise<number> {
  const made = await client.query<{ id: number }>(
    `WITH app AS (
       INSERT INTO precast.apps (key, name, media_base_url) VALUES ($1, $1, 'https://media.example.com') RETURNING id)
     INSERT INTO precast.content_types (app_id, slug, name, description, icon)
     SELECT app.id, $2, $3, $4, $5 FROM app RETURNING id`,
    [key, TYPE.slug, TYPE.name, TYPE.description, TYPE.icon],
  );
  const id = made.rows[0]?.id as number;
  const of = <K extends keyof (typeof FIELDS)[number]>(name: K) => FIELDS.map((field) => field[name]);
  await client.query(
    `INSERT INTO precast.fields (content_type_id, name, position, type, label, required, searchable)
     SELECT $1, name, place, type, initcap(name), required, searchable
     FROM unnest($2::text[], $3::text[], $4::boolean[], $5::boolean[])
       WITH ORDINALITY AS field(name, type, required, searchable, place)`,
    [id, of("name"), of("type"), of("required"), of("searchable")],
  );
  const lists = "UPDATE precast.content_types SET filterable_fields = $2, sortable_fields = $3 WHERE id = $1";
  await client.query(lists, [id, FILTERABLE, SORTABLE]);
  return id;
}

async function insertEntries(client: Client, typeId: number, entries: readonly Entry[]): Promise<void> {
  const of = (read: (entry: Entry) => string | null) => entries.map(read);
  await client.query(
    `INSERT INTO precast.entries (content_type_id, id, status, data, rich, published_at, created_at, updated_at)
     SELECT $1, * FROM unnest(
       $2::uuid[], $3::text[], $4::jsonb[], $5::jsonb[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[])`,
    [
      typeId,
      of(({ id }) => id),
      of(({ status }) => status),
      of(({ data }) => JSON.stringify(data)),
      of(({ rich }) => JSON.stringify(rich)),
      of(({ publishedAt }) => publishedAt),
      of(({ createdAt }) => createdAt),
      of(({ updatedAt }) => updatedAt),
    ],
  );
}
