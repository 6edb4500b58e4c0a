-- Queues an app under the key that it has when what was published of it becomes visible. A transaction that edits an entry
-- locks the type and the app as the foreign key of a new entry does, so that whoever renames the app, or moves the type to
-- another one, waits for it (or it for them). Otherwise the edit would be queued under a key that no app has any more.

CREATE OR REPLACE FUNCTION precast.collect_types(types integer[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  -- Before the app is looked up: a type that was being moved is then found where it is.
  SELECT FROM precast.content_types WHERE id = ANY (types) AND EXISTS (SELECT FROM precast.targets)
  ORDER BY id FOR KEY SHARE;
  SELECT precast.collect_apps(ARRAY(SELECT app_id FROM precast.content_types WHERE id = ANY (types)))
$$;

CREATE OR REPLACE FUNCTION precast.collect_apps(ids integer[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO precast.publications (app)
  SELECT key FROM (
    SELECT id, key FROM precast.apps WHERE id = ANY (ids) AND EXISTS (SELECT FROM precast.targets)
    ORDER BY id FOR KEY SHARE) AS app
  ORDER BY key
  ON CONFLICT DO NOTHING
$$;
