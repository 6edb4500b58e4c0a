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
