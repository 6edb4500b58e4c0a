-- How many published entries each type has, for totals and the catalog to read and not to count. Kept as changes that add
-- up: whoever writes adds a row of its own and waits for nobody, and what a reader sees adds up to the entries that it sees.

-- No foreign key: TRUNCATE of the types would empty this table too, and what empties the entries cannot do so again.
CREATE TABLE precast.entry_counts (
  content_type_id integer NOT NULL,
  change          bigint NOT NULL
);

CREATE INDEX entry_counts_by_type ON precast.entry_counts (content_type_id) INCLUDE (change);

-- Rows are few and come and go: old ones must not pile up.
ALTER TABLE precast.entry_counts SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Adds up what others have committed and nobody else adds up at this moment.
CREATE FUNCTION precast.fold_counts(type_id integer) RETURNS void LANGUAGE sql AS $$
  WITH folded AS (
    DELETE FROM precast.entry_counts WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM precast.entry_counts WHERE content_type_id = type_id FOR UPDATE SKIP LOCKED))
    RETURNING change)
  INSERT INTO precast.entry_counts SELECT type_id, sum(change) FROM folded HAVING count(*) > 0
$$;

-- A type that is deleted takes its entries with it: for those there is nothing to count.
CREATE FUNCTION precast.add_counts(type_ids integer[], changes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  many    CONSTANT integer := 100;
  crowded integer;
BEGIN
  -- Most edits publish nothing and take nothing back.
  IF type_ids IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO precast.entry_counts (content_type_id, change)
  SELECT added.type_id, added.change FROM unnest(type_ids, changes) AS added(type_id, change)
  JOIN precast.content_types AS type ON type.id = added.type_id;
  -- A transaction that sees one snapshot throughout would fail on what others have added up since.
  IF current_setting('transaction_isolation') = 'read committed' THEN
    FOR crowded IN
      SELECT type_id FROM unnest(type_ids) AS type_id
      WHERE (SELECT count(*) FROM (
        SELECT FROM precast.entry_counts WHERE content_type_id = type_id LIMIT many) AS first) = many
    LOOP
      PERFORM precast.fold_counts(crowded);
    END LOOP;
  END IF;
END
$$;

CREATE FUNCTION precast.count_entries() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM precast.add_counts(array_agg(content_type_id), array_agg(CASE TG_OP WHEN 'INSERT' THEN entries ELSE -entries END))
  FROM (SELECT content_type_id, count(*) AS entries FROM written WHERE status = 'published' GROUP BY 1) AS counted;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.count_changes() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM precast.add_counts(array_agg(content_type_id), array_agg(change))
  FROM (
    SELECT content_type_id, sum(change)::bigint AS change FROM (
      SELECT content_type_id, 1 AS change FROM new_entries WHERE status = 'published'
      UNION ALL
      SELECT content_type_id, -1 FROM old_entries WHERE status = 'published') AS written
    GROUP BY 1 HAVING sum(change) <> 0) AS counted;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.count_none() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Even those rows that this transaction's snapshot may not see.
  TRUNCATE precast.entry_counts;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.count_no_more() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM precast.entry_counts WHERE content_type_id = OLD.id;
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

INSERT INTO precast.entry_counts (content_type_id, change)
SELECT content_type_id, count(*) FROM precast.entries WHERE status = 'published' GROUP BY content_type_id;
