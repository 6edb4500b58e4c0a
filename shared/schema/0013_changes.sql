-- What an incremental build asks: what has changed since a snapshot. Every change carries the transaction that made it,
-- and a snapshot says exactly which transactions it saw, however late the others committed.

-- The transaction since which a type's entries are its own: it was made, took its slug, or lost all its entries then.
ALTER TABLE precast.content_types ADD COLUMN begun_in xid8 NOT NULL DEFAULT pg_current_xact_id();

-- Entries that a type has no more: deleted, moved to another type, or given another id. One row an id, the last time
-- counts; an entry that comes back under its id leaves the row behind.
CREATE TABLE precast.removals (
  content_type_id integer NOT NULL REFERENCES precast.content_types ON DELETE CASCADE,
  id              uuid NOT NULL,
  removed_in      xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (content_type_id, id)
);

CREATE INDEX entries_by_change ON precast.entries (content_type_id, changed_in);
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

-- What writes into other tables than the one that was written runs as their owner: a CMS needs no rights on them.
CREATE FUNCTION precast.stamp_types_of_app() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  UPDATE precast.content_types SET begun_in = pg_current_xact_id() WHERE app_id = NEW.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER stamp_types_of_app AFTER UPDATE ON precast.apps
  FOR EACH ROW WHEN (OLD.key <> NEW.key) EXECUTE FUNCTION precast.stamp_types_of_app();

CREATE FUNCTION precast.stamp_all_types() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  UPDATE precast.content_types SET begun_in = pg_current_xact_id();
  RETURN NULL;
END
$$;

CREATE TRIGGER stamp_all_types AFTER TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.stamp_all_types();

-- A type that is deleted takes its entries and their removals with it: for those there is nothing to keep.
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
CREATE TRIGGER keep_move AFTER UPDATE ON precast.entries
  FOR EACH ROW WHEN ((OLD.content_type_id, OLD.id) IS DISTINCT FROM (NEW.content_type_id, NEW.id))
  EXECUTE FUNCTION precast.keep_removal();

-- The marks that builds have left, by the tree that they built, the last first. What a build has seen is in the database for as long
-- as its mark is: a database that was put back from a copy, or has lost what came last, lacks the marks of builds that have seen
-- more, and gives the numbers of transactions that they saw to others.
CREATE TABLE precast.trees (
  tree     uuid PRIMARY KEY,
  marks    uuid[] NOT NULL,
  built_at timestamptz NOT NULL DEFAULT now()
);

-- Keeps a mark, those that parts of the tree are of, and as many more as copies of the tree may be behind. Of a tree that no build
-- has changed for so long nothing is known any more: it is built in full.
CREATE FUNCTION precast.keep_mark(tree_id uuid, new_mark uuid, held uuid[]) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  DELETE FROM precast.trees WHERE built_at < now() - interval '90 days';
  INSERT INTO precast.trees AS known (tree, marks) VALUES (tree_id, ARRAY[new_mark])
  ON CONFLICT (tree) DO UPDATE SET built_at = excluded.built_at, marks = new_mark || ARRAY(
    SELECT mark FROM unnest(known.marks) WITH ORDINALITY AS one (mark, place)
    ORDER BY mark = ANY (held) DESC, place LIMIT greatest(100, cardinality(held)))
$$;
