-- Lets a transaction that fills an empty database build the indexes of precast.entries after the rows. Sorting all keys
-- at once takes a fraction of the time of adding them one by one. The GIN indexes stay: building them later takes longer
-- than adding to their pending lists, which another session can merge meanwhile.

-- The indexes that the running transaction is to build. Other transactions never see a row.
CREATE TABLE precast.late_indexes (
  name       text PRIMARY KEY,
  definition text NOT NULL
);

-- Drops the B-tree indexes of precast.entries but its primary key, and builds them again at commit, or when
-- `SET CONSTRAINTS ALL IMMEDIATE` runs. Nobody else can read or write entries until the transaction ends. Returns false,
-- and changes nothing, if there are entries, if another transaction uses the table, if the role does not own it, if
-- triggers are off, or if the CMS has a trigger or a key of its own that may be checked at commit: PostgreSQL builds no
-- index while such checks of the table are pending. Not SECURITY DEFINER: the trigger below executes what a table holds,
-- which must not run with the rights of others.
CREATE FUNCTION precast.index_at_commit() RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  index record;
BEGIN
  IF EXISTS (SELECT FROM precast.entries) OR current_setting('session_replication_role') = 'replica'
    OR NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'precast.entries'::regclass), 'USAGE')
    OR NOT EXISTS (
      SELECT FROM pg_trigger
      WHERE tgrelid = 'precast.late_indexes'::regclass AND tgname = 'build_late_index' AND tgenabled IN ('O', 'A'))
    OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'precast.entries'::regclass AND tgdeferrable)
  THEN
    RETURN false;
  END IF;
  LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE NOWAIT;
  IF EXISTS (SELECT FROM precast.entries) THEN
    RAISE lock_not_available USING MESSAGE = 'another transaction has just written entries';
  END IF;
  FOR index IN
    SELECT class.relname AS name, pg_get_indexdef(class.oid) AS definition
    FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid JOIN pg_am AS method ON method.oid = class.relam
    WHERE indrelid = 'precast.entries'::regclass AND method.amname = 'btree' AND NOT indisunique AND indisvalid
      -- The definition does not name the tablespace.
      AND class.reltablespace = 0
    ORDER BY class.oid
  LOOP
    INSERT INTO precast.late_indexes VALUES (index.name, index.definition);
    EXECUTE format('DROP INDEX precast.%I', index.name);
  END LOOP;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

-- Builds one index, and after the last makes the primary key the youngest again (0021_primary_key.sql), unless a key of
-- the CMS refers to it.
CREATE FUNCTION precast.build_late_index() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE NEW.definition;
  DELETE FROM precast.late_indexes WHERE name = NEW.name;
  IF NOT EXISTS (SELECT FROM precast.late_indexes) THEN
    BEGIN
      ALTER TABLE precast.entries DROP CONSTRAINT entries_pkey, ADD PRIMARY KEY (content_type_id, id);
    EXCEPTION WHEN dependent_objects_still_exist THEN
      NULL;
    END;
  END IF;
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER build_late_index AFTER INSERT ON precast.late_indexes
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.build_late_index();
