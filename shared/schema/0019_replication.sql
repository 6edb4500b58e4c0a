-- Logical replication: content that it brings to a copy has changed there, in transactions of the copy, which alone its builds can
-- place. Everything that triggers keep beside the content is brought as it stands: what would keep it again stays still.

-- Rows that come and go, and have no key: they can be told apart all the same. Without this, who writes entries would fail as soon
-- as something takes all tables of the database.
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

-- The original's removals are kept here already, where its entries were deleted; and it is the original that its trees are known to.
CREATE TRIGGER leave_row BEFORE INSERT OR UPDATE ON precast.removals
  FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION precast.leave_row();
CREATE TRIGGER leave_row BEFORE INSERT OR UPDATE OR DELETE ON precast.trees
  FOR EACH ROW EXECUTE FUNCTION precast.leave_row();

-- When the original's type has begun says nothing here. Runs before stamp_type, by its name.
CREATE FUNCTION precast.stamp_brought_type() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.begun_in := CASE TG_OP WHEN 'INSERT' THEN pg_current_xact_id() ELSE OLD.begun_in END;
  RETURN NEW;
END
$$;

CREATE TRIGGER stamp_brought_type BEFORE INSERT OR UPDATE ON precast.content_types
  FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION precast.stamp_brought_type();

-- Rows are brought one by one, without a statement.
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.apps
  FOR EACH ROW EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.content_types
  FOR EACH ROW EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.fields
  FOR EACH ROW EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce_brought AFTER INSERT OR UPDATE OR DELETE ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.announce();

ALTER TABLE precast.removals ENABLE REPLICA TRIGGER leave_row;
ALTER TABLE precast.trees ENABLE REPLICA TRIGGER leave_row;
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER stamp_brought_type;
ALTER TABLE precast.apps ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.fields ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.entries ENABLE REPLICA TRIGGER announce_brought;
