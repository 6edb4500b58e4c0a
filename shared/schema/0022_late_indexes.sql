-- Lets a transaction that fills an empty database build the indexes of precast.entries after the rows. Sorting all keys
-- at once takes a fraction of the time of adding them one by one. The GIN indexes stay: building them later takes longer
-- than adding to their pending lists, which another session can merge meanwhile.

-- The indexes that the running transaction is to build. Other transactions never see a row.
CREATE TABLE precast.late_indexes (
  name       text PRIMARY KEY,
  definition text NOT NULL
);

-- Whether the definition of an index says all about it.
CREATE FUNCTION precast.is_all_in_definition(index_oid oid) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT class.reltablespace = 0 AND NOT indisclustered AND NOT indisreplident
    AND obj_description(class.oid, 'pg_class') IS NULL
  FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid WHERE class.oid = index_oid
$$;

-- Drops the B-tree indexes of precast.entries but its primary key, and builds them again at commit, or when
-- `SET CONSTRAINTS ALL IMMEDIATE` runs. Indexes that others have added stay. Nobody else can read or write entries, or
-- change fields and lists, until the transaction ends. Returns false, and changes nothing, if there are entries, if
-- another transaction uses the tables, if the role may not build the indexes, if triggers are off, or if the CMS has a
-- trigger or a key of its own that may be checked at commit: PostgreSQL builds no index while such checks of the table
-- are pending. Not SECURITY DEFINER: the trigger below executes what a table holds, which must not run with the rights
-- of others.
CREATE FUNCTION precast.index_at_commit() RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET default_tablespace = '' AS $$
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
  -- Who changes fields or lists locks slots first, then entries. Waiting with the former for the latter, it would be in a
  -- deadlock with this transaction, whose entries need their type's slots.
  LOCK TABLE precast.slots IN EXCLUSIVE MODE NOWAIT;
  LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE NOWAIT;
  IF EXISTS (SELECT FROM precast.entries) THEN
    RAISE lock_not_available USING MESSAGE = 'another transaction has just written entries';
  END IF;
  -- A rehearsal: where a right is missing, an event trigger forbids it or a cursor is open, it fails now, not at commit.
  CREATE INDEX rehearsal ON precast.entries (changed_in);
  DROP INDEX precast.rehearsal;
  SET CONSTRAINTS precast.build_late_index DEFERRED;
  FOR index IN
    SELECT class.relname AS name, pg_get_indexdef(class.oid) AS definition
    FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid
    WHERE indrelid = 'precast.entries'::regclass AND indisvalid AND precast.is_all_in_definition(class.oid)
      AND class.relname ~ '^entries_by_(publication|creation|edit|change|[tn][1-8])$'
    ORDER BY class.oid
  LOOP
    INSERT INTO precast.late_indexes VALUES (index.name, index.definition);
    EXECUTE format('DROP INDEX precast.%I', index.name);
  END LOOP;
  RETURN true;
-- Whatever has failed, the rows can be written into the indexes.
EXCEPTION WHEN OTHERS THEN
  RETURN false;
END
$$;

-- Builds one index. After the last it adds the terms of all entries (0018_terms.sql), and makes the primary key the
-- youngest again (0021_primary_key.sql), unless somebody has changed it, an object refers to it, or an event trigger
-- forbids it.
CREATE FUNCTION precast.build_late_index() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET default_tablespace = '' AS $$
DECLARE
  key regclass := to_regclass('precast.entries_pkey');
BEGIN
  EXECUTE NEW.definition;
  DELETE FROM precast.late_indexes WHERE name = NEW.name;
  IF EXISTS (SELECT FROM precast.late_indexes) THEN
    RETURN NULL;
  END IF;
  PERFORM precast.add_missing_terms();
  IF precast.is_all_in_definition(key) AND pg_get_indexdef(key)
    = 'CREATE UNIQUE INDEX entries_pkey ON precast.entries USING btree (content_type_id, id)'
  THEN
    BEGIN
      ALTER TABLE precast.entries DROP CONSTRAINT entries_pkey, ADD PRIMARY KEY (content_type_id, id);
    EXCEPTION WHEN OTHERS THEN
      NULL;
    END;
  END IF;
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER build_late_index AFTER INSERT ON precast.late_indexes
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.build_late_index();
