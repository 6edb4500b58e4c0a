-- All that follows from fields that were added, changed or removed: the shape, the entries that it keeps, the slots. Whoever changes
-- a label waits for nobody.

-- Keeps anew the entries of some types: all of them, or those that hold any of these fields, in `data` or, of the fields that were rich
-- text, in `rich`, where the others are kept as they would be.
CREATE FUNCTION precast.refresh_entries(type_ids integer[], names text[] DEFAULT NULL, in_rich text[] DEFAULT '{}')
RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  IF type_ids = '{}' THEN
    RETURN;
  END IF;
  PERFORM precast.refuse_old_snapshot(type_id) FROM unnest(type_ids) AS type_id;
  PERFORM precast.draw_shapes(type_ids);
  -- Whoever edits one of them may be giving it such a field, and has read the shape as it was: waits for all who do. To write all of
  -- them does so itself.
  PERFORM count(*) FROM (
    SELECT FROM precast.entries WHERE names IS NOT NULL AND content_type_id = ANY (type_ids) FOR NO KEY UPDATE) AS locked;
  PERFORM precast.raise_flag('refreshing');
  -- Rich text can be long, and reading it is most of the cost: only where one of the fields was rich text.
  UPDATE precast.entries SET data = data
  WHERE content_type_id = ANY (type_ids)
    AND (names IS NULL OR data ?| names OR CASE WHEN in_rich <> '{}' THEN rich ?| in_rich ELSE false END);
  PERFORM precast.lower_flag('refreshing');
  PERFORM precast.assign_slots(type_id) FROM unnest(type_ids) AS type_id;
END
$$;

-- The order of fields is that of the words in what search looks through.
CREATE FUNCTION precast.field_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(
    coalesce(array_agg(DISTINCT coalesce(new_fields.content_type_id, old_fields.content_type_id)), '{}'),
    coalesce(array_agg(DISTINCT coalesce(new_fields.name, old_fields.name)), '{}'),
    coalesce(array_agg(DISTINCT old_fields.name) FILTER (WHERE old_fields.type = 'rich_text'), '{}'))
  FROM old_fields FULL JOIN new_fields USING (content_type_id, name)
  WHERE (old_fields.type, old_fields.multiple, old_fields.searchable, CASE WHEN old_fields.searchable THEN old_fields.position END)
    IS DISTINCT FROM (new_fields.type, new_fields.multiple, new_fields.searchable, CASE WHEN new_fields.searchable THEN new_fields.position END);
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

CREATE TRIGGER field_changed AFTER UPDATE ON precast.fields
  REFERENCING OLD TABLE AS old_fields NEW TABLE AS new_fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.field_changed();
CREATE TRIGGER field_added AFTER INSERT ON precast.fields
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.field_added_or_removed();
CREATE TRIGGER field_removed AFTER DELETE ON precast.fields
  REFERENCING OLD TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.field_added_or_removed();
