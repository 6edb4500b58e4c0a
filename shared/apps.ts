/** Reads apps from the database, each with its published content types in catalog order. */
import { type App, type ContentType, compareTypes, type Field, LOCAL_MEDIA } from "./api/catalog.ts";
import type { Session } from "./database/database.ts";
import { sql } from "./sql/query.ts";

/** Base URL of media for apps that set none; null for LOCAL_MEDIA. */
export type AppDefaults = { readonly mediaBaseUrl: string | null };

/** Null when no app has this key. */
export async function readApp(
  session: Pick<Session, "query">,
  key: string,
  defaults: AppDefaults,
): Promise<App | null> {
  const text = await readAppText(session, key);
  return text === null ? null : parseApp(text, defaults);
}

/** The app as the JSON text that parseApp reads; null when no app has this key. Equal texts are of equal apps. */
export async function readAppText(session: Pick<Session, "query">, key: string): Promise<string | null> {
  const text = `${APPS} WHERE app.key = $1`;
  const [row] = await session.query({ text, values: [key], recurringPlan: "generic" });
  return row?.[0] ?? null;
}

/** All apps, sorted by key in byte order; or the one with the key `only`, where that is given: there may be thousands. */
export async function readApps(session: Session, defaults: AppDefaults & { readonly only?: string }): Promise<App[]> {
  if (defaults.only !== undefined) return [(await readApp(session, defaults.only, defaults)) ?? []].flat();
  const rows = await session.query(sql(`${APPS} ORDER BY app.key COLLATE "C"`));
  return rows.map(([text]) => parseApp(text as string, defaults));
}

/** Made of `json`, because `jsonb` takes twice as long to make and to print. */
const APPS = `SELECT json_build_object('key', app.key, 'name', app.name, 'media_base_url', app.media_base_url, 'types', ARRAY(
  SELECT json_build_object('type', to_json(type), 'fields', ARRAY(
    SELECT to_json(field) FROM precast.fields AS field
    WHERE field.content_type_id = type.id ORDER BY field.position, field.name))
  FROM precast.content_types AS type WHERE type.app_id = app.id AND type.published))::text
FROM precast.apps AS app`;

type StoredType = { type: Omit<ContentType, "fields">; fields: readonly Field[] };
type StoredApp = { key: string; name: string; media_base_url: string | null; types: readonly StoredType[] };

export function parseApp(text: string, { mediaBaseUrl }: AppDefaults): App {
  const { key, name, media_base_url, types } = JSON.parse(text) as StoredApp;
  return {
    key,
    name,
    media_base_url: media_base_url ?? mediaBaseUrl ?? LOCAL_MEDIA,
    types: types.map(readType).sort(compareTypes),
  };
}

/** Drops row ids: they may differ in a restored database, and a tree must describe its app independently of them. */
function readType({ type, fields }: StoredType): ContentType {
  const { slug, name, description, icon, position, default_sort, per_page } = type;
  const { summary_fields, filterable_fields, sortable_fields } = type;
  return {
    slug,
    name,
    description,
    icon,
    position,
    default_sort,
    per_page,
    summary_fields,
    filterable_fields,
    sortable_fields,
    fields: fields.map(readField),
  };
}

function readField({ name, type, label, required, searchable, multiple, target }: Field): Field {
  return { name, type, label, required, searchable, multiple, target };
}
