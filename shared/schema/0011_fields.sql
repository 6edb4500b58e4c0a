-- Applies added, changed and removed fields to the shape of their type, its entries and its slots. A change that
-- affects none of these, such as a new label or position, waits for no other transaction.

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
