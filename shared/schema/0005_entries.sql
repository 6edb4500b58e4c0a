-- Completes every written entry by triggers, whoever writes it: brings values into canonical spelling, moves rich text
-- to `rich`, fills the slots, and records the transaction in `changed_in`. Applies added, changed and removed fields to
-- the shape of their type, its entries and its slots. A change of fields that affects none of these, such as a new label
-- or position, waits for no other transaction.

-- Flags: transaction-local settings by which Precast's own statements tell triggers that fire later in the transaction
-- how to act. The setting of a flag that was never raised in the session is NULL; `is_raised` treats it as lowered.

CREATE FUNCTION precast.raise_flag(flag text) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('precast.' || flag, 'on', true)
$$;

CREATE FUNCTION precast.lower_flag(flag text) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('precast.' || flag, 'off', true)
$$;

-- PostgreSQL inlines this function, also in WHEN conditions of triggers, so that a write does not pay for a function
-- call.
CREATE FUNCTION precast.is_raised(flag text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(current_setting('precast.' || flag, true) = 'on', false)
$$;

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
-- (0006_words.sql).
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
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER stamp_entry;

-- Updates the shapes of some types and rewrites their entries through the triggers: all entries if `names` is null,
-- else those that hold one of the fields `names` in `data`, or one of `in_rich` (the fields that were rich text) in
-- `rich`. Rewriting the others would change nothing. Then assigns the slots.
CREATE FUNCTION precast.refresh_entries(type_ids integer[], names text[] DEFAULT NULL, in_rich text[] DEFAULT '{}')
RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  IF type_ids = '{}' THEN
    RETURN;
  END IF;
  PERFORM precast.refuse_old_snapshot(type_id) FROM unnest(type_ids) AS type_id;
  PERFORM precast.draw_shapes(type_ids);
  -- A concurrent edit may be adding one of these fields to an entry by the old shape: this waits for all such edits. If
  -- all entries are rewritten, the UPDATE itself waits for them.
  PERFORM count(*) FROM (
    SELECT FROM precast.entries WHERE names IS NOT NULL AND content_type_id = ANY (type_ids) FOR NO KEY UPDATE) AS locked;
  PERFORM precast.raise_flag('refreshing');
  -- Rich text can be long, and reading it is most of the cost: `rich` is tested only if one of the fields was rich
  -- text.
  UPDATE precast.entries SET data = data
  WHERE content_type_id = ANY (type_ids)
    AND (names IS NULL OR data ?| names OR CASE WHEN in_rich <> '{}' THEN rich ?| in_rich ELSE false END);
  PERFORM precast.lower_flag('refreshing');
  PERFORM precast.assign_slots(type_id) FROM unnest(type_ids) AS type_id;
END
$$;

CREATE FUNCTION precast.field_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(
    coalesce(array_agg(DISTINCT coalesce(new_fields.content_type_id, old_fields.content_type_id)), '{}'),
    coalesce(array_agg(DISTINCT coalesce(new_fields.name, old_fields.name)), '{}'),
    coalesce(array_agg(DISTINCT old_fields.name) FILTER (WHERE old_fields.type = 'rich_text'), '{}'))
  FROM old_fields FULL JOIN new_fields USING (content_type_id, name)
  WHERE (old_fields.type, old_fields.multiple, old_fields.searchable)
    IS DISTINCT FROM (new_fields.type, new_fields.multiple, new_fields.searchable);
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.field_added_or_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(
    ARRAY(SELECT DISTINCT content_type_id FROM written),
    ARRAY(SELECT DISTINCT name FROM written),
    ARRAY(SELECT DISTINCT name FROM written WHERE type = 'rich_text' AND TG_OP = 'DELETE'));
  RETURN NULL;
END
$$;

-- TRUNCATE does not tell which fields there were, so it rewrites all entries. Runs as the owner, because the role that
-- truncates may not read the types.
CREATE FUNCTION precast.all_fields_removed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  PERFORM precast.refresh_entries(ARRAY(SELECT id FROM precast.content_types));
  RETURN NULL;
END
$$;

CREATE TRIGGER field_changed AFTER UPDATE ON precast.fields
  REFERENCING OLD TABLE AS old_fields NEW TABLE AS new_fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.field_changed();
CREATE TRIGGER field_added AFTER INSERT ON precast.fields
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.field_added_or_removed();
CREATE TRIGGER field_removed AFTER DELETE ON precast.fields
  REFERENCING OLD TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.field_added_or_removed();
CREATE TRIGGER all_fields_removed AFTER TRUNCATE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.all_fields_removed();

-- Rebuilds everything that triggers maintain, after writes while the triggers were off: with DISABLE TRIGGER, with
-- `session_replication_role = replica`, or by a restore of a data-only dump. Writers wait meanwhile. Must be run by the
-- owner of the tables.
CREATE FUNCTION precast.keep_anew() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  types integer[];
BEGIN
  LOCK TABLE precast.content_types, precast.fields, precast.entries IN SHARE ROW EXCLUSIVE MODE;
  types := ARRAY(SELECT id FROM precast.content_types ORDER BY id);
  INSERT INTO precast.slots (content_type_id) SELECT unnest(types) ON CONFLICT DO NOTHING;
  DELETE FROM precast.entry_words AS kept WHERE NOT EXISTS (
    SELECT FROM precast.entries AS e
    WHERE (e.content_type_id, e.id) = (kept.content_type_id, kept.id) AND e.status = 'published');
  PERFORM precast.refresh_entries(types);
  PERFORM precast.add_missing_terms();
  IF NOT precast.counts_are_brought() THEN
    DELETE FROM precast.value_counts;
    PERFORM precast.recount_values(type_id) FROM unnest(types) AS type_id;
    DELETE FROM precast.entry_counts;
    INSERT INTO precast.entry_counts (content_type_id, change)
    SELECT type_id, (SELECT count(*) FROM precast.entries WHERE content_type_id = type_id AND status = 'published')
    FROM unnest(types) AS type_id;
  END IF;
  -- Nothing has recorded what was deleted, moved or renamed meanwhile, so builds must compare each type as a whole with
  -- the tree.
  UPDATE precast.content_types SET begun_in = pg_current_xact_id();
END
$$;
