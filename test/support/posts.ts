/** A shop of posts and pages, written in SQL as a CMS does, small enough to know on which page each post is. */

/** Two types with the same definition. The six posts fill three pages, the newest first: post 1 is the oldest. */
export const SHOP = `INSERT INTO precast.apps (key) VALUES ('shop');
INSERT INTO precast.content_types (app_id, slug, per_page, filterable_fields, sortable_fields)
SELECT id, unnest(ARRAY['posts', 'pages']), 2, '{category}', '{title}' FROM precast.apps WHERE key = 'shop';
INSERT INTO precast.fields (content_type_id, name, position, type)
SELECT type.id, field.* FROM precast.content_types AS type,
  (VALUES ('title', 1, 'text'), ('category', 2, 'select')) AS field;
INSERT INTO precast.entries (content_type_id, id, status, published_at, created_at, updated_at, data)
SELECT type.id, ('00000000-0000-4000-8000-00000000000' || n)::uuid, 'published', day, day, day,
  jsonb_build_object('title', type.slug || ' ' || n, 'category', CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END)
FROM precast.content_types AS type, generate_series(1, CASE type.slug WHEN 'posts' THEN 6 ELSE 2 END) AS n,
  LATERAL (SELECT timestamptz '2026-01-01T00:00Z' + n * interval '1 day') AS instant(day);`;

/** SQL condition: the entry is a post. */
export const POSTS = "content_type_id = (SELECT id FROM precast.content_types WHERE slug = 'posts')";

export function idOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

/** SQL condition: the entry is this post. */
export function post(number: number): string {
  return `${POSTS} AND id = '${idOf(number)}'`;
}

/** SQL that inserts a post, newer than those of the shop, with the category `late`. */
export function newPost(number: number): string {
  return `INSERT INTO precast.entries (content_type_id, id, status, published_at, created_at, updated_at, data)
SELECT id, '${idOf(number)}', 'published', day, day, day, '{"title": "late ${number}", "category": "late"}'
FROM precast.content_types, LATERAL (SELECT timestamptz '2026-02-01T00:00Z' + ${number} * interval '1 day') AS instant(day)
WHERE slug = 'posts';`;
}

/** A file of the shop, as a path relative to the tree. */
export function file(path: string): string {
  return `s-shop/v1/${path}`;
}
