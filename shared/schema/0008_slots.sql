-- Slots: columns of the entries table that all types share, each filled with one field of the entry's type, so that
-- filters and sorts find in a large type what a table made for it alone would have indexes for. Nothing is made for a
-- tenant: a type is a map from slots to fields, and an entry stands in the indexes of the slots that it fills.

ALTER TABLE precast.entries
  ADD COLUMN t1 text COLLATE "und-x-icu",
  ADD COLUMN t2 text COLLATE "und-x-icu",
  ADD COLUMN t3 text COLLATE "und-x-icu",
  ADD COLUMN t4 text COLLATE "und-x-icu",
  ADD COLUMN t5 text COLLATE "und-x-icu",
  ADD COLUMN t6 text COLLATE "und-x-icu",
  ADD COLUMN t7 text COLLATE "und-x-icu",
  ADD COLUMN t8 text COLLATE "und-x-icu",
  ADD COLUMN texts text COLLATE "C",
  ADD COLUMN n1 float8,
  ADD COLUMN n2 float8,
  ADD COLUMN n3 float8,
  ADD COLUMN n4 float8,
  ADD COLUMN n5 float8,
  ADD COLUMN n6 float8;

-- Texts stay in the row, as `data` does: each test of many rows would fetch them one by one.
ALTER TABLE precast.entries
  ALTER COLUMN t1 SET STORAGE MAIN,
  ALTER COLUMN t2 SET STORAGE MAIN,
  ALTER COLUMN t3 SET STORAGE MAIN,
  ALTER COLUMN t4 SET STORAGE MAIN,
  ALTER COLUMN t5 SET STORAGE MAIN,
  ALTER COLUMN t6 SET STORAGE MAIN,
  ALTER COLUMN t7 SET STORAGE MAIN,
  ALTER COLUMN t8 SET STORAGE MAIN,
  ALTER COLUMN texts SET STORAGE MAIN;

-- The fields that fill the slots, with their types: {"t1": ["title", "text"], "n1": ["price", "number"]}. Under "long" the
-- fields that have a value which no index holds. Slots m1 to m4 are no columns: they are for `multiple` fields whose elements are
-- counted (0016_value_counts.sql). Kept by triggers; whoever reads slots must know the map of the same moment.
-- A table of its own, so that whoever writes entries waits for a change of the map, and for no other of the type.
CREATE TABLE precast.slots (
  content_type_id integer PRIMARY KEY REFERENCES precast.content_types ON DELETE CASCADE,
  map             jsonb NOT NULL DEFAULT '{}',
  -- Those that are counted in pairs: of the map at the last count.
  paired          text[] NOT NULL DEFAULT '{}',
  made_in         xid8 NOT NULL DEFAULT pg_current_xact_id()
);

-- What follows from a change of fields and lists must follow for all entries. One snapshot for the whole transaction lacks those that
-- were committed since it was taken, and nothing tells whether there are any; of a type that is new there are none.
CREATE FUNCTION precast.refuse_old_snapshot(type_id integer) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') AND EXISTS (
    SELECT FROM precast.slots WHERE content_type_id = type_id AND made_in <> pg_current_xact_id())
  THEN
    RAISE EXCEPTION 'content type "%": fields and lists of a type that is there can be changed at READ COMMITTED only, for at % nobody sees the entries that others have committed meanwhile',
      (SELECT slug FROM precast.content_types WHERE id = type_id), upper(current_setting('transaction_isolation'))
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED.';
  END IF;
END
$$;

-- A field's value as it compares, null where it does not fit its field. `field` is a name and a type, or null. Inlined.
CREATE FUNCTION precast.text_slot(data jsonb, field jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN jsonb_typeof(data -> (field ->> 0)) = 'string' THEN CASE field ->> 1
    WHEN 'date' THEN CASE WHEN precast.is_day(data ->> (field ->> 0)) THEN data ->> (field ->> 0) END
    WHEN 'datetime' THEN CASE WHEN precast.is_instant(data ->> (field ->> 0)) THEN data ->> (field ->> 0) END
    WHEN 'relation' THEN CASE WHEN precast.is_uuid(data ->> (field ->> 0)) THEN data ->> (field ->> 0) END
    -- An index takes a third of a page at most.
    ELSE CASE WHEN octet_length(data ->> (field ->> 0)) <= 2000 THEN data ->> (field ->> 0) END
  END END
$$;

CREATE FUNCTION precast.number_slot(data jsonb, field jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE field ->> 1
    WHEN 'number' THEN precast.double(data -> (field ->> 0))
    ELSE CASE data -> (field ->> 0) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END
  END
$$;

-- What the texts of slots say in lower case, each a line that begins with the number of its slot: so that one index finds parts
-- and beginnings of texts. Ends of lines within a text become returns.
CREATE FUNCTION precast.line_of(slot text, value text, field jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN field ->> 1 IN ('text', 'select', 'media') THEN E'\n' || slot || replace(value, E'\n', E'\r') ELSE '' END
$$;

-- A field that holds more than an index does has no slot from then on. All texts stand in one together: the longest give way. Tells
-- whether any did.
CREATE FUNCTION precast.give_up_long_slots(type_id integer, data jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  too_long text[] := ARRAY(
    SELECT slot FROM (
      SELECT slot, size, sum(size) OVER (ORDER BY size, slot) AS together
      FROM precast.slots CROSS JOIN jsonb_each(map) AS held(slot, field),
      LATERAL (SELECT octet_length(data ->> (field ->> 0)) AS size) AS measured
      WHERE content_type_id = type_id AND slot LIKE 't_' AND jsonb_typeof(data -> (field ->> 0)) = 'string') AS texts
    WHERE size > 2000 OR together > 2400);
BEGIN
  IF too_long = '{}' THEN
    RETURN false;
  END IF;
  -- No other slot is counted in pairs in place of these: nobody has counted it.
  UPDATE precast.slots
  SET paired = ARRAY(SELECT slot FROM unnest(paired) WITH ORDINALITY AS counted(slot, place)
      WHERE slot <> ALL (too_long) ORDER BY place),
    map = (map - too_long) || jsonb_build_object('long', coalesce(map -> 'long', '[]')
    || (SELECT jsonb_agg(map -> slot -> 0) FROM unnest(too_long) AS slot WHERE map ? slot))
  WHERE content_type_id = type_id AND map ?| too_long;
  RETURN FOUND;
END
$$;

-- The fields that lists are filtered and sorted by, with the slots that each may fill: those that sort come first.
CREATE FUNCTION precast.wanted_slots(type_id integer) RETURNS TABLE (field text, type text, candidates text[])
LANGUAGE sql STABLE AS $$
  SELECT field.name, field.type, CASE WHEN field.multiple THEN ARRAY['m1', 'm2', 'm3', 'm4']
    WHEN field.type IN ('number', 'boolean') THEN ARRAY['n1', 'n2', 'n3', 'n4', 'n5', 'n6']
    ELSE ARRAY['t1', 't2', 't3', 't4', 't5', 't6', 't7', 't8'] END
  FROM precast.content_types AS type
  JOIN precast.slots ON slots.content_type_id = type.id
  JOIN precast.fields AS field ON field.content_type_id = type.id,
  LATERAL (SELECT field.name = ANY (type.sortable_fields) OR field.name = ltrim(type.default_sort, '-') AS sorts) AS used
  WHERE type.id = type_id
    AND CASE WHEN field.multiple THEN field.type IN ('select', 'relation') ELSE field.type NOT IN ('rich_text', 'json') END
    AND (sorts OR field.name = ANY (type.filterable_fields))
    AND NOT coalesce(slots.map -> 'long' ? field.name, false)
  ORDER BY sorts DESC NULLS LAST, field.position, field.name
$$;

-- Gives the fields their slots, fills them, and counts what they hold. A field that has one keeps it.
CREATE FUNCTION precast.assign_slots(type_id integer) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
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
    SELECT wish.field, wish.type, wish.candidates
    FROM precast.wanted_slots(type_id) WITH ORDINALITY AS wish(field, type, candidates, place)
    WHERE NOT EXISTS (SELECT FROM jsonb_each(after) AS held(slot, kept) WHERE slot <> 'long' AND kept ->> 0 = wish.field)
    ORDER BY wish.place
  LOOP
    after := after || coalesce((
      SELECT jsonb_build_object(slot, jsonb_build_array(wanted.field, wanted.type))
      FROM unnest(wanted.candidates) WITH ORDINALITY AS free(slot, place)
      WHERE NOT after ? slot ORDER BY place LIMIT 1), '{}');
  END LOOP;
  IF after = before THEN
    RETURN;
  END IF;
  PERFORM precast.refuse_old_snapshot(type_id);
  UPDATE precast.slots SET map = after, paired = precast.paired_slots(after) WHERE content_type_id = type_id;
  -- Nothing that an answer shows has changed: no build need look at these entries.
  PERFORM precast.raise_flag('filling');
  UPDATE precast.entries SET t1 = NULL WHERE content_type_id = type_id;
  PERFORM precast.lower_flag('filling');
  -- Whoever wrote these entries meanwhile is done: the fill has waited for them.
  PERFORM precast.recount_in_time(type_id);
END
$$;

CREATE FUNCTION precast.assign_slots_of_type() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO precast.slots (content_type_id) VALUES (NEW.id);
  END IF;
  PERFORM precast.assign_slots(NEW.id);
  RETURN NULL;
END
$$;

CREATE TRIGGER assign_slots AFTER INSERT ON precast.content_types
  FOR EACH ROW EXECUTE FUNCTION precast.assign_slots_of_type();
CREATE TRIGGER assign_slots_anew AFTER UPDATE ON precast.content_types
  FOR EACH ROW WHEN ((OLD.filterable_fields, OLD.sortable_fields, OLD.default_sort)
    IS DISTINCT FROM (NEW.filterable_fields, NEW.sortable_fields, NEW.default_sort))
  EXECUTE FUNCTION precast.assign_slots_of_type();

-- They hold the values of all slots: what several filters and a sort ask for together is found and counted in one of them,
-- without a look at the entries. The values of the other slots stand behind the key and not beside it: a filter on one of them is
-- tested on the tuple of the index as it lies there, and what does not pass is never taken out of it. No tuple is longer for it,
-- and the id before them decides every order. Numbers stand first: they are read past texts of any length otherwise.
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
