-- Shapes: what the triggers on entries need to know about a type's fields, precomputed in the row of precast.slots that
-- they read anyway. Otherwise they would query precast.fields twice for each written entry.

-- `plain` is a predicate on an entry's values: it is true only if all of them fit their fields and are in canonical
-- spelling. It cannot see trailing zeros of numbers: `numbers` names the number fields, which are checked for those
-- separately. `rich` names the rich-text fields. `searched` lists the searchable fields, each with how to read it:
-- [["title", "text"], ["body", "rich_text"], ["tags", "many"]].
ALTER TABLE precast.slots
  ADD plain    jsonpath NOT NULL DEFAULT 'true',
  ADD numbers  text[] NOT NULL DEFAULT '{}',
  ADD rich     text[] NOT NULL DEFAULT '{}',
  ADD searched jsonb NOT NULL DEFAULT '[]';

-- Every written entry reads `plain`: it is kept in the row, and not compressed.
ALTER TABLE precast.slots SET (toast_tuple_target = 8160);
ALTER TABLE precast.slots ALTER plain SET STORAGE EXTERNAL;

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
