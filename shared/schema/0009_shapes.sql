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
            'T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{3}[+]00:00$" && !(@@ starts with "0000")'
          ELSE '' END
      END
    END) AS tested(test)
  WHERE test IS NOT NULL
$$;

-- Waits for those who are writing entries of these types, and has others wait: each entry is kept by the fields before or by
-- those after, and whoever keeps entries anew because of the change finds them all.
CREATE FUNCTION precast.draw_shapes(type_ids integer[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  -- A statement of its own: the next one sees the fields that others have committed while this one waited.
  SELECT FROM precast.slots WHERE content_type_id = ANY (type_ids) ORDER BY content_type_id FOR UPDATE;
  UPDATE precast.slots SET (plain, numbers, rich, searched) = (
    SELECT coalesce(string_agg(precast.plain_path(name, type, multiple), ' && ' ORDER BY position, name), 'true')::jsonpath,
      coalesce(array_agg(name ORDER BY position, name) FILTER (WHERE type = 'number'), '{}'),
      coalesce(array_agg(name ORDER BY position, name) FILTER (WHERE type = 'rich_text'), '{}'),
      coalesce(jsonb_agg(jsonb_build_array(name, CASE WHEN multiple THEN 'many' WHEN type = 'rich_text' THEN type ELSE 'text' END)
        ORDER BY position, name) FILTER (WHERE searchable), '[]')
    FROM precast.fields WHERE content_type_id = slots.content_type_id)
  WHERE content_type_id = ANY (type_ids)
$$;

CREATE FUNCTION precast.draw_all_shapes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.draw_shapes(ARRAY(SELECT id FROM precast.content_types));
  RETURN NULL;
END
$$;

CREATE TRIGGER draw_all_shapes AFTER TRUNCATE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.draw_all_shapes();
