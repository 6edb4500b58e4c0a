-- Records changes for incremental builds, which ask what has changed since a snapshot. Every change carries the id of
-- the transaction that made it, and a snapshot tells exactly which transactions it saw, however late the others
-- committed. Builds that wait are notified.
--
-- On a logical copy, replicated content counts as changed in transactions of the copy, because builds of the copy can
-- compare only those with their snapshots: the triggers that record changes fire always. The other data that triggers
-- maintain is replicated as it is, so the triggers that maintain it do not fire for replicated rows.

-- Entries that a type no longer has: deleted, moved to another type, or given another id. One row per id, with the last
-- transaction that removed it. The row stays when an entry with that id is added again.
CREATE TABLE precast.removals (
  content_type_id integer NOT NULL REFERENCES precast.content_types ON DELETE CASCADE,
  id              uuid NOT NULL,
  removed_in      xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (content_type_id, id)
);

CREATE INDEX removals_by_change ON precast.removals (content_type_id, removed_in);

CREATE FUNCTION precast.stamp_type() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.begun_in := pg_current_xact_id();
  RETURN NEW;
END
$$;

CREATE TRIGGER stamp_type BEFORE UPDATE ON precast.content_types
  FOR EACH ROW WHEN ((OLD.id, OLD.app_id, OLD.slug) IS DISTINCT FROM (NEW.id, NEW.app_id, NEW.slug))
  EXECUTE FUNCTION precast.stamp_type();
ALTER TABLE precast.content_types ENABLE ALWAYS TRIGGER stamp_type;

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
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER stamp_brought_type;

-- Here as elsewhere, a trigger function that writes into other tables runs as their owner, so that a CMS needs no
-- rights on those tables.
CREATE FUNCTION precast.stamp_types_of_app() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  UPDATE precast.content_types SET begun_in = pg_current_xact_id() WHERE app_id = NEW.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER stamp_types_of_app AFTER UPDATE ON precast.apps
  FOR EACH ROW WHEN (OLD.key <> NEW.key) EXECUTE FUNCTION precast.stamp_types_of_app();
ALTER TABLE precast.apps ENABLE ALWAYS TRIGGER stamp_types_of_app;

CREATE FUNCTION precast.stamp_all_types() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  UPDATE precast.content_types SET begun_in = pg_current_xact_id();
  RETURN NULL;
END
$$;

CREATE TRIGGER stamp_all_types AFTER TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.stamp_all_types();
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER stamp_all_types;

-- Records a removal, except when the type itself is being deleted: its rows in precast.removals are then deleted as
-- well.
CREATE FUNCTION precast.keep_removal() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  INSERT INTO precast.removals (content_type_id, id)
  SELECT OLD.content_type_id, OLD.id FROM precast.content_types AS type WHERE type.id = OLD.content_type_id
  ON CONFLICT (content_type_id, id) DO UPDATE SET removed_in = excluded.removed_in;
  RETURN NULL;
END
$$;

CREATE TRIGGER keep_removal AFTER DELETE ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.keep_removal();
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER keep_removal;
CREATE TRIGGER keep_move AFTER UPDATE ON precast.entries
  FOR EACH ROW WHEN ((OLD.content_type_id, OLD.id) IS DISTINCT FROM (NEW.content_type_id, NEW.id))
  EXECUTE FUNCTION precast.keep_removal();
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER keep_move;

-- The marks of builds, newest first, by the tree that they built. As long as the database has a build's mark, it has
-- everything that this build saw. A database that was restored from a backup, or has lost its last commits, lacks the
-- marks of builds that saw more, and assigns the transaction ids that they saw to other transactions.
CREATE TABLE precast.trees (
  tree     uuid PRIMARY KEY,
  marks    uuid[] NOT NULL,
  built_at timestamptz NOT NULL DEFAULT now()
);

-- Adds a mark to a tree. Of the older marks it keeps those in `held`, which belong to builds that parts of the tree
-- come from, and fills up to 100 with the newest others, because copies of the tree may be that many builds behind.
-- Deletes trees that got no mark for 90 days: they are then built in full.
CREATE FUNCTION precast.keep_mark(tree_id uuid, new_mark uuid, held uuid[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  DELETE FROM precast.trees WHERE built_at < now() - interval '90 days';
  INSERT INTO precast.trees AS known (tree, marks) VALUES (tree_id, ARRAY[new_mark])
  ON CONFLICT (tree) DO UPDATE SET built_at = excluded.built_at, marks = new_mark || ARRAY(
    SELECT mark FROM unnest(known.marks) WITH ORDINALITY AS one (mark, place)
    ORDER BY mark = ANY (held) DESC, place LIMIT greatest(100, cardinality(held)))
$$;

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
ALTER TABLE precast.removals ENABLE REPLICA TRIGGER leave_row;
ALTER TABLE precast.trees ENABLE REPLICA TRIGGER leave_row;

-- Notifies the channel `precast` that content has changed, so that `precast watch` builds at once. PostgreSQL delivers
-- a notification after its transaction has committed and its rows are visible, and only once per transaction, because
-- it merges equal notifications. The payload is empty: the build reads from the rows what has changed. A transaction
-- that has sent a notification cannot be prepared for two-phase commit.
CREATE FUNCTION precast.announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('precast', '');
  RETURN NULL;
END
$$;

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.apps
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.content_types
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.announce();

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

ALTER TABLE precast.apps ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.fields ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.entries ENABLE REPLICA TRIGGER announce_brought;
ALTER TABLE precast.content_types ENABLE REPLICA TRIGGER announce_brought_truncation;
