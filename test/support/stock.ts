/** A shop with the fields that a test needs, and goods that it makes up by the thousand and adds by SQL. */

import type { App } from "../../shared/api/catalog.ts";
import { readApp } from "../../shared/apps.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import type { Bundle, BundleField, BundleType } from "./model-bundle.ts";
import { loadBundles, type Store } from "./site.ts";

/** What matters of a type and of its fields. */
type Goods = {
  readonly slug?: string;
  readonly per_page?: number;
  readonly fields: readonly (Pick<BundleField, "name" | "type"> &
    Pick<Partial<BundleField>, "searchable" | "multiple">)[];
  readonly filterable_fields: readonly string[];
  readonly sortable_fields: readonly string[];
};

/** Imports the app `shop` with these types, each of which is called `goods` unless it says otherwise, without entries. */
export async function openShop(store: Store, types: readonly Goods[]): Promise<App> {
  const bundle: Bundle = { app: { key: "shop", name: "Shop" }, types: types.map(typeOf), entries: {} };
  await loadBundles(store, [bundle]);
  return (await readApp(store.database, "shop", { mediaBaseUrl: "" })) as App;
}

function typeOf({ slug = "goods", per_page = 20, fields, filterable_fields, sortable_fields }: Goods): BundleType {
  return {
    slug,
    name: slug,
    description: "",
    icon: "",
    per_page,
    fields: fields.map((field) => ({ label: field.name, required: false, searchable: false, ...field })),
    filterable_fields: [...filterable_fields],
    sortable_fields: [...sortable_fields],
  };
}

/** One of the goods. Times are in milliseconds since 1970; the id is that of its time of publication by default. */
export type Good = {
  readonly id?: string;
  readonly published: number;
  readonly created?: number;
  readonly data: Readonly<Record<string, unknown>>;
};

/** Publishes the goods, in each type of the database. */
export async function addGoods(database: Pick<Database, "query">, goods: readonly Good[]): Promise<void> {
  const insert = `INSERT INTO precast.entries (content_type_id, id, status, published_at, created_at, data)
  SELECT type.id, coalesce(good ->> 'id', md5(good ->> 'published'))::uuid, 'published',
    to_timestamp((good ->> 'published')::float8 / 1000),
    to_timestamp(coalesce(good ->> 'created', good ->> 'published')::float8 / 1000), good -> 'data'
  FROM precast.content_types AS type, jsonb_array_elements($1::jsonb) AS good`;
  await database.query(sql(insert, [JSON.stringify(goods)]));
}
