-- How many published entries have a value in each slot, and of fields that have few values, how many have which: totals and
-- the ends of long lists are then known without counting. Kept as the counts of types are (0012): changes that add up.

-- `value` is as text, and null for the fields that are not counted by value.
CREATE TABLE precast.value_counts (
  content_type_id integer NOT NULL,
  slot            text COLLATE "C" NOT NULL,
  value           text COLLATE "C",
  change          bigint NOT NULL
);

CREATE INDEX value_counts_by_value ON precast.value_counts (content_type_id, slot, value) INCLUDE (change);

ALTER TABLE precast.value_counts SET (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_threshold = 1000);

-- The values that an entry has in the slots of a map. Inlined.
CREATE FUNCTION precast.counted_values(entry precast.entries, map jsonb) RETURNS TABLE (slot text, value text)
LANGUAGE sql STABLE AS $$
  SELECT held.slot, CASE WHEN map -> held.slot ->> 1 IN ('select', 'boolean', 'relation') THEN held.value END
  FROM (VALUES ('t1', entry.t1), ('t2', entry.t2), ('t3', entry.t3), ('t4', entry.t4), ('t5', entry.t5), ('t6', entry.t6),
    ('t7', entry.t7), ('t8', entry.t8), ('n1', entry.n1::text), ('n2', entry.n2::text), ('n3', entry.n3::text),
    ('n4', entry.n4::text), ('n5', entry.n5::text), ('n6', entry.n6::text)) AS held(slot, value)
  WHERE held.value IS NOT NULL AND map ? held.slot
$$;

CREATE FUNCTION precast.recount_values(type_id integer) RETURNS void LANGUAGE sql AS $$
  DELETE FROM precast.value_counts WHERE content_type_id = type_id;
  INSERT INTO precast.value_counts (content_type_id, slot, value, change)
  SELECT type_id, counted.slot, counted.value, count(*)
  FROM precast.slots JOIN precast.entries AS e ON e.content_type_id = type_id AND e.status = 'published'
  CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS counted
  WHERE slots.content_type_id = type_id
  GROUP BY counted.slot, counted.value
$$;

-- Adds up what others have committed and nobody else adds up at this moment: of those alone that have several rows.
CREATE FUNCTION precast.fold_values(type_id integer) RETURNS void LANGUAGE sql AS $$
  WITH several AS (
    SELECT slot, value FROM precast.value_counts WHERE content_type_id = type_id GROUP BY slot, value HAVING count(*) > 1),
  folded AS (
    DELETE FROM precast.value_counts WHERE ctid = ANY (ARRAY(
      SELECT kept.ctid FROM precast.value_counts AS kept JOIN several
      ON several.slot = kept.slot AND several.value IS NOT DISTINCT FROM kept.value
      WHERE kept.content_type_id = type_id FOR UPDATE OF kept SKIP LOCKED))
    RETURNING slot, value, change)
  INSERT INTO precast.value_counts (content_type_id, slot, value, change)
  SELECT type_id, slot, value, sum(change) FROM folded GROUP BY slot, value HAVING sum(change) <> 0
$$;

CREATE OR REPLACE FUNCTION precast.add_counts(type_ids integer[], changes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  many    CONSTANT integer := 100;
  crowded integer;
BEGIN
  -- A statement that touched no entry.
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
      PERFORM precast.fold_values(crowded);
    END LOOP;
  END IF;
END
$$;

CREATE FUNCTION precast.count_values_of_some() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
  INSERT INTO precast.value_counts (content_type_id, slot, value, change)
  SELECT type.id, counted.slot, counted.value, sign * count(*)
  FROM written AS e
  -- A type that is deleted takes its entries with it: for those there is nothing to count.
  JOIN precast.content_types AS type ON type.id = e.content_type_id
  JOIN precast.slots ON slots.content_type_id = type.id
  CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS counted
  WHERE e.status = 'published'
  GROUP BY type.id, counted.slot, counted.value;
  RETURN NULL;
END
$$;

-- Whoever fills slots anew counts anew what they hold.
CREATE FUNCTION precast.count_changed_values() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('precast.filling', true) = 'on' THEN
    RETURN NULL;
  END IF;
  INSERT INTO precast.value_counts (content_type_id, slot, value, change)
  SELECT type.id, counted.slot, counted.value, sum(counted.sign)
  FROM precast.content_types AS type
  JOIN precast.slots ON slots.content_type_id = type.id
  CROSS JOIN LATERAL (
    SELECT 1 AS sign, held.* FROM new_entries AS e CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS held
    WHERE e.content_type_id = type.id AND e.status = 'published'
    UNION ALL
    SELECT -1, held.* FROM old_entries AS e CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS held
    WHERE e.content_type_id = type.id AND e.status = 'published') AS counted
  WHERE type.id IN (SELECT content_type_id FROM new_entries UNION SELECT content_type_id FROM old_entries)
  GROUP BY type.id, counted.slot, counted.value HAVING sum(counted.sign) <> 0;
  RETURN NULL;
END
$$;

CREATE TRIGGER count_added_values AFTER INSERT ON precast.entries
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.count_values_of_some();
CREATE TRIGGER count_removed_values AFTER DELETE ON precast.entries
  REFERENCING OLD TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.count_values_of_some();
CREATE TRIGGER count_changed_values AFTER UPDATE ON precast.entries
  REFERENCING OLD TABLE AS old_entries NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION precast.count_changed_values();

CREATE OR REPLACE FUNCTION precast.count_none() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Even those rows that this transaction's snapshot may not see.
  TRUNCATE precast.entry_counts, precast.value_counts;
  INSERT INTO precast.entry_counts (content_type_id, change) SELECT id, 0 FROM precast.content_types;
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION precast.count_no_more() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM precast.entry_counts WHERE content_type_id = OLD.id;
  DELETE FROM precast.value_counts WHERE content_type_id = OLD.id;
  RETURN NULL;
END
$$;

-- As 0010 has it, and then what the slots hold is counted.
CREATE OR REPLACE FUNCTION precast.assign_slots(type_id integer) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before jsonb;
  after  jsonb;
  wanted record;
BEGIN
  SELECT slots.map INTO before FROM precast.slots WHERE content_type_id = type_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT coalesce(jsonb_object_agg(slot, kept), '{}') INTO after
  FROM jsonb_each(before) AS held(slot, kept)
  WHERE slot = 'long' OR EXISTS (
    SELECT FROM precast.wanted_slots(type_id) AS wish
    WHERE wish.field = kept ->> 0 AND wish.type = kept ->> 1 AND slot = ANY (wish.candidates));
  FOR wanted IN
    SELECT wish.field, wish.type, wish.candidates FROM precast.wanted_slots(type_id) AS wish
    WHERE NOT EXISTS (SELECT FROM jsonb_each(after) AS held(slot, kept) WHERE slot <> 'long' AND kept ->> 0 = wish.field)
  LOOP
    after := after || coalesce((
      SELECT jsonb_build_object(slot, jsonb_build_array(wanted.field, wanted.type))
      FROM unnest(wanted.candidates) WITH ORDINALITY AS free(slot, place)
      WHERE NOT after ? slot ORDER BY place LIMIT 1), '{}');
  END LOOP;
  IF after = before THEN
    RETURN;
  END IF;
  UPDATE precast.slots SET map = after WHERE content_type_id = type_id;
  -- Nothing that an answer shows has changed: no build need look at these entries.
  PERFORM set_config('precast.filling', 'on', true);
  UPDATE precast.entries SET t1 = NULL WHERE content_type_id = type_id;
  PERFORM set_config('precast.filling', 'off', true);
  -- Whoever wrote these entries meanwhile is done: the fill has waited for them.
  PERFORM precast.recount_values(type_id);
END
$$;

SELECT precast.recount_values(id) FROM precast.content_types;
