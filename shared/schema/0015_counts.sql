-- Counts the published entries of each type, so that totals and the catalog need not count them, and keeps marks, which
-- tell whether the entries are still those from which an answer was made. Both are stored as changes to be summed: each
-- writer inserts rows of its own and waits for nobody, and the sum of the rows that a reader sees matches the entries
-- that it sees. Each statement that writes entries adds a mark with its change, even if the change is 0: the sum of the
-- marks (the edition of the type) stays the same only while the entries do.

-- A random number from 1 to 2^48, so that databases that diverge (a restored one, a promoted replica) do not arrive at
-- the same sum.
CREATE FUNCTION precast.new_mark() RETURNS numeric LANGUAGE sql VOLATILE AS $$
  SELECT ('x' || right(gen_random_uuid()::text, 12))::bit(48)::bigint::numeric + 1
$$;

-- No foreign key to content_types: TRUNCATE content_types CASCADE would then include this table, and the trigger
-- `count_none` on entries could not truncate it a second time.
CREATE TABLE precast.entry_counts (
  content_type_id integer NOT NULL,
  change          bigint NOT NULL,
  mark            numeric NOT NULL DEFAULT precast.new_mark()
);

CREATE INDEX entry_counts_by_type ON precast.entry_counts (content_type_id) INCLUDE (change);

-- The table has few rows, which are replaced often: autovacuum has to run after a fixed number of dead rows, or they
-- would pile up.
ALTER TABLE precast.entry_counts SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Folds the rows of a type: replaces them by one row with their sums. Skips rows that another transaction is folding at
-- the moment.
CREATE FUNCTION precast.fold_counts(type_id integer) RETURNS void LANGUAGE sql AS $$
  WITH folded AS (
    DELETE FROM precast.entry_counts WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM precast.entry_counts WHERE content_type_id = type_id FOR UPDATE SKIP LOCKED))
    RETURNING change, mark)
  INSERT INTO precast.entry_counts (content_type_id, change, mark)
  SELECT type_id, sum(change), sum(mark) FROM folded HAVING count(*) > 0
$$;

-- Whether logical replication brings the rows of this table. The original adds them up then, and its deletions find only
-- the rows that it has brought: what a fold or a recount of the copy had put in their place would be counted twice.
CREATE FUNCTION precast.counts_are_brought() RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = 'precast.entry_counts'::regclass)
$$;

-- Adds the change `changes[i]` to the count of the type `type_ids[i]`. Leaves out types that are being deleted, because
-- their counts are deleted with them.
CREATE FUNCTION precast.add_counts(type_ids integer[], changes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  many    CONSTANT integer := 100;
  crowded integer;
BEGIN
  -- The statement wrote no entry: array_agg returns null for no rows.
  IF type_ids IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO precast.entry_counts (content_type_id, change)
  SELECT added.type_id, added.change FROM unnest(type_ids, changes) AS added(type_id, change)
  JOIN precast.content_types AS type ON type.id = added.type_id;
  -- At REPEATABLE READ or SERIALIZABLE, folding would fail on rows that others have folded since the snapshot was
  -- taken.
  IF current_setting('transaction_isolation') = 'read committed' THEN
    FOR crowded IN
      SELECT type_id FROM unnest(type_ids) AS type_id
      WHERE (SELECT count(*) FROM (
        SELECT FROM precast.entry_counts WHERE content_type_id = type_id LIMIT many) AS first) = many
    LOOP
      PERFORM precast.fold_counts(crowded);
      PERFORM precast.fold_values(crowded);
    END LOOP;
  END IF;
END
$$;

-- A statement that writes only drafts has a change of 0, and adds a mark all the same.
CREATE FUNCTION precast.count_entries() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  PERFORM precast.add_counts(array_agg(content_type_id), array_agg(CASE TG_OP WHEN 'INSERT' THEN entries ELSE -entries END))
  FROM (
    SELECT content_type_id, count(*) FILTER (WHERE status = 'published') AS entries
    FROM written GROUP BY content_type_id) AS counted;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.count_changes() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  PERFORM precast.add_counts(array_agg(content_type_id), array_agg(change))
  FROM (
    SELECT content_type_id, sum(change)::bigint AS change FROM (
      SELECT content_type_id, (status = 'published')::integer AS change FROM new_entries
      UNION ALL
      SELECT content_type_id, -(status = 'published')::integer FROM old_entries) AS written
    GROUP BY content_type_id) AS counted;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.count_none() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  -- TRUNCATE and not DELETE, because the snapshot of this transaction may lack some rows.
  TRUNCATE precast.entry_counts, precast.value_counts;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.count_no_more() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  DELETE FROM precast.entry_counts WHERE content_type_id = OLD.id;
  DELETE FROM precast.value_counts WHERE content_type_id = OLD.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER count_no_more AFTER DELETE ON precast.content_types
  FOR EACH ROW EXECUTE FUNCTION precast.count_no_more();
CREATE TRIGGER count_added AFTER INSERT ON precast.entries
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.count_entries();
CREATE TRIGGER count_removed AFTER DELETE ON precast.entries
  REFERENCING OLD TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.count_entries();
CREATE TRIGGER count_changed AFTER UPDATE ON precast.entries
  REFERENCING OLD TABLE AS old_entries NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION precast.count_changes();
CREATE TRIGGER count_none AFTER TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.count_none();
