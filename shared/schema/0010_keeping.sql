-- Completes every written entry by triggers, whoever writes it: brings values into canonical spelling, moves rich text
-- to `rich`, fills the slots, and records the transaction in `changed_in`.

-- Returns `written` with its values in canonical spelling. Raises check_violation for a value that does not fit its
-- field, unless the entry had the same value `before`, or `refreshing` is true.
CREATE FUNCTION precast.canonical_values(type_id integer, id uuid, written jsonb, before jsonb, refreshing boolean) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
  misfit record;
BEGIN
  -- A change of a field's type must not fail because of entries that were valid before it.
  IF NOT refreshing THEN
    SELECT field.* INTO misfit
    FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
    WHERE field.content_type_id = type_id AND value IS DISTINCT FROM before -> field.name
      AND NOT CASE WHEN field.multiple THEN precast.fits_many(field.type, value) ELSE precast.fits(field.type, value) END
    ORDER BY field.position
    LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'entry %: field "%" must hold %', id, misfit.name,
        CASE WHEN misfit.multiple THEN 'an array of ' || misfit.type || ' values' ELSE 'a ' || misfit.type || ' value' END
        USING ERRCODE = 'check_violation', HINT = format('A %s value is %s.', misfit.type, CASE misfit.type
          WHEN 'number' THEN 'a JSON number such as 12.5'
          WHEN 'boolean' THEN 'true or false'
          WHEN 'relation' THEN 'the UUID of an entry'
          WHEN 'date' THEN 'a string such as "2026-01-20"'
          WHEN 'datetime' THEN 'a string such as "2026-01-20T15:30:00Z", with Z or an offset'
          ELSE 'a string'
        END);
    END IF;
  END IF;
  RETURN (
    SELECT written || coalesce(jsonb_object_agg(field.name, precast.canonical(field.type, field.multiple, value)), '{}')
    FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
    WHERE field.content_type_id = type_id AND precast.needs_canonical(field.type, value));
END
$$;

-- Locks the entry with this key against deletion and returns whether there is one. Looks it up as `entry_of` does
-- (0007_entry_words.sql).
CREATE FUNCTION precast.lock_entry(type_id integer, entry_id uuid) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_sort = off SET jit = off AS $$
BEGIN
  PERFORM FROM precast.entries AS e
  WHERE e.content_type_id = type_id AND e.id BETWEEN entry_id AND entry_id ORDER BY e.id LIMIT 1 FOR KEY SHARE;
  RETURN FOUND;
END
$$;

-- Distributes the written values to `data` and `rich` in canonical spelling, refuses values that do not fit, and fills
-- the slots. With a trigger argument it only fills the slots. Rich text that an edit does not name stays in `rich`. A
-- change of fields must reach every entry. A new entry therefore locks the shape until its transaction ends. An
-- existing entry needs no such lock: the edit has locked its row, so the change of fields waits for the edit, or the
-- edit has waited for the change. The setting `precast.locked` names the type that this transaction has locked last: a
-- rollback to a savepoint takes back the setting with the lock, and the next entries of the type need no lock of their
-- own. One statement reads the shape; the rest are expressions, each of which costs a tenth of a statement.
CREATE FUNCTION precast.keep_entry() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
  whole      boolean := TG_NARGS = 0;
  refreshing boolean := precast.is_raised('refreshing');
  is_new     boolean := TG_OP = 'INSERT' OR NEW.content_type_id IS DISTINCT FROM OLD.content_type_id;
  same_rich  boolean := whole AND NOT refreshing AND NOT is_new AND NEW.rich = OLD.rich;
  -- `||` makes a new value in either case: one that was read from the table may be compressed, and pg_column_size would
  -- return its compressed size.
  written    jsonb := CASE WHEN whole AND NOT same_rich THEN NEW.rich ELSE '{}' END || NEW.data;
  kept       jsonb := CASE WHEN same_rich THEN NEW.rich ELSE '{}' END;
  this       text := concat_ws(' ', pg_trigger_depth(), NEW.content_type_id, NEW.id);
  is_long    boolean := false;
  shape      record;
  is_plain   boolean;
  numbers    text[];
  name       text;
  fields     text[];
  starts     text[];
BEGIN
  IF pg_column_size(written) > 2000 THEN
    is_long := pg_column_size(written - coalesce(
      (SELECT rich FROM precast.slots WHERE content_type_id = NEW.content_type_id), '{}')) > 2000;
    IF is_long THEN
      PERFORM precast.give_up_long_slots(NEW.content_type_id, written);
    END IF;
  END IF;
  IF is_new AND current_setting('precast.locked', true) IS DISTINCT FROM NEW.content_type_id::text THEN
    -- Locks the type before its shape, in the same order as a deletion of the type, to avoid a deadlock.
    SELECT map, slots.fields, line_starts, plain, slots.numbers, slots.rich INTO shape
    FROM precast.content_types AS type JOIN precast.slots ON slots.content_type_id = type.id
    WHERE type.id = NEW.content_type_id FOR KEY SHARE OF type FOR SHARE OF slots;
    IF FOUND THEN
      PERFORM set_config('precast.locked', NEW.content_type_id::text, true);
    END IF;
  ELSIF NOT is_new AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    -- The snapshot may show an outdated shape. The lock then fails with a serialization error.
    SELECT map, slots.fields, line_starts, plain, slots.numbers, slots.rich INTO shape
    FROM precast.slots WHERE content_type_id = NEW.content_type_id FOR SHARE;
  ELSE
    -- Takes no lock for an existing entry: a change of fields locks the shape and then waits for the entry, which this
    -- edit has locked, so the two would deadlock.
    SELECT map, slots.fields, line_starts, plain, slots.numbers, slots.rich INTO shape
    FROM precast.slots WHERE content_type_id = NEW.content_type_id;
  END IF;
  IF NOT FOUND THEN
    RETURN NEW;
  END IF;
  -- Called again, because other fields may have been given slots before the lock was taken.
  IF is_long THEN
    IF precast.give_up_long_slots(NEW.content_type_id, written) THEN
      SELECT map, slots.fields, line_starts, plain, slots.numbers, slots.rich INTO shape
      FROM precast.slots WHERE content_type_id = NEW.content_type_id;
    END IF;
  END IF;
  -- If the entry exists, leaves NEW as it was written: nothing is inserted, and ON CONFLICT DO UPDATE must find all
  -- written values in `excluded`, rich text included. The lock keeps the entry from being deleted meanwhile. An import
  -- needs `excluded` in stored form, because it compares that with the stored row. If the entry does not exist,
  -- the setting `precast.apart` remembers that rich text is moved out of `data`: should another transaction insert the
  -- entry first, an update instead of this insert would lose that text, and is refused below.
  IF TG_OP = 'INSERT' AND written ?| shape.rich AND NOT precast.is_raised('importing') THEN
    IF precast.lock_entry(NEW.content_type_id, NEW.id) THEN
      RETURN NEW;
    END IF;
    PERFORM set_config('precast.apart', this, true);
  END IF;
  IF same_rich AND current_setting('precast.apart', true) = this AND OLD.changed_in <> pg_current_xact_id() THEN
    RAISE EXCEPTION 'entry %: another transaction has inserted it at the same time; retry the transaction', NEW.id
      USING ERRCODE = 'serialization_failure';
  END IF;

  IF whole THEN
    numbers := shape.numbers;
    -- One expression for six fields takes a third of the time of six turns of the loop.
    is_plain := written @@ shape.plain AND (
      written ->> numbers[1] LIKE '%.%0' OR written ->> numbers[2] LIKE '%.%0' OR written ->> numbers[3] LIKE '%.%0'
      OR written ->> numbers[4] LIKE '%.%0' OR written ->> numbers[5] LIKE '%.%0' OR written ->> numbers[6] LIKE '%.%0'
    ) IS NOT TRUE;
    FOREACH name IN ARRAY numbers[7:] LOOP
      is_plain := is_plain AND coalesce(written ->> name NOT LIKE '%.%0', true);
    END LOOP;
    IF is_plain IS DISTINCT FROM true THEN
      written := precast.canonical_values(NEW.content_type_id, NEW.id, written,
        CASE WHEN is_new THEN '{}' ELSE OLD.rich || OLD.data END, refreshing);
    END IF;
    IF written ?| shape.rich THEN
      FOREACH name IN ARRAY shape.rich LOOP
        IF written ? name THEN
          kept := kept || jsonb_build_object(name, written -> name);
        END IF;
      END LOOP;
      written := written - shape.rich;
    END IF;
    NEW.rich := kept;
    NEW.data := written;
  END IF;

  -- Values that fit their fields, in canonical spelling and not too long for an index, need no further look. Nearly all
  -- entries have no others. While fields change, the map may still be that of the former ones.
  IF is_plain AND NOT is_long AND NOT refreshing THEN
    fields := shape.fields;
    NEW.t1 := written ->> fields[1];
    NEW.t2 := written ->> fields[2];
    NEW.t3 := written ->> fields[3];
    NEW.t4 := written ->> fields[4];
    NEW.t5 := written ->> fields[5];
    NEW.t6 := written ->> fields[6];
    NEW.t7 := written ->> fields[7];
    NEW.t8 := written ->> fields[8];
    NEW.n1 := precast.plain_number(written -> fields[9]);
    NEW.n2 := precast.plain_number(written -> fields[10]);
    NEW.n3 := precast.plain_number(written -> fields[11]);
    NEW.n4 := precast.plain_number(written -> fields[12]);
    NEW.n5 := precast.plain_number(written -> fields[13]);
    NEW.n6 := precast.plain_number(written -> fields[14]);
  ELSE
    NEW.t1 := precast.text_slot(written, shape.map -> 't1');
    NEW.t2 := precast.text_slot(written, shape.map -> 't2');
    NEW.t3 := precast.text_slot(written, shape.map -> 't3');
    NEW.t4 := precast.text_slot(written, shape.map -> 't4');
    NEW.t5 := precast.text_slot(written, shape.map -> 't5');
    NEW.t6 := precast.text_slot(written, shape.map -> 't6');
    NEW.t7 := precast.text_slot(written, shape.map -> 't7');
    NEW.t8 := precast.text_slot(written, shape.map -> 't8');
    NEW.n1 := precast.number_slot(written, shape.map -> 'n1');
    NEW.n2 := precast.number_slot(written, shape.map -> 'n2');
    NEW.n3 := precast.number_slot(written, shape.map -> 'n3');
    NEW.n4 := precast.number_slot(written, shape.map -> 'n4');
    NEW.n5 := precast.number_slot(written, shape.map -> 'n5');
    NEW.n6 := precast.number_slot(written, shape.map -> 'n6');
  END IF;
  starts := shape.line_starts;
  -- Newlines in a text become carriage returns, because a newline begins the line of the next slot.
  NEW.texts := lower(concat(
    starts[1] || replace(NEW.t1, E'\n', E'\r'), starts[2] || replace(NEW.t2, E'\n', E'\r'),
    starts[3] || replace(NEW.t3, E'\n', E'\r'), starts[4] || replace(NEW.t4, E'\n', E'\r'),
    starts[5] || replace(NEW.t5, E'\n', E'\r'), starts[6] || replace(NEW.t6, E'\n', E'\r'),
    starts[7] || replace(NEW.t7, E'\n', E'\r'), starts[8] || replace(NEW.t8, E'\n', E'\r')) COLLATE "und-x-icu");
  -- Filled slots change no answer, so builds need not look at the entry, unless a trigger of the CMS has changed more.
  IF NOT whole AND precast.is_filling()
    AND (NEW.status, NEW.published_at, NEW.created_at, NEW.updated_at, NEW.data, NEW.rich)
    IS NOT DISTINCT FROM (OLD.status, OLD.published_at, OLD.created_at, OLD.updated_at, OLD.data, OLD.rich)
  THEN
    NEW.changed_in := OLD.changed_in;
  END IF;
  RETURN NEW;
END
$$;

-- Triggers fire in the order of their names: the prefix `zz_` makes these fire after triggers that a CMS puts on the
-- table, so that they process what those have changed.
CREATE TRIGGER zz_keep_entry BEFORE INSERT OR UPDATE OF content_type_id, data, rich ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.keep_entry();
CREATE TRIGGER zz_keep_slots BEFORE UPDATE OF texts, t1, t2, t3, t4, t5, t6, t7, t8, n1, n2, n3, n4, n5, n6 ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.keep_entry('slots');

CREATE FUNCTION precast.stamp_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.changed_in := pg_current_xact_id();
  RETURN NEW;
END
$$;

-- Most inserts need no stamp, because it is the default of the column.
CREATE TRIGGER stamp_entry BEFORE INSERT OR UPDATE ON precast.entries
  FOR EACH ROW WHEN (NEW.changed_in IS DISTINCT FROM pg_current_xact_id()) EXECUTE FUNCTION precast.stamp_entry();
