-- The tables that a CMS writes: apps, their content types, the types' fields, and entries.
-- Names and rules: contract.md section 2. The constraints of the tables enforce the rules that concern a single row, and
-- triggers at commit those of a type's lists, which span rows.

CREATE TABLE precast.apps (
  id             integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key            text COLLATE "C" NOT NULL UNIQUE CHECK (key ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$'),
  name           text NOT NULL DEFAULT '',
  media_base_url text CHECK (media_base_url ~ '^https?://[^/]')
);

CREATE TABLE precast.content_types (
  id                integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app_id            integer NOT NULL REFERENCES precast.apps ON DELETE CASCADE,
  slug              text COLLATE "C" NOT NULL CHECK (slug ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  name              text NOT NULL DEFAULT '',
  description       text NOT NULL DEFAULT '',
  icon              text NOT NULL DEFAULT '',
  position          integer,
  published         boolean NOT NULL DEFAULT true,
  default_sort      text,
  per_page          integer CHECK (per_page BETWEEN 1 AND 100),
  summary_fields    text[],
  filterable_fields text[] NOT NULL DEFAULT '{}',
  sortable_fields   text[] NOT NULL DEFAULT '{}',
  -- The last transaction that created the type, changed its slug, app or app key, truncated the entries, or ran
  -- keep_anew (0005_entries.sql). A build compares the type as a whole if the snapshot of the build before it did not
  -- see this transaction.
  begun_in          xid8 NOT NULL DEFAULT pg_current_xact_id(),
  UNIQUE (app_id, slug)
);

CREATE TABLE precast.fields (
  content_type_id integer NOT NULL REFERENCES precast.content_types ON DELETE CASCADE,
  name            text COLLATE "C" NOT NULL CHECK (
                    name ~ '^[a-z][a-z0-9_]{0,62}$'
                    AND name NOT IN ('id', 'published_at', 'created_at', 'updated_at', 'search')),
  position        integer NOT NULL,
  type            text NOT NULL CHECK (type IN ('text', 'rich_text', 'select', 'media', 'relation',
                                                'number', 'boolean', 'date', 'datetime', 'json')),
  label           text NOT NULL DEFAULT '',
  required        boolean NOT NULL DEFAULT false,
  searchable      boolean NOT NULL DEFAULT false,
  multiple        boolean NOT NULL DEFAULT false,
  target          text,
  PRIMARY KEY (content_type_id, name),
  -- The error shows a constraint's name and nothing else of it.
  CONSTRAINT text_rich_text_and_select_can_be_searchable CHECK (
    NOT searchable OR type IN ('text', 'rich_text', 'select')),
  CONSTRAINT text_select_media_and_relation_can_be_multiple CHECK (
    NOT multiple OR type IN ('text', 'select', 'media', 'relation')),
  CONSTRAINT relations_and_no_others_have_a_target CHECK ((target IS NOT NULL) = (type = 'relation'))
);

-- One row per entry. `data` holds the values that lists, filters and sorts read, by field name; `rich` holds the rich
-- text, which they never read. Triggers move rich text from `data` to `rich` and maintain `changed_in`, the slots (`t1` to
-- `n6`, 0004_slots.sql) and `texts`, which holds the texts of all slots in lower case. The primary key, (content_type_id,
-- id), is added after the other indexes (0010_indexes.sql).
CREATE TABLE precast.entries (
  content_type_id integer NOT NULL REFERENCES precast.content_types ON DELETE CASCADE,
  id              uuid NOT NULL,
  status          text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'published')),
  data            jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(data) = 'object'),
  rich            jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(rich) = 'object'),
  published_at    timestamptz(3),
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  changed_in      xid8 NOT NULL DEFAULT pg_current_xact_id(),
  t1              text COLLATE "und-x-icu",
  t2              text COLLATE "und-x-icu",
  t3              text COLLATE "und-x-icu",
  t4              text COLLATE "und-x-icu",
  t5              text COLLATE "und-x-icu",
  t6              text COLLATE "und-x-icu",
  t7              text COLLATE "und-x-icu",
  t8              text COLLATE "und-x-icu",
  texts           text COLLATE "C",
  n1              float8,
  n2              float8,
  n3              float8,
  n4              float8,
  n5              float8,
  n6              float8,
  CONSTRAINT published_entries_have_a_published_at CHECK (status <> 'published' OR published_at IS NOT NULL),
  -- Answers write years with four digits.
  CONSTRAINT timestamps_are_in_the_years_0001_to_9999_of_utc CHECK (
    least(published_at, created_at, updated_at) >= '0001-01-01T00:00Z'
    AND greatest(published_at, created_at, updated_at) < '9999-12-31T24:00Z')
)
-- Statistics are renewed after fewer changes than usual: while they do not know a new type, the planner expects one entry
-- in it, and a search in thousands may then be slow.
WITH (toast_tuple_target = 128, autovacuum_analyze_scale_factor = 0.02);

-- Keeps `data` and the texts of slots in the row and moves rich text out to the TOAST table: a list that reads 10,000 rows
-- must not decompress 10,000 bodies, and a condition that is tested on many rows must not fetch each text.
ALTER TABLE precast.entries
  ALTER COLUMN data SET STORAGE MAIN,
  ALTER COLUMN t1 SET STORAGE MAIN,
  ALTER COLUMN t2 SET STORAGE MAIN,
  ALTER COLUMN t3 SET STORAGE MAIN,
  ALTER COLUMN t4 SET STORAGE MAIN,
  ALTER COLUMN t5 SET STORAGE MAIN,
  ALTER COLUMN t6 SET STORAGE MAIN,
  ALTER COLUMN t7 SET STORAGE MAIN,
  ALTER COLUMN t8 SET STORAGE MAIN,
  ALTER COLUMN texts SET STORAGE MAIN;

-- A type's lists may name only timestamp columns and the type's own fields that can be filtered, sorted or shown,
-- respectively. The check runs at commit, so that a type and its fields can be written in any order.
CREATE FUNCTION precast.refuse_bad_lists(type_id integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  problem text;
BEGIN
  WITH own AS (SELECT * FROM precast.fields WHERE content_type_id = type_id),
  stamps(name) AS (VALUES ('published_at'), ('created_at'), ('updated_at')),
  sortable AS (SELECT name FROM own WHERE type NOT IN ('rich_text', 'json', 'relation') AND NOT multiple
               UNION SELECT name FROM stamps),
  filterable AS (SELECT name FROM own WHERE type NOT IN ('rich_text', 'json') UNION SELECT name FROM stamps)
  SELECT format('content type "%s": ', kind.slug) || complaint INTO problem
  FROM precast.content_types AS kind, LATERAL (
    WITH lists(list, names, allowed) AS (VALUES
      ('filterable_fields', kind.filterable_fields, ARRAY(SELECT filterable.name FROM filterable)),
      ('sortable_fields', kind.sortable_fields, ARRAY(SELECT sortable.name FROM sortable)),
      ('summary_fields', kind.summary_fields, ARRAY(SELECT own.name FROM own)))
    SELECT format('%s must be a one-dimensional array, but contains arrays', list) FROM lists WHERE array_ndims(names) > 1
    UNION ALL
    SELECT format('%s cannot hold %s', list, coalesce('"' || name || '"', 'NULL'))
      FROM lists, unnest(names) AS name WHERE (name = ANY (allowed)) IS NOT TRUE
    UNION ALL
    SELECT format('%s holds "%s" twice', list, name)
      FROM lists, unnest(names) AS name GROUP BY list, name HAVING count(*) > 1
    UNION ALL
    SELECT format('default_sort cannot be "%s"', kind.default_sort)
      WHERE regexp_replace(kind.default_sort, '^-', '') NOT IN (SELECT sortable.name FROM sortable)
    UNION ALL
    SELECT format('field "%s" has the name that is reserved for the address of media field "%s"', own.name, media.name)
      FROM own JOIN own AS media ON media.type = 'media' AND own.name = media.name || '_url'
  ) AS complaints(complaint)
  WHERE kind.id = type_id
  LIMIT 1;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION '%', problem USING ERRCODE = 'check_violation';
  END IF;
END
$$;

CREATE FUNCTION precast.check_type() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refuse_bad_lists(NEW.id);
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.check_field() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refuse_bad_lists(CASE TG_OP WHEN 'DELETE' THEN OLD.content_type_id ELSE NEW.content_type_id END);
  RETURN NULL;
END
$$;

-- A trigger on TRUNCATE cannot be deferred to the end of the transaction. This one updates all types instead, so that
-- the deferred trigger `check_type` checks them.
CREATE FUNCTION precast.check_types_later() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  UPDATE precast.content_types SET slug = slug;
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER check_type AFTER INSERT OR UPDATE ON precast.content_types
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.check_type();
CREATE CONSTRAINT TRIGGER check_field AFTER INSERT OR UPDATE OR DELETE ON precast.fields
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.check_field();
CREATE TRIGGER check_types_later AFTER TRUNCATE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.check_types_later();
