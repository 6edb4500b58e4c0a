/** Writes apps, types and entries into Precast's tables as a CMS does: by plain SQL, with every trigger at work. */
import type { Client } from "pg";
import type { ContentType } from "../../../shared/api/catalog.ts";
import type { Article, Person, Stamps } from "./article.ts";

export type Entry = Stamps & { readonly id: string; readonly data: object; readonly rich: object };

export function entryOfArticle({ body, ...article }: Article): Entry {
  return { ...article, rich: { body } };
}

export function entryOfPerson({ bio, ...person }: Person): Entry {
  return { ...person, rich: { bio } };
}

/** Returns the ids of the types. */
export async function defineApp(client: Client, key: string, types: readonly ContentType[]): Promise<number[]> {
  // Within a transaction, a type may name its fields before they exist.
  await client.query("BEGIN");
  const made = await client.query<{ id: number }>("INSERT INTO precast.apps (key, name) VALUES ($1, $1) RETURNING id", [
    key,
  ]);
  const ids: number[] = [];
  for (const type of types) ids.push(await defineType(client, made.rows[0]?.id as number, type));
  await client.query("COMMIT");
  return ids;
}

async function defineType(client: Client, app: number, type: ContentType): Promise<number> {
  const { rows } = await client.query<{ id: number }>(
    `INSERT INTO precast.content_types (app_id, slug, name, description, icon, summary_fields, filterable_fields, sortable_fields)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id`,
    [
      ...[app, type.slug, type.name, type.description, type.icon],
      ...[type.summary_fields, type.filterable_fields, type.sortable_fields],
    ],
  );
  const id = rows[0]?.id as number;
  await client.query(
    `INSERT INTO precast.fields (content_type_id, name, position, type, label, required, searchable, multiple, target)
     SELECT $1, name, place, type, label, required, searchable, multiple, target
     FROM ROWS FROM (jsonb_to_recordset($2::jsonb)
       AS (name text, type text, label text, required boolean, searchable boolean, multiple boolean, target text))
       WITH ORDINALITY AS field(name, type, label, required, searchable, multiple, target, place)`,
    [id, JSON.stringify(type.fields)],
  );
  return id;
}

export async function insertEntries(client: Client, type: number, entries: readonly Entry[]): Promise<void> {
  const of = (read: (entry: Entry) => string) => entries.map(read);
  await client.query({
    name: "insert-entries",
    text: `INSERT INTO precast.entries (content_type_id, id, status, data, rich, published_at, created_at, updated_at)
     SELECT $1, id, 'published', data, rich, published_at, created_at, updated_at
     FROM unnest($2::uuid[], $3::jsonb[], $4::jsonb[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[])
       AS entry(id, data, rich, published_at, created_at, updated_at)`,
    values: [
      type,
      of(({ id }) => id),
      of(({ data }) => JSON.stringify(data)),
      of(({ rich }) => JSON.stringify(rich)),
      of(({ published_at }) => published_at),
      of(({ created_at }) => created_at),
      of(({ updated_at }) => updated_at),
    ],
  });
}
