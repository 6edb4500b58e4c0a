-- The indexes of precast.entries, in the order in which they are created, the youngest last: where several indexes cost
-- the same, PostgreSQL takes the youngest. How a transaction that fills an empty database builds them after the rows, and
-- the trigram indexes, which need an extension.

CREATE INDEX entries_by_publication ON precast.entries (content_type_id, published_at DESC, id)
  WHERE status = 'published';

-- Serves equality filters on any field of any content type: `data @> '{"name": "Oslo"}'`.
CREATE INDEX entries_by_value ON precast.entries USING gin (data jsonb_path_ops)
  WHERE status = 'published';

-- Lists are also sorted and filtered by creation and edit time: clients that keep a copy ask for what has changed since
-- a given time.
CREATE INDEX entries_by_creation ON precast.entries (content_type_id, created_at DESC, published_at DESC, id)
  WHERE status = 'published';
CREATE INDEX entries_by_edit ON precast.entries (content_type_id, updated_at DESC, published_at DESC, id)
  WHERE status = 'published';

-- Slots (0004_slots.sql). Each index holds the values of all slots, so that one index-only scan finds and counts what
-- several filters and a sort select together. The other slots are trailing key columns and not INCLUDE columns:
-- PostgreSQL tests a condition on a key column in place and copies only matching tuples out of the index. Index tuples
-- do not become longer by that, and the id before those columns already makes the order unique. Numbers come before
-- texts, because a column behind texts of variable length is slower to read.
CREATE INDEX entries_by_t1 ON precast.entries
  (content_type_id, t1, published_at DESC, id, n1, n2, n3, n4, n5, n6, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t1 IS NOT NULL;
CREATE INDEX entries_by_t2 ON precast.entries
  (content_type_id, t2, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t2 IS NOT NULL;
CREATE INDEX entries_by_t3 ON precast.entries
  (content_type_id, t3, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t3 IS NOT NULL;
CREATE INDEX entries_by_t4 ON precast.entries
  (content_type_id, t4, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t5, t6, t7, t8)
  WHERE status = 'published' AND t4 IS NOT NULL;
CREATE INDEX entries_by_t5 ON precast.entries
  (content_type_id, t5, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t6, t7, t8)
  WHERE status = 'published' AND t5 IS NOT NULL;
CREATE INDEX entries_by_t6 ON precast.entries
  (content_type_id, t6, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t7, t8)
  WHERE status = 'published' AND t6 IS NOT NULL;
CREATE INDEX entries_by_t7 ON precast.entries
  (content_type_id, t7, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t8)
  WHERE status = 'published' AND t7 IS NOT NULL;
CREATE INDEX entries_by_t8 ON precast.entries
  (content_type_id, t8, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7)
  WHERE status = 'published' AND t8 IS NOT NULL;
CREATE INDEX entries_by_n1 ON precast.entries
  (content_type_id, n1, published_at DESC, id, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n1 IS NOT NULL;
CREATE INDEX entries_by_n2 ON precast.entries
  (content_type_id, n2, published_at DESC, id, n1, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n2 IS NOT NULL;
CREATE INDEX entries_by_n3 ON precast.entries
  (content_type_id, n3, published_at DESC, id, n1, n2, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n3 IS NOT NULL;
CREATE INDEX entries_by_n4 ON precast.entries
  (content_type_id, n4, published_at DESC, id, n1, n2, n3, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n4 IS NOT NULL;
CREATE INDEX entries_by_n5 ON precast.entries
  (content_type_id, n5, published_at DESC, id, n1, n2, n3, n4, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n5 IS NOT NULL;
CREATE INDEX entries_by_n6 ON precast.entries
  (content_type_id, n6, published_at DESC, id, n1, n2, n3, n4, n5, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n6 IS NOT NULL;

CREATE INDEX entries_by_change ON precast.entries (content_type_id, changed_in);

-- The primary key is younger than the other B-trees: in a table of few entries, every index that begins with the type
-- costs the same. A session that fills an empty database prepares its statements then, and would keep a plan that reads
-- all of a type to find one entry.
ALTER TABLE precast.entries ADD PRIMARY KEY (content_type_id, id);

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

-- Builds one index. After the last it adds the terms of all entries (0006_words.sql), and makes the primary key the
-- youngest again, unless somebody has changed it, an object refers to it, or an event trigger forbids it.
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

-- Creates trigram indexes that find substrings of terms (0006_words.sql) and of the texts in slots. They need the
-- extension pg_trgm, which comes with PostgreSQL and which the owner of a database may create. Without it the answers
-- are the same, but slower for large types. The indexes contain only texts and not the type: every search would read
-- the index entry of its type as well, and entries of small types are found by the primary key anyway.
DO $$
DECLARE
  operators text;
BEGIN
  IF current_schema() IS NULL THEN
    CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA precast;
  ELSE
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
  END IF;
  SELECT quote_ident(nspname) || '.gin_trgm_ops' INTO operators
  FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX terms_by_part ON precast.terms USING gin (term %s)', operators);
  EXECUTE format('CREATE INDEX entries_by_texts ON precast.entries USING gin (texts %s) WHERE status = ''published''', operators);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN
  -- `precast doctor` recommends the indexes once a type is large enough to need them.
  NULL;
END
$$;

-- Merges the pending lists of all GIN indexes of the schema into the indexes. Until then, each search reads the whole
-- pending list.
CREATE FUNCTION precast.take_in_pending() RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  SELECT gin_clean_pending_list(index.oid) FROM pg_class AS index JOIN pg_am AS method ON method.oid = index.relam
  WHERE index.relnamespace = 'precast'::regnamespace AND index.relkind = 'i' AND method.amname = 'gin'
$$;
