-- Queues the apps that a transaction publishes something of, in that transaction, for the workers of `precast work`: no
-- commit is missed, and none that was rolled back is built. Without workers nothing is collected. The queue is that of
-- graphile-worker, whose schema the workers install.

-- Where workers deploy to, and what with: a job of each is added. `settings` has all that the bytes of a tree depend on
-- beside the content: the version of Precast, options, and the server of the database.
CREATE TABLE precast.targets (
  id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  target        text NOT NULL UNIQUE,
  settings      text NOT NULL,
  registered_at timestamptz NOT NULL DEFAULT now()
);

-- The keys of apps that a transaction has published something of, until it commits. Nobody else sees these rows.
CREATE TABLE precast.publications (
  published_in xid8 NOT NULL DEFAULT pg_current_xact_id(),
  app          text COLLATE "C" NOT NULL,
  PRIMARY KEY (published_in, app)
);

CREATE FUNCTION precast.collect_types(types integer[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO precast.publications (app)
  SELECT DISTINCT app.key FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
  WHERE type.id = ANY (types) AND EXISTS (SELECT FROM precast.targets) ORDER BY app.key
  ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION precast.collect_entries() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Who has no workers should not pay for them.
  IF NOT EXISTS (SELECT FROM precast.targets) THEN
    RETURN NULL;
  END IF;
  CASE TG_OP
    WHEN 'INSERT' THEN
      PERFORM precast.collect_types(array_agg(DISTINCT content_type_id)) FROM written WHERE status = 'published';
    WHEN 'DELETE' THEN
      PERFORM precast.collect_types(array_agg(DISTINCT content_type_id)) FROM former WHERE status = 'published';
    ELSE
      PERFORM precast.collect_types(array_agg(DISTINCT content_type_id)) FROM (
        SELECT content_type_id FROM former WHERE status = 'published'
        UNION ALL SELECT content_type_id FROM written WHERE status = 'published') AS published;
  END CASE;
  RETURN NULL;
END
$$;

CREATE TRIGGER collect_added AFTER INSERT ON precast.entries
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.collect_entries();
CREATE TRIGGER collect_changed AFTER UPDATE ON precast.entries
  REFERENCING OLD TABLE AS former NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.collect_entries();
CREATE TRIGGER collect_removed AFTER DELETE ON precast.entries
  REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION precast.collect_entries();

CREATE FUNCTION precast.collect_all() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO precast.publications (app) SELECT key FROM precast.apps WHERE EXISTS (SELECT FROM precast.targets)
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;

CREATE TRIGGER collect_all AFTER TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.collect_all();

-- A definition that is deleted with its app or its type is collected with that.
CREATE FUNCTION precast.collect_definition() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_TABLE_NAME = 'fields' THEN
    PERFORM precast.collect_types(ARRAY[CASE TG_OP WHEN 'INSERT' THEN NULL ELSE OLD.content_type_id END,
                                        CASE TG_OP WHEN 'DELETE' THEN NULL ELSE NEW.content_type_id END]);
  ELSIF TG_OP = 'DELETE' THEN
    PERFORM precast.collect_apps(ARRAY[OLD.app_id]);
  ELSIF TG_OP = 'INSERT' THEN
    PERFORM precast.collect_apps(ARRAY[NEW.app_id]);
  ELSE
    PERFORM precast.collect_apps(ARRAY[OLD.app_id, NEW.app_id]);
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.collect_apps(ids integer[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO precast.publications (app)
  SELECT key FROM precast.apps WHERE id = ANY (ids) AND EXISTS (SELECT FROM precast.targets) ORDER BY key
  ON CONFLICT DO NOTHING
$$;

CREATE TRIGGER collect_definition AFTER INSERT OR UPDATE OR DELETE ON precast.content_types
  FOR EACH ROW EXECUTE FUNCTION precast.collect_definition();
CREATE TRIGGER collect_definition AFTER INSERT OR UPDATE OR DELETE ON precast.fields
  FOR EACH ROW EXECUTE FUNCTION precast.collect_definition();

CREATE FUNCTION precast.collect_app() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO precast.publications (app)
  SELECT DISTINCT key FROM unnest(ARRAY[CASE TG_OP WHEN 'INSERT' THEN NULL ELSE OLD.key END,
                                        CASE TG_OP WHEN 'DELETE' THEN NULL ELSE NEW.key END]) AS key
  WHERE key IS NOT NULL AND EXISTS (SELECT FROM precast.targets)
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;

CREATE TRIGGER collect_app AFTER INSERT OR UPDATE OR DELETE ON precast.apps
  FOR EACH ROW EXECUTE FUNCTION precast.collect_app();

-- Adds a job for each of these apps and each target, or for the target `only`. A job that already waits for an app stands
-- for this publication as well.
CREATE FUNCTION precast.add_jobs(apps text[], only_target integer DEFAULT NULL) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  missing text[];
BEGIN
  -- The workers install the schema, and then add jobs for all apps.
  IF to_regclass('graphile_worker.jobs') IS NULL THEN
    RETURN;
  END IF;
  SELECT array_agg(format('%s:%s', target.id, app) ORDER BY target.id, app COLLATE "C") INTO missing
  FROM precast.targets AS target CROSS JOIN unnest(apps) AS app
  WHERE only_target IS NULL OR target.id = only_target;
  -- Two transactions that publish the same apps must not wait for each other.
  IF cardinality(missing) > 1 THEN
    PERFORM pg_advisory_xact_lock(7232278, 1);
  END IF;
  -- When a worker takes the job that waits at this very moment, nothing is added: then once more.
  WHILE missing IS NOT NULL LOOP
    BEGIN
      WITH added AS MATERIALIZED (SELECT job.key FROM graphile_worker.add_jobs((
        SELECT array_agg(row(format('precast:%s', split_part(key, ':', 1)), json_build_object('app', split_part(key, ':', 2)),
                             NULL, NULL, 32767, key, NULL, NULL)::graphile_worker.job_spec)
        FROM unnest(missing) AS key), true) AS job)
      SELECT array_agg(wanted) INTO missing
      FROM unnest(missing) AS wanted WHERE NOT EXISTS (SELECT FROM added WHERE added.key = wanted);
    EXCEPTION WHEN serialization_failure THEN
      -- Another transaction has queued the same app since this one began (REPEATABLE READ): one job more does no harm.
      PERFORM graphile_worker.add_job(format('precast:%s', split_part(key, ':', 1)),
        json_build_object('app', split_part(key, ':', 2)), job_key => format('%s:%s', key, pg_current_xact_id()),
        max_attempts => 32767) FROM unnest(missing) AS key;
      missing := NULL;
    END;
  END LOOP;
END
$$;

-- At commit the first row that is left takes all others of its transaction along.
CREATE FUNCTION precast.enqueue() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  apps text[];
BEGIN
  IF NOT EXISTS (SELECT FROM precast.publications WHERE (published_in, app) = (NEW.published_in, NEW.app)) THEN
    RETURN NULL;
  END IF;
  WITH taken AS (DELETE FROM precast.publications WHERE published_in = NEW.published_in RETURNING app)
  SELECT array_agg(app) INTO apps FROM taken;
  PERFORM precast.add_jobs(apps);
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER enqueue AFTER INSERT ON precast.publications DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION precast.enqueue();

-- With a tree for each app, keep_mark looks for those that were not built for long among thousands, at each build.
CREATE INDEX trees_by_time ON precast.trees (built_at);
