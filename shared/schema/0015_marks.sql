-- Marks: what tells whether the entries of a type are still those that an answer was made of. Each statement that touches
-- entries adds a mark beside its count; the sum of those that a reader sees is the same only while it sees the same entries.

-- By chance, so that databases that go on apart (a restored one, a replica that was promoted) never come to the same sum.
CREATE FUNCTION precast.new_mark() RETURNS numeric LANGUAGE sql VOLATILE AS $$
  SELECT ('x' || right(gen_random_uuid()::text, 12))::bit(48)::bigint::numeric + 1
$$;

ALTER TABLE precast.entry_counts ADD COLUMN mark numeric NOT NULL DEFAULT precast.new_mark();

CREATE OR REPLACE FUNCTION precast.fold_counts(type_id integer) RETURNS void LANGUAGE sql AS $$
  WITH folded AS (
    DELETE FROM precast.entry_counts WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM precast.entry_counts WHERE content_type_id = type_id FOR UPDATE SKIP LOCKED))
    RETURNING change, mark)
  INSERT INTO precast.entry_counts (content_type_id, change, mark)
  SELECT type_id, sum(change), sum(mark) FROM folded HAVING count(*) > 0
$$;

-- A statement that only draws or edits changes no count, and adds a mark all the same.
CREATE OR REPLACE FUNCTION precast.count_entries() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM precast.add_counts(array_agg(content_type_id), array_agg(CASE TG_OP WHEN 'INSERT' THEN entries ELSE -entries END))
  FROM (
    SELECT content_type_id, count(*) FILTER (WHERE status = 'published') AS entries
    FROM written GROUP BY content_type_id) AS counted;
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION precast.count_changes() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- What was emptied is not what it was before anything was in it.
CREATE OR REPLACE FUNCTION precast.count_none() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Even those rows that this transaction's snapshot may not see.
  TRUNCATE precast.entry_counts;
  INSERT INTO precast.entry_counts (content_type_id, change) SELECT id, 0 FROM precast.content_types;
  RETURN NULL;
END
$$;
