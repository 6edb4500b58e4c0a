-- Adapts triggers to logical replication: on the copy, replicated content counts as changed in transactions of the
-- copy, because builds of the copy can compare only those with their snapshots. The other data that triggers maintain
-- is replicated as it is, so the triggers that maintain it do not fire for replicated rows.

-- These tables have no key, and rows are deleted from them. Without a replica identity, those deletions, and with them
-- writes of entries, would fail as soon as a publication includes all tables of the database. Before PostgreSQL 16 the
-- copy reads the whole table for each of them, which is why longer tables have a key.
ALTER TABLE precast.entry_counts REPLICA IDENTITY FULL;
ALTER TABLE precast.value_counts REPLICA IDENTITY FULL;

ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER stamp_entry;
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER keep_removal;
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER keep_move;
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER stamp_all_types;
ALTER TABLE precast.content_types ENABLE ALWAYS TRIGGER stamp_type;
ALTER TABLE precast.apps ENABLE ALWAYS TRIGGER stamp_types_of_app;

CREATE FUNCTION precast.leave_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RETURN NULL;
END
$$;

-- Ignores replicated rows of these tables: the copy records removals itself when replicated deletions of entries
-- arrive, and the marks in precast.trees are valid for the original database only. pg_trigger_depth() is 0 for
-- replicated removals, but not for those that the copy's own triggers write.
CREATE TRIGGER leave_row BEFORE INSERT OR UPDATE ON precast.removals
  FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION precast.leave_row();
CREATE TRIGGER leave_row BEFORE INSERT OR UPDATE OR DELETE ON precast.trees
  FOR EACH ROW EXECUTE FUNCTION precast.leave_row();

-- Replaces `begun_in`, which is a transaction id of the original database, by the copy's own. Fires before
-- `stamp_type`, because triggers fire in the order of their names.
CREATE FUNCTION precast.stamp_brought_type() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.begun_in := CASE TG_OP WHEN 'INSERT' THEN pg_current_xact_id() ELSE OLD.begun_in END;
  RETURN NEW;
END
$$;

CREATE TRIGGER stamp_brought_type BEFORE INSERT OR UPDATE ON precast.content_types
  FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION precast.stamp_brought_type();

-- Replicated inserts, updates and deletions are applied row by row and fire no statement triggers.
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.apps
  FOR EACH ROW EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.content_types
  FOR EACH ROW EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.fields
  FOR EACH ROW EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.announce();

-- A replicated TRUNCATE fires statement triggers only. That of apps includes the types, and that of fields or entries
-- also updates them.
CREATE TRIGGER announce_brought_truncation AFTER TRUNCATE ON precast.content_types
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();

ALTER TABLE precast.removals ENABLE REPLICA TRIGGER leave_row;
ALTER TABLE precast.trees ENABLE REPLICA TRIGGER leave_row;
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER stamp_brought_type;
ALTER TABLE precast.apps ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.fields ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.entries ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER announce_brought_truncation;
