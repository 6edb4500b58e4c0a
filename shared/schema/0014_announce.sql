-- Announces on the channel `precast` that content has changed, so that `precast watch` builds at once. PostgreSQL delivers
-- an announcement when its transaction commits, after its rows can be seen, and once however many statements it had:
-- equal announcements of a transaction are one. It carries nothing: what has changed, the build asks the rows.
-- A transaction that announces cannot be prepared for a two-phase commit.

CREATE FUNCTION precast.announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('precast', '');
  RETURN NULL;
END
$$;

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.apps
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.content_types
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();
