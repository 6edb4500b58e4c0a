-- All that follows from fields that were added, changed or removed: the shape, the entries that it keeps, the slots. Whoever changes
-- a label waits for nobody.

CREATE FUNCTION precast.refresh_entries(type_ids integer[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refuse_old_snapshot(type_id) FROM unnest(type_ids) AS type_id;
  PERFORM precast.draw_shapes(type_ids);
  PERFORM precast.raise_flag('refreshing');
  UPDATE precast.entries SET data = data WHERE content_type_id = ANY (type_ids);
  PERFORM precast.lower_flag('refreshing');
  PERFORM precast.assign_slots(type_id) FROM unnest(type_ids) AS type_id;
END
$$;

CREATE FUNCTION precast.field_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(ARRAY(
    SELECT DISTINCT coalesce(new_fields.content_type_id, old_fields.content_type_id)
    FROM old_fields FULL JOIN new_fields USING (content_type_id, name)
    WHERE (old_fields.type, old_fields.multiple, old_fields.searchable, old_fields.position)
          IS DISTINCT FROM (new_fields.type, new_fields.multiple, new_fields.searchable, new_fields.position)));
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.field_added_or_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(ARRAY(SELECT DISTINCT content_type_id FROM written));
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
