-- Slots: columns of precast.entries that all types share. A slot holds one field of the entry's type, so that filters
-- and sorts of a large type use indexes as if the type had a table of its own. No database object is created per
-- tenant: each type has a map from slots to fields, and an entry is in the index of each slot that it fills. The map is
-- kept with the shape of the type, by which triggers complete entries (0005_entries.sql).

-- The field in each slot from t1 to t8 and n1 to n6, null where there is none.
CREATE FUNCTION precast.fields_in_slots(map jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY(
    SELECT map -> slot ->> 0
    FROM unnest('{t1,t2,t3,t4,t5,t6,t7,t8,n1,n2,n3,n4,n5,n6}'::text[]) WITH ORDINALITY AS own(slot, place) ORDER BY place)
$$;

-- How the line of each slot from t1 to t8 begins in the column `texts`, which holds the texts of all slots in lower case,
-- so that one index finds substrings and prefixes in all of them: with the number of the slot. Null for slots that have
-- no line, those of fields other than text, select and media.
CREATE FUNCTION precast.line_starts(map jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY(
    SELECT CASE WHEN map -> ('t' || number) ->> 1 IN ('text', 'select', 'media') THEN E'\n' || number END
    FROM generate_series(1, 8) AS number ORDER BY number)
$$;

-- `map` says which field fills which slot, with its type: {"t1": ["title", "text"], "n1": ["price", "number"]}. The key
-- "long" lists the fields that lost their slot because a value is too long for an index. Slots m1 to m4 are not
-- columns: they are for `multiple` fields whose elements are counted (0007_counts.sql). Triggers maintain the map; a
-- query that reads slots must check that the map in its snapshot is the one that it was written for. The table is
-- separate from content_types, so that writers of entries wait only for changes of their type's slots and shape.
--
-- The shape is what the triggers on entries need to know about a type's fields, precomputed in the row that they read
-- anyway. Otherwise they would query precast.fields twice for each written entry. `plain` is a predicate on an entry's
-- values: it is true only if all of them fit their fields and are in canonical spelling. It cannot see trailing zeros of
-- numbers: `numbers` names the number fields, which are checked for those separately. `rich` names the rich-text fields.
-- `searched` lists the searchable fields, each with how to read it:
-- [["title", "text"], ["body", "rich_text"], ["tags", "many"]].
CREATE TABLE precast.slots (
  content_type_id integer PRIMARY KEY REFERENCES precast.content_types ON DELETE CASCADE,
  map             jsonb NOT NULL DEFAULT '{}',
  -- What each written entry needs of the map, as arrays, whose elements are read in a fraction of the time of keys.
  fields          text[] GENERATED ALWAYS AS (precast.fields_in_slots(map)) STORED,
  line_starts     text[] GENERATED ALWAYS AS (precast.line_starts(map)) STORED,
  -- The slots whose values are counted in pairs (0007_counts.sql).
  paired          text[] NOT NULL DEFAULT '{}',
  made_in         xid8 NOT NULL DEFAULT pg_current_xact_id(),
  plain           jsonpath NOT NULL DEFAULT 'true',
  numbers         text[] NOT NULL DEFAULT '{}',
  rich            text[] NOT NULL DEFAULT '{}',
  searched        jsonb NOT NULL DEFAULT '[]'
) WITH (toast_tuple_target = 8160);

-- Every written entry reads `plain`: it is kept in the row, and not compressed.
ALTER TABLE precast.slots ALTER plain SET STORAGE EXTERNAL;

-- Raises feature_not_supported if fields or lists of an existing type change at REPEATABLE READ or SERIALIZABLE. Such a
-- change must be applied to all entries, but a snapshot of the whole transaction lacks entries that were committed
-- after it was taken, and nothing tells whether there are any. A type that this transaction has created has none.
CREATE FUNCTION precast.refuse_old_snapshot(type_id integer) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') AND EXISTS (
    SELECT FROM precast.slots WHERE content_type_id = type_id AND made_in <> pg_current_xact_id())
  THEN
    RAISE EXCEPTION 'content type "%": fields and lists of an existing type can be changed only at READ COMMITTED, because % hides entries that other transactions have committed meanwhile',
      (SELECT slug FROM precast.content_types WHERE id = type_id), upper(current_setting('transaction_isolation'))
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED.';
  END IF;
END
$$;

-- A field's value in the form in which slots compare it; null if it does not fit its field or is longer than 2,000
-- bytes. `field` is [name, type] from the map, or null for an unused slot. Inlined by PostgreSQL.
CREATE FUNCTION precast.text_slot(data jsonb, field jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN jsonb_typeof(data -> (field ->> 0)) = 'string' THEN CASE field ->> 1
    WHEN 'date' THEN CASE WHEN precast.is_day(data ->> (field ->> 0)) THEN data ->> (field ->> 0) END
    WHEN 'datetime' THEN CASE WHEN precast.is_instant(data ->> (field ->> 0)) THEN data ->> (field ->> 0) END
    WHEN 'relation' THEN CASE WHEN precast.is_uuid(data ->> (field ->> 0)) THEN data ->> (field ->> 0) END
    -- A row of a B-tree index takes at most a third of a page, about 2,700 bytes.
    ELSE CASE WHEN octet_length(data ->> (field ->> 0)) <= 2000 THEN data ->> (field ->> 0) END
  END END
$$;

CREATE FUNCTION precast.number_slot(data jsonb, field jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE field ->> 1
    WHEN 'number' THEN precast.double(data -> (field ->> 0))
    ELSE CASE data -> (field ->> 0) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END
  END
$$;

-- A number or boolean as `number_slot` gives it, for a value that is known to fit its field, in two thirds of the time.
-- Inlined by PostgreSQL.
CREATE FUNCTION precast.plain_number(value jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE jsonb_typeof(value)
    WHEN 'number' THEN CASE WHEN octet_length(value #>> '{}') < 300 THEN (value #>> '{}')::float8 ELSE precast.double(value) END
    WHEN 'boolean' THEN value::boolean::integer
  END
$$;

-- Takes the slots from fields whose texts in `data` are too long for an index: each text over 2,000 bytes, and, as
-- every index holds the texts of all slots, the longest ones if all together exceed 2,400 bytes. The key "long" of the
-- map lists these fields from then on: they get no slot while it does. Returns whether a field lost its slot.
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
  -- No other slots take their places in `paired`, because the pairs of those have not been counted.
  UPDATE precast.slots
  SET paired = ARRAY(SELECT slot FROM unnest(paired) WITH ORDINALITY AS counted(slot, place)
      WHERE slot <> ALL (too_long) ORDER BY place),
    map = (map - too_long) || jsonb_build_object('long', coalesce(map -> 'long', '[]')
    || (SELECT jsonb_agg(map -> slot -> 0) FROM unnest(too_long) AS slot WHERE map ? slot))
  WHERE content_type_id = type_id AND map ?| too_long;
  RETURN FOUND;
END
$$;

-- The fields by which lists of a type can be filtered or sorted, with the slots that each may fill; sortable fields
-- first.
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
    -- The name may have been another field's, whose texts were long. No number or element is.
    AND (field.multiple OR field.type IN ('number', 'boolean') OR NOT coalesce(slots.map -> 'long' ? field.name, false))
  ORDER BY sorts DESC NULLS LAST, field.position, field.name
$$;

-- Whether the trigger that calls this function has been fired by the UPDATE that fills the slots of a type, and not by
-- what a trigger of the CMS writes meanwhile: that fires triggers at a greater depth.
CREATE FUNCTION precast.is_filling() RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(current_setting('precast.filling', true) = pg_trigger_depth()::text, false)
$$;

-- Assigns slots to the fields of a type, fills them in all entries, and recounts their values. A field that has a slot
-- keeps it.
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
  -- The UPDATE makes the trigger zz_keep_slots fill all slots.
  PERFORM set_config('precast.filling', (pg_trigger_depth() + 1)::text, true);
  UPDATE precast.entries SET t1 = NULL WHERE content_type_id = type_id;
  PERFORM set_config('precast.filling', '', true);
  -- The UPDATE has waited for all transactions that were writing these entries, so the recount sees what they wrote.
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

-- The part of `plain` for one field, or null if every value of the field is plain. May be false for a canonical value
-- that is unusual, such as a day from 29 to 31 or a very large number: `canonical_values` then looks more closely.
CREATE FUNCTION precast.plain_path(name text, type text, multiple boolean) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT format('(%s || !exists(%s) || %2$s.type() == "null")', replace(test, '@@', path), path)
  FROM (SELECT format('$."%s"', name)) AS field(path), LATERAL (
    SELECT CASE
      -- Tests the types of the elements before their spelling, because like_regex also looks into nested arrays.
      WHEN multiple THEN '@@.type() == "array" && !exists(@@[*].type() ? (@ != "string"))'
        || CASE type WHEN 'relation' THEN ' && !exists(@@[*] ? (!(@ like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")))' ELSE '' END
      ELSE CASE type
        WHEN 'json' THEN NULL
        WHEN 'boolean' THEN '@@.type() == "boolean"'
        WHEN 'number' THEN '@@.type() == "number" && @@ < 1e15 && @@ > -1e15'
        ELSE '@@.type() == "string"' || CASE type
          WHEN 'relation' THEN ' && @@ like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"'
          WHEN 'date' THEN ' && @@ like_regex "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$" && !(@@ starts with "0000")'
          WHEN 'datetime' THEN ' && @@ like_regex "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])'
            'T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{3}[+]00:00$" && !(@@ starts with "0000")'
          ELSE '' END
      END
    END) AS tested(test)
  WHERE test IS NOT NULL
$$;

-- Recomputes the shapes of some types from their fields. Waits for transactions that are inserting entries of these
-- types, and makes later ones wait for this transaction: each entry is written either by the old fields or by the new
-- ones, and a caller that then rewrites entries finds all that were written by the old ones.
CREATE FUNCTION precast.draw_shapes(type_ids integer[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  -- Locks in a statement of its own, so that the next statement sees fields that others committed while this one
  -- waited.
  SELECT FROM precast.slots WHERE content_type_id = ANY (type_ids) ORDER BY content_type_id FOR UPDATE;
  UPDATE precast.slots SET (plain, numbers, rich, searched) = (
    SELECT coalesce(string_agg(precast.plain_path(name, type, multiple), ' && ' ORDER BY name), 'true')::jsonpath,
      coalesce(array_agg(name ORDER BY name) FILTER (WHERE type = 'number'), '{}'),
      coalesce(array_agg(name ORDER BY name) FILTER (WHERE type = 'rich_text'), '{}'),
      coalesce(jsonb_agg(jsonb_build_array(name, CASE WHEN multiple THEN 'many' WHEN type = 'rich_text' THEN type ELSE 'text' END)
        ORDER BY name) FILTER (WHERE searchable), '[]')
    FROM precast.fields WHERE content_type_id = slots.content_type_id)
  WHERE content_type_id = ANY (type_ids)
$$;
