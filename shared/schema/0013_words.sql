-- The words that search looks through, in a table of their own, as one that reads nothing else would have them: in the row
-- and uncompressed as far as a page takes them, and under an index of their own. One row a published entry, kept by triggers.
CREATE TABLE precast.entry_words (
  content_type_id integer NOT NULL,
  id              uuid NOT NULL,
  published_at    timestamptz(3) NOT NULL,
  words           text COLLATE "C" NOT NULL,
  PRIMARY KEY (content_type_id, id)
) WITH (toast_tuple_target = 8160);
ALTER TABLE precast.entry_words ALTER words SET STORAGE EXTERNAL;

-- What was compressed must not stay so.
INSERT INTO precast.entry_words (content_type_id, id, published_at, words)
SELECT content_type_id, id, published_at, words || '' FROM precast.entries WHERE status = 'published';

ALTER TABLE precast.entries DROP COLUMN words;

-- Sorts what was written into `data` and `rich` in canonical spelling, and refuses what does not fit.
-- Each step is one statement over all fields: a loop in PL/pgSQL takes many times as long.
CREATE OR REPLACE FUNCTION precast.keep_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  written   jsonb := NEW.rich || NEW.data;
  rich_text text[];
  misfit    record;
BEGIN
  SELECT
    coalesce(array_agg(field.name) FILTER (WHERE field.type = 'rich_text'), '{}'),
    coalesce(jsonb_object_agg(field.name, value) FILTER (WHERE field.type = 'rich_text' AND value IS NOT NULL), '{}'),
    written || coalesce(jsonb_object_agg(field.name, precast.canonical(field.type, field.multiple, value))
      FILTER (WHERE precast.needs_canonical(field.type, value)), '{}')
  INTO rich_text, NEW.rich, NEW.data
  FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
  WHERE field.content_type_id = NEW.content_type_id;
  NEW.data := NEW.data - rich_text;

  -- A field that changes its type must not fail on entries that were right before.
  IF current_setting('precast.refreshing', true) IS DISTINCT FROM 'on' THEN
    SELECT field.* INTO misfit
    FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
    WHERE field.content_type_id = NEW.content_type_id
      AND NOT CASE WHEN field.multiple THEN precast.fits_many(field.type, value) ELSE precast.fits(field.type, value) END
    ORDER BY field.position
    LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'entry %: field "%" must hold %', NEW.id, misfit.name,
        CASE WHEN misfit.multiple THEN 'an array of ' || misfit.type || ' values' ELSE 'a ' || misfit.type || ' value' END
        USING ERRCODE = 'check_violation';
    END IF;
  END IF;
  RETURN NEW;
END
$$;

-- The words of an entry, in the order of its fields.
CREATE FUNCTION precast.words_of(type_id integer, data jsonb, rich jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT precast.words(coalesce(string_agg(CASE
        WHEN field.type = 'rich_text' THEN precast.html_text(rich ->> field.name)
        WHEN field.multiple THEN (SELECT string_agg(value, ' ') FROM precast.strings(data -> field.name) AS value)
        WHEN jsonb_typeof(data -> field.name) = 'string' THEN data ->> field.name
      END, ' ' ORDER BY field.position), ''))
    FROM precast.fields AS field
    WHERE field.content_type_id = type_id AND field.searchable);
END
$$;

-- These run as the owner of the table that they write: a CMS needs no rights on it.
CREATE FUNCTION precast.write_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO precast.entry_words (content_type_id, id, published_at, words)
  VALUES (NEW.content_type_id, NEW.id, NEW.published_at, precast.words_of(NEW.content_type_id, NEW.data, NEW.rich))
  ON CONFLICT (content_type_id, id) DO UPDATE SET published_at = excluded.published_at, words = excluded.words;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.forget_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM precast.entry_words WHERE content_type_id = OLD.content_type_id AND id = OLD.id;
  RETURN NULL;
END
$$;

-- An edit of what no search looks through has no words to read.
CREATE FUNCTION precast.change_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('precast.refreshing', true) = 'on' OR EXISTS (
    SELECT FROM precast.fields AS field
    WHERE field.content_type_id = NEW.content_type_id AND field.searchable
      AND CASE WHEN field.type = 'rich_text' THEN OLD.rich -> field.name IS DISTINCT FROM NEW.rich -> field.name
        ELSE OLD.data -> field.name IS DISTINCT FROM NEW.data -> field.name END) THEN
    UPDATE precast.entry_words AS kept SET published_at = NEW.published_at, words = now.words
    FROM (SELECT precast.words_of(NEW.content_type_id, NEW.data, NEW.rich) OFFSET 0) AS now(words)
    WHERE content_type_id = NEW.content_type_id AND id = NEW.id
      AND (kept.published_at, kept.words) IS DISTINCT FROM (NEW.published_at, now.words);
  ELSIF OLD.published_at <> NEW.published_at THEN
    UPDATE precast.entry_words SET published_at = NEW.published_at
    WHERE content_type_id = NEW.content_type_id AND id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.forget_all_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  TRUNCATE precast.entry_words;
  RETURN NULL;
END
$$;

CREATE TRIGGER forget_words AFTER DELETE ON precast.entries
  FOR EACH ROW WHEN (OLD.status = 'published') EXECUTE FUNCTION precast.forget_words();
CREATE TRIGGER forget_words_of_former AFTER UPDATE ON precast.entries
  FOR EACH ROW WHEN (OLD.status = 'published' AND (NEW.status <> 'published'
    OR (OLD.content_type_id, OLD.id) IS DISTINCT FROM (NEW.content_type_id, NEW.id)))
  EXECUTE FUNCTION precast.forget_words();
CREATE TRIGGER write_words AFTER INSERT ON precast.entries
  FOR EACH ROW WHEN (NEW.status = 'published') EXECUTE FUNCTION precast.write_words();
CREATE TRIGGER write_words_anew AFTER UPDATE ON precast.entries
  FOR EACH ROW WHEN (NEW.status = 'published' AND (OLD.status <> 'published'
    OR (OLD.content_type_id, OLD.id) IS DISTINCT FROM (NEW.content_type_id, NEW.id)))
  EXECUTE FUNCTION precast.write_words();
CREATE TRIGGER change_words AFTER UPDATE ON precast.entries
  FOR EACH ROW WHEN (OLD.status = 'published' AND NEW.status = 'published'
    AND (OLD.content_type_id, OLD.id) IS NOT DISTINCT FROM (NEW.content_type_id, NEW.id)
    AND (OLD.published_at <> NEW.published_at OR OLD.data <> NEW.data OR OLD.rich <> NEW.rich
      OR current_setting('precast.refreshing', true) = 'on'))
  EXECUTE FUNCTION precast.change_words();
CREATE TRIGGER forget_all_words AFTER TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.forget_all_words();

-- Of words alone: beside a large type a small one is found by its key, and a type in the index is read for every search.
DO $$
DECLARE
  operators text;
BEGIN
  BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
  EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN
    RAISE NOTICE 'search has no index: %', SQLERRM;
    RETURN;
  END;
  SELECT quote_ident(nspname) || '.gin_trgm_ops' INTO operators
  FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX entry_words_by_part ON precast.entry_words USING gin (words %s)', operators);
END
$$;

ANALYZE precast.entry_words;
