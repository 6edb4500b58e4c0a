-- Keeps anew all that triggers keep beside the content, for whoever has written while they were off: with DISABLE TRIGGER, with
-- `session_replication_role = replica`, or from a dump of the data alone. Writers wait meanwhile. For the owner of the tables.
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
  DELETE FROM precast.value_counts;
  PERFORM precast.recount_values(type_id) FROM unnest(types) AS type_id;
  DELETE FROM precast.entry_counts;
  INSERT INTO precast.entry_counts (content_type_id, change)
  SELECT type_id, (SELECT count(*) FROM precast.entries WHERE content_type_id = type_id AND status = 'published')
  FROM unnest(types) AS type_id;
  -- What was deleted, moved or renamed meanwhile nobody knows any more: builds compare all of each type with the tree.
  UPDATE precast.content_types SET begun_in = pg_current_xact_id();
END
$$;
