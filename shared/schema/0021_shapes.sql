-- Shapes: what a writer of entries has to know of its type's fields, made ready where it looks for their slots. Whoever writes
-- many entries of a type would otherwise ask the table of fields again for each of them, twice.

-- `plain` is true of values that all fit their fields and are spelled as they are stored; of `numbers` it does not see whether they
-- end in zeros. `rich` has what is kept apart, and `searched` what search looks through, each with how it is read:
-- [["title", "text"], ["body", "rich_text"], ["tags", "many"]].
ALTER TABLE precast.slots
  ADD plain    jsonpath NOT NULL DEFAULT 'true',
  ADD numbers  text[] NOT NULL DEFAULT '{}',
  ADD rich     text[] NOT NULL DEFAULT '{}',
  ADD searched jsonb NOT NULL DEFAULT '[]';

-- When is a field's value plain, as far as one look tells? Null where every value is.
CREATE FUNCTION precast.plain_path(name text, type text, multiple boolean) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT format('(%s || !exists(%s) || %2$s.type() == "null")', replace(test, '@@', path), path)
  FROM (SELECT format('$."%s"', name)) AS field(path), LATERAL (
    SELECT CASE
      -- The type of an element is asked before its spelling: a pattern looks into an array within the array.
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
            'T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{3}[+]00:00$" && !(@@ starts with "0000") && !(@@ starts with "9999")'
          ELSE '' END
      END
    END) AS tested(test)
  WHERE test IS NOT NULL
$$;

-- Waits for those who are writing entries of these types, and has others wait: each entry is kept by the fields before or by
-- those after, and whoever keeps entries anew because of the change finds them all.
CREATE FUNCTION precast.draw_shapes(type_ids integer[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE precast.slots SET (plain, numbers, rich, searched) = (
    SELECT coalesce(string_agg(precast.plain_path(name, type, multiple), ' && ' ORDER BY position, name), 'true')::jsonpath,
      coalesce(array_agg(name ORDER BY position, name) FILTER (WHERE type = 'number'), '{}'),
      coalesce(array_agg(name ORDER BY position, name) FILTER (WHERE type = 'rich_text'), '{}'),
      coalesce(jsonb_agg(jsonb_build_array(name, CASE WHEN multiple THEN 'many' WHEN type = 'rich_text' THEN type ELSE 'text' END)
        ORDER BY position, name) FILTER (WHERE searchable), '[]')
    FROM precast.fields WHERE content_type_id = slots.content_type_id)
  WHERE content_type_id = ANY (type_ids)
$$;

-- All that follows from fields that were added, changed or removed (0005 says which those are): the shape, the entries that it
-- keeps, the slots. Whoever changes a label waits for nobody.
CREATE OR REPLACE FUNCTION precast.refresh_entries(type_ids integer[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.draw_shapes(type_ids);
  PERFORM set_config('precast.refreshing', 'on', true);
  UPDATE precast.entries SET data = data WHERE content_type_id = ANY (type_ids);
  PERFORM set_config('precast.refreshing', 'off', true);
  PERFORM precast.assign_slots(type_id) FROM unnest(type_ids) AS type_id;
END
$$;

DROP TRIGGER slots_of_added ON precast.fields;
DROP TRIGGER slots_of_changed ON precast.fields;
DROP TRIGGER slots_of_removed ON precast.fields;
DROP FUNCTION precast.assign_slots_of_fields();

CREATE FUNCTION precast.draw_all_shapes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.draw_shapes(ARRAY(SELECT id FROM precast.content_types));
  RETURN NULL;
END
$$;

CREATE TRIGGER draw_all_shapes AFTER TRUNCATE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.draw_all_shapes();

SELECT precast.draw_shapes(ARRAY(SELECT id FROM precast.content_types));

-- What was written, in canonical spelling; refuses what does not fit.
CREATE FUNCTION precast.canonical_values(type_id integer, id uuid, written jsonb, refreshing boolean) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
  misfit record;
BEGIN
  -- A field that changes its type must not fail on entries that were right before.
  IF NOT refreshing THEN
    SELECT field.* INTO misfit
    FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
    WHERE field.content_type_id = type_id
      AND NOT CASE WHEN field.multiple THEN precast.fits_many(field.type, value) ELSE precast.fits(field.type, value) END
    ORDER BY field.position
    LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'entry %: field "%" must hold %', id, misfit.name,
        CASE WHEN misfit.multiple THEN 'an array of ' || misfit.type || ' values' ELSE 'a ' || misfit.type || ' value' END
        USING ERRCODE = 'check_violation';
    END IF;
  END IF;
  RETURN (
    SELECT written || coalesce(jsonb_object_agg(field.name, precast.canonical(field.type, field.multiple, value)), '{}')
    FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
    WHERE field.content_type_id = type_id AND precast.needs_canonical(field.type, value));
END
$$;

-- Sorts what was written into `data` and `rich` in canonical spelling, refuses what does not fit, and fills the slots; or fills
-- them alone. Rich text that an edit leaves alone stays where it is. The shape is locked until the entry is there for all: a change
-- of the fields must find every entry. It is read in one statement, and what follows are expressions, which cost a tenth of one.
CREATE OR REPLACE FUNCTION precast.keep_entry() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  whole      boolean := TG_NARGS = 0;
  refreshing boolean := coalesce(current_setting('precast.refreshing', true) = 'on', false);
  same_rich  boolean := whole AND TG_OP = 'UPDATE' AND NOT refreshing
    AND NEW.content_type_id = OLD.content_type_id AND NEW.rich = OLD.rich;
  -- Put together anew in either case: what is read from the table may be compressed, and tells nothing of its size.
  written    jsonb := CASE WHEN whole AND NOT same_rich THEN NEW.rich ELSE '{}' END || NEW.data;
  kept       jsonb := CASE WHEN same_rich THEN NEW.rich ELSE '{}' END;
  shape      record;
  is_plain   boolean;
  name       text;
BEGIN
  IF pg_column_size(written) > 2000 THEN
    IF pg_column_size(written - coalesce(
      (SELECT rich FROM precast.slots WHERE content_type_id = NEW.content_type_id), '{}')) > 2000 THEN
      PERFORM precast.give_up_long_slots(NEW.content_type_id, written);
    END IF;
  END IF;
  SELECT map, plain, numbers, rich INTO shape
  FROM precast.slots WHERE content_type_id = NEW.content_type_id FOR SHARE;
  IF NOT FOUND THEN
    RETURN NEW;
  END IF;

  IF whole THEN
    is_plain := written @@ shape.plain;
    FOREACH name IN ARRAY shape.numbers LOOP
      is_plain := is_plain AND coalesce(written ->> name NOT LIKE '%.%0', true);
    END LOOP;
    IF is_plain IS DISTINCT FROM true THEN
      written := precast.canonical_values(NEW.content_type_id, NEW.id, written, refreshing);
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

  NEW.t1 := precast.text_slot(written, shape.map -> 't1');
  NEW.t2 := precast.text_slot(written, shape.map -> 't2');
  NEW.t3 := precast.text_slot(written, shape.map -> 't3');
  NEW.t4 := precast.text_slot(written, shape.map -> 't4');
  NEW.t5 := precast.text_slot(written, shape.map -> 't5');
  NEW.t6 := precast.text_slot(written, shape.map -> 't6');
  NEW.t7 := precast.text_slot(written, shape.map -> 't7');
  NEW.t8 := precast.text_slot(written, shape.map -> 't8');
  NEW.texts := lower(concat(
    precast.line_of('1', NEW.t1, shape.map -> 't1'), precast.line_of('2', NEW.t2, shape.map -> 't2'),
    precast.line_of('3', NEW.t3, shape.map -> 't3'), precast.line_of('4', NEW.t4, shape.map -> 't4'),
    precast.line_of('5', NEW.t5, shape.map -> 't5'), precast.line_of('6', NEW.t6, shape.map -> 't6'),
    precast.line_of('7', NEW.t7, shape.map -> 't7'), precast.line_of('8', NEW.t8, shape.map -> 't8')) COLLATE "und-x-icu");
  NEW.n1 := precast.number_slot(written, shape.map -> 'n1');
  NEW.n2 := precast.number_slot(written, shape.map -> 'n2');
  NEW.n3 := precast.number_slot(written, shape.map -> 'n3');
  NEW.n4 := precast.number_slot(written, shape.map -> 'n4');
  NEW.n5 := precast.number_slot(written, shape.map -> 'n5');
  NEW.n6 := precast.number_slot(written, shape.map -> 'n6');
  RETURN NEW;
END
$$;

DROP TRIGGER keep_slots ON precast.entries;
CREATE TRIGGER keep_slots BEFORE UPDATE OF texts, t1, t2, t3, t4, t5, t6, t7, t8, n1, n2, n3, n4, n5, n6 ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.keep_entry('slots');
DROP FUNCTION precast.fill_slots();
DROP FUNCTION precast.is_plain(text, boolean, jsonb);
