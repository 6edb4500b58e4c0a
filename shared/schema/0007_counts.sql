-- Counts the published entries of each type, and those that have a value in each slot, so that totals and the catalog
-- need not count them, and keeps marks, which tell whether the entries are still those from which an answer was made. All
-- are stored as changes to be summed: each writer inserts rows of its own and waits for nobody, and the sum of the rows
-- that a reader sees matches the entries that it sees. Each statement that writes entries adds a mark with its change,
-- even if the change is 0: the sum of the marks (the edition of the type) stays the same only while the entries do.

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
)
-- The table has few rows, which are replaced often: autovacuum has to run after a fixed number of dead rows, or they
-- would pile up.
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX entry_counts_by_type ON precast.entry_counts (content_type_id) INCLUDE (change);

-- Neither this table nor value_counts has a key, and rows are deleted from them. Without a replica identity, those
-- deletions, and with them writes of entries, would fail as soon as a publication includes all tables of the database.
-- Before PostgreSQL 16 a logical copy reads the whole table for each of them, which is why longer tables have a key.
ALTER TABLE precast.entry_counts REPLICA IDENTITY FULL;

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

-- The published entries that have a value in each slot, and by value: each value of selects, booleans and relations,
-- each pair of values of the slots in `paired`, and each element of `multiple` fields. Totals are then known without
-- counting, and pages near the end of long lists can be read from the end. `value` is the value as text, or null for
-- fields that are not counted by value. `fresh` marks rows that were added since the last fold. A fold reads only these
-- and the other rows of the same values, so that a field with as many values as entries costs its writers no more than
-- one with few values.
CREATE TABLE precast.value_counts (
  content_type_id integer NOT NULL,
  slot            text COLLATE "C" NOT NULL,
  value           text COLLATE "C",
  change          bigint NOT NULL,
  fresh           boolean NOT NULL DEFAULT true
) WITH (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_threshold = 1000);

CREATE INDEX value_counts_by_value ON precast.value_counts (content_type_id, slot, value) INCLUDE (change);
CREATE INDEX value_counts_fresh ON precast.value_counts (content_type_id) WHERE fresh;

ALTER TABLE precast.value_counts REPLICA IDENTITY FULL;

-- An entry's value in a slot, as text. Inlined by PostgreSQL, so that only the columns of slots are read and not the
-- whole entry with its long values.
CREATE FUNCTION precast.slot_value(entry precast.entries, slot text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE slot WHEN 't1' THEN entry.t1 WHEN 't2' THEN entry.t2 WHEN 't3' THEN entry.t3 WHEN 't4' THEN entry.t4
    WHEN 't5' THEN entry.t5 WHEN 't6' THEN entry.t6 WHEN 't7' THEN entry.t7 WHEN 't8' THEN entry.t8
    WHEN 'n1' THEN entry.n1::text WHEN 'n2' THEN entry.n2::text WHEN 'n3' THEN entry.n3::text
    WHEN 'n4' THEN entry.n4::text WHEN 'n5' THEN entry.n5::text WHEN 'n6' THEN entry.n6::text END
$$;

-- The slots of a map in which an entry has a value, with the value if the field is counted by value, and each distinct
-- element of its `multiple` fields. Elements over 500 bytes are left out: they are too long for the index of the
-- counts. Inlined by PostgreSQL, so that the map is expanded once for all entries.
CREATE FUNCTION precast.counted_values(entry precast.entries, map jsonb) RETURNS TABLE (slot text, value text)
LANGUAGE sql STABLE AS $$
  SELECT held.slot, CASE WHEN held.field ->> 1 IN ('select', 'boolean', 'relation') THEN precast.slot_value(entry, held.slot) END
  FROM jsonb_each(map) AS held(slot, field)
  WHERE precast.slot_value(entry, held.slot) IS NOT NULL
  UNION ALL
  SELECT DISTINCT held.slot, element
  FROM jsonb_each(map) AS held(slot, field)
  CROSS JOIN LATERAL precast.elements(held.field ->> 1, entry.data -> (held.field ->> 0)) AS element
  WHERE held.slot LIKE 'm_' AND octet_length(element) <= 500
$$;

-- The slots of a map whose values are counted in pairs, for lists with two filters. At most five, which makes ten
-- pairs, because each pair is one more row to write when one of its values changes.
CREATE FUNCTION precast.paired_slots(map jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY(
    SELECT held.slot FROM jsonb_each(map) AS held(slot, field)
    WHERE held.slot ~ '^[tn]' AND field ->> 1 IN ('select', 'boolean') ORDER BY held.slot COLLATE "C" LIMIT 5)
$$;

-- An entry's values in the slots that are counted in pairs. Inlined by PostgreSQL, like `slot_value`.
CREATE FUNCTION precast.paired_values(entry precast.entries, slots text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY[precast.slot_value(entry, slots[1]), precast.slot_value(entry, slots[2]), precast.slot_value(entry, slots[3]),
    precast.slot_value(entry, slots[4]), precast.slot_value(entry, slots[5])]
$$;

-- Joins two values into one text. The length of the first value in front makes the text unambiguous.
CREATE FUNCTION precast.pair_of(one text, other text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT octet_length(one)::text || ' ' || one || other
$$;

-- All pairs of the values that an entry has in some slots; `held[i]` is the value in `slots[i]`. Values over 500 bytes,
-- which are too long for the index of the counts, are in no pair.
CREATE FUNCTION precast.counted_pairs(slots text[], held text[]) RETURNS TABLE (slot text, value text)
LANGUAGE sql STABLE AS $$
  SELECT slots[one] || ' ' || slots[other], precast.pair_of(held[one], held[other])
  FROM (VALUES (1, 2), (1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 5)) AS pair(one, other)
  WHERE octet_length(held[one]) <= 500 AND octet_length(held[other]) <= 500
$$;

-- Counts the values of a type from scratch. For the pairs, here as below, entries with the same values in all paired
-- slots are counted together first, because there are many of them. JIT is off: compiling the plan would take as long
-- as running it.
CREATE FUNCTION precast.recount_values(type_id integer) RETURNS void LANGUAGE sql SET jit = off AS $$
  DELETE FROM precast.value_counts WHERE content_type_id = type_id;
  INSERT INTO precast.value_counts (content_type_id, slot, value, change, fresh)
  SELECT type_id, counted.slot, counted.value, count(*), false
  FROM precast.slots JOIN precast.entries AS e ON e.content_type_id = type_id AND e.status = 'published'
  CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS counted
  WHERE slots.content_type_id = type_id
  GROUP BY counted.slot, counted.value
  UNION ALL
  SELECT type_id, counted.slot, counted.value, sum(alike.entries), false
  FROM (
    SELECT slots.paired, precast.paired_values(e, slots.paired) AS held, count(*) AS entries
    FROM precast.slots JOIN precast.entries AS e ON e.content_type_id = type_id AND e.status = 'published'
    WHERE slots.content_type_id = type_id AND cardinality(slots.paired) > 1
    GROUP BY 1, 2) AS alike
  CROSS JOIN LATERAL precast.counted_pairs(alike.paired, alike.held) AS counted
  GROUP BY counted.slot, counted.value
$$;

-- The number of statements in this transaction that are writing entries: each of them records its begin and its end.
-- Such a statement may also change the lists of a type, in a CTE or by a trigger of the CMS, which requires a recount.
-- The recount waits for the end of all such statements, because the entries that they write are counted at their end
-- and would otherwise be counted twice.
CREATE FUNCTION precast.statements_writing() RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('precast.writing', true), ''), '0')::integer
$$;

CREATE FUNCTION precast.statement_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('precast.writing', (precast.statements_writing() + 1)::text, true);
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.recount_in_time(type_id integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF precast.statements_writing() = 0 THEN
    PERFORM precast.recount_values(type_id);
  ELSE
    PERFORM set_config('precast.uncounted', concat_ws(',', nullif(current_setting('precast.uncounted', true), ''), type_id), true);
  END IF;
END
$$;

CREATE FUNCTION precast.statement_ends() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  others    integer := greatest(precast.statements_writing() - 1, 0);
  uncounted text := nullif(current_setting('precast.uncounted', true), '');
BEGIN
  PERFORM set_config('precast.writing', others::text, true), set_config('precast.apart', '', true);
  IF others = 0 AND uncounted IS NOT NULL THEN
    PERFORM set_config('precast.uncounted', '', true);
    PERFORM precast.recount_values(type_id) FROM (SELECT DISTINCT unnest(string_to_array(uncounted, ','))::integer) AS types(type_id);
  END IF;
END
$$;

CREATE TRIGGER statement_begins BEFORE INSERT OR UPDATE OR DELETE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.statement_begins();

-- Folds the fresh rows of a type into one row per value. Skips rows that another transaction is folding at the moment,
-- so that a value may have several rows for a while. Sequential scans are off: after a VACUUM that found only
-- uncommitted rows, the planner takes the table for empty, and would scan all of it for each value.
CREATE FUNCTION precast.fold_values(type_id integer) RETURNS void LANGUAGE sql SET enable_seqscan = off AS $$
  WITH fresh AS (
    DELETE FROM precast.value_counts WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM precast.value_counts WHERE content_type_id = type_id AND fresh FOR UPDATE SKIP LOCKED))
    RETURNING slot, value, change),
  touched AS (SELECT DISTINCT slot, value FROM fresh),
  -- LATERAL, so that each value is looked up by all columns of the index. A plain join may read all values of the type
  -- for each of them.
  settled AS (
    DELETE FROM precast.value_counts WHERE ctid = ANY (ARRAY(
      SELECT kept.place FROM touched CROSS JOIN LATERAL (
        SELECT same.ctid AS place FROM precast.value_counts AS same
        WHERE same.content_type_id = type_id AND same.slot = touched.slot AND same.value = touched.value AND NOT same.fresh
        FOR UPDATE SKIP LOCKED) AS kept))
    RETURNING slot, value, change),
  -- NULL is handled apart, because an index serves `=` and IS NULL but not IS NOT DISTINCT FROM.
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

-- Counts as `counted_values` and `counted_pairs` do, but takes each slot of many entries at once, which is a third less
-- work: entries with the same values in all paired slots are counted together first.
CREATE FUNCTION precast.count_values_of_some() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET jit = off AS $$
DECLARE
  sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
  INSERT INTO precast.value_counts (content_type_id, slot, value, change)
  -- Types that are being deleted have no slots any more: they are left out, as their counts are deleted with them.
  WITH alike AS MATERIALIZED (
    SELECT slots.content_type_id, slots.map, slots.paired, grouped.held, grouped.filled, grouped.entries
    FROM precast.slots JOIN (
      SELECT e.content_type_id, precast.paired_values(e, own.paired) AS held, count(*) AS entries, ARRAY[
        count(e.t1), count(e.t2), count(e.t3), count(e.t4), count(e.t5), count(e.t6), count(e.t7), count(e.t8),
        count(e.n1), count(e.n2), count(e.n3), count(e.n4), count(e.n5), count(e.n6)] AS filled
      FROM written AS e JOIN precast.slots AS own USING (content_type_id)
      WHERE e.status = 'published' GROUP BY 1, 2) AS grouped USING (content_type_id)),
  others AS MATERIALIZED (
    SELECT content_type_id, held.slot, held.field
    FROM precast.slots CROSS JOIN LATERAL jsonb_each(map) AS held(slot, field)
    WHERE content_type_id IN (SELECT content_type_id FROM written) AND held.slot <> ALL (paired)
      AND (held.slot LIKE 'm_' OR held.field ->> 1 IN ('select', 'boolean', 'relation')))
  SELECT alike.content_type_id, counted.slot, counted.value, sign * sum(counted.entries)
  FROM alike CROSS JOIN LATERAL (
    SELECT single.slot, single.value, alike.entries
    FROM unnest(paired, held) AS single(slot, value) WHERE single.value IS NOT NULL
    UNION ALL
    SELECT pair.slot, pair.value, alike.entries FROM precast.counted_pairs(paired, held) AS pair
    UNION ALL
    SELECT own.slot, NULL, own.entries
    FROM unnest('{t1,t2,t3,t4,t5,t6,t7,t8,n1,n2,n3,n4,n5,n6}'::text[], filled) AS own(slot, entries)
    WHERE own.entries > 0 AND map -> own.slot ->> 1 NOT IN ('select', 'boolean', 'relation')) AS counted
  GROUP BY 1, 2, 3
  UNION ALL
  SELECT others.content_type_id, others.slot, precast.slot_value(e, others.slot), sign * count(*)
  FROM others JOIN written AS e USING (content_type_id)
  WHERE e.status = 'published' AND precast.slot_value(e, others.slot) IS NOT NULL
  GROUP BY 1, 2, 3
  UNION ALL
  SELECT others.content_type_id, others.slot, told.element, sign * count(*)
  FROM others JOIN written AS e USING (content_type_id)
  CROSS JOIN LATERAL (
    SELECT DISTINCT element FROM precast.elements(others.field ->> 1, e.data -> (others.field ->> 0)) AS element) AS told
  WHERE e.status = 'published' AND others.slot LIKE 'm_' AND octet_length(told.element) <= 500
  GROUP BY 1, 2, 3;
  PERFORM precast.statement_ends();
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.count_changed_values() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET jit = off AS $$
BEGIN
  -- `assign_slots` recounts the values after it has filled the slots.
  IF precast.is_filling() THEN
    PERFORM precast.statement_ends();
    RETURN NULL;
  END IF;
  -- Each entry finds the slots of its type: a subquery that each type asks anew would read all written entries for each
  -- of many types.
  INSERT INTO precast.value_counts (content_type_id, slot, value, change)
  SELECT counted.content_type_id, counted.slot, counted.value, sum(counted.sign)
  FROM (
    SELECT slots.content_type_id, 1 AS sign, held.*
    FROM new_entries AS e JOIN precast.slots ON slots.content_type_id = e.content_type_id
    CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS held
    WHERE e.status = 'published'
    UNION ALL
    SELECT slots.content_type_id, -1, held.*
    FROM old_entries AS e JOIN precast.slots ON slots.content_type_id = e.content_type_id
    CROSS JOIN LATERAL precast.counted_values(e, slots.map) AS held
    WHERE e.status = 'published') AS counted
  GROUP BY counted.content_type_id, counted.slot, counted.value HAVING sum(counted.sign) <> 0
  UNION ALL
  SELECT alike.content_type_id, counted.slot, counted.value, sum(alike.entries)
  FROM (
    SELECT written.content_type_id, written.paired, written.held, sum(written.sign) AS entries
    FROM (
      SELECT slots.content_type_id, slots.paired, 1 AS sign, precast.paired_values(e, slots.paired) AS held
      FROM new_entries AS e JOIN precast.slots ON slots.content_type_id = e.content_type_id
      WHERE e.status = 'published' AND cardinality(slots.paired) > 1
      UNION ALL
      SELECT slots.content_type_id, slots.paired, -1, precast.paired_values(e, slots.paired)
      FROM old_entries AS e JOIN precast.slots ON slots.content_type_id = e.content_type_id
      WHERE e.status = 'published' AND cardinality(slots.paired) > 1) AS written
    GROUP BY 1, 2, 3 HAVING sum(written.sign) <> 0) AS alike
  CROSS JOIN LATERAL precast.counted_pairs(alike.paired, alike.held) AS counted
  GROUP BY alike.content_type_id, counted.slot, counted.value HAVING sum(alike.entries) <> 0;
  PERFORM precast.statement_ends();
  RETURN NULL;
END
$$;

CREATE TRIGGER count_added_values AFTER INSERT ON precast.entries
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.count_values_of_some();
CREATE TRIGGER count_removed_values AFTER DELETE ON precast.entries
  REFERENCING OLD TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.count_values_of_some();
CREATE TRIGGER count_changed_values AFTER UPDATE ON precast.entries
  REFERENCING OLD TABLE AS old_entries NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION precast.count_changed_values();

-- Folds the counts of types that have more than 20 rows in precast.entry_counts. Builds call it for writers at
-- REPEATABLE READ or SERIALIZABLE, which cannot fold (`add_counts`). A recount locks the type's row in `slots` first.
-- Without that lock it would delete the rows that are folded here and count everything again, but not see the rows that
-- this transaction has put in their place. Types that are being recounted are left out.
CREATE FUNCTION precast.fold_crowded() RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  SELECT precast.fold_counts(content_type_id), precast.fold_values(content_type_id)
  FROM (
    SELECT content_type_id FROM precast.slots
    WHERE content_type_id IN (
      SELECT content_type_id FROM precast.entry_counts GROUP BY content_type_id HAVING count(*) > 20)
    ORDER BY content_type_id FOR SHARE SKIP LOCKED) AS crowded
  WHERE NOT precast.counts_are_brought()
$$;
