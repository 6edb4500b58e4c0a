-- Notifies the channel `precast` that content has changed, so that `precast watch` builds at once. PostgreSQL delivers
-- a notification after its transaction has committed and its rows are visible, and only once per transaction, because
-- it merges equal notifications. The payload is empty: the build reads from the rows what has changed. A transaction
-- that has sent a notification cannot be prepared for two-phase commit.

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
