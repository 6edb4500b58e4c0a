-- Adding up touches what was added since the last time, and of what was added up before only the same values: a field with as
-- many values as entries costs its writers no more than one with few.

ALTER TABLE precast.value_counts ADD fresh boolean NOT NULL DEFAULT true;

CREATE INDEX value_counts_fresh ON precast.value_counts (content_type_id) WHERE fresh;

-- Leaves out, as before, what somebody else adds up at this moment: a value may have several rows for a while.
CREATE OR REPLACE FUNCTION precast.fold_values(type_id integer) RETURNS void LANGUAGE sql AS $$
  WITH fresh AS (
    DELETE FROM precast.value_counts WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM precast.value_counts WHERE content_type_id = type_id AND fresh FOR UPDATE SKIP LOCKED))
    RETURNING slot, value, change),
  touched AS (SELECT DISTINCT slot, value FROM fresh),
  settled AS (
    DELETE FROM precast.value_counts WHERE ctid = ANY (ARRAY(
      SELECT kept.ctid FROM touched
      JOIN precast.value_counts AS kept ON kept.slot = touched.slot AND kept.value = touched.value
      WHERE kept.content_type_id = type_id AND NOT kept.fresh FOR UPDATE OF kept SKIP LOCKED))
    RETURNING slot, value, change),
  -- Apart: an index finds what is equal, and NULL, and not what IS NOT DISTINCT FROM another.
  settled_without_value AS (
    DELETE FROM precast.value_counts WHERE ctid = ANY (ARRAY(
      SELECT kept.ctid FROM precast.value_counts AS kept
      WHERE kept.content_type_id = type_id AND NOT kept.fresh AND kept.value IS NULL
        AND kept.slot IN (SELECT slot FROM touched WHERE value IS NULL) FOR UPDATE OF kept SKIP LOCKED))
    RETURNING slot, value, change)
  INSERT INTO precast.value_counts (content_type_id, slot, value, change, fresh)
  SELECT type_id, slot, value, sum(change), false
  FROM (TABLE fresh UNION ALL TABLE settled UNION ALL TABLE settled_without_value) AS folded
  GROUP BY slot, value HAVING sum(change) <> 0
$$;

CREATE OR REPLACE FUNCTION precast.recount_values(type_id integer) RETURNS void LANGUAGE sql AS $$
  DELETE FROM precast.value_counts WHERE content_type_id = type_id;
  INSERT INTO precast.value_counts (content_type_id, slot, value, change, fresh)
  SELECT type_id, counted.slot, counted.value, count(*), false
  FROM precast.slots JOIN precast.entries AS e ON e.content_type_id = type_id AND e.status = 'published'
  CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS counted
  WHERE slots.content_type_id = type_id
  GROUP BY counted.slot, counted.value
$$;
