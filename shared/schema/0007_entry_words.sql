-- The words that search reads (contract.md section 4), extracted from an entry's plain and rich text. They have a table
-- and an index of their own, so that a search reads nothing else, and are stored uncompressed, in the row if they fit
-- in a page. One row per published entry. Triggers maintain the table: each does only the work that a write requires,
-- and runs as the table's owner, so that a CMS needs no rights on it.
CREATE TABLE precast.entry_words (
  content_type_id integer NOT NULL,
  id              uuid NOT NULL,
  published_at    timestamptz(3) NOT NULL,
  words           text COLLATE "C" NOT NULL,
  PRIMARY KEY (content_type_id, id)
) WITH (toast_tuple_target = 8160, autovacuum_analyze_scale_factor = 0.02);

ALTER TABLE precast.entry_words ALTER words SET STORAGE EXTERNAL;

-- The searchable texts of an entry, joined. `searched` lists the fields and how to read each of them (0009_shapes.sql).
CREATE FUNCTION precast.searched_text(searched jsonb, data jsonb, rich jsonb) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  texts text := '';
  name  text;
BEGIN
  FOR place IN 0 .. jsonb_array_length(searched) - 1 LOOP
    name := searched -> place ->> 0;
    CASE searched -> place ->> 1
      WHEN 'rich_text' THEN
        texts := concat(texts, ' ', CASE WHEN jsonb_typeof(rich -> name) = 'string' THEN precast.html_text(rich ->> name) END);
      WHEN 'many' THEN
        texts := concat(texts, ' ', (SELECT string_agg(value, ' ') FROM precast.elements('text', data -> name) AS value));
      ELSE
        texts := concat(texts, ' ', CASE WHEN jsonb_typeof(data -> name) = 'string' THEN data ->> name END);
    END CASE;
  END LOOP;
  RETURN texts;
END
$$;

CREATE FUNCTION precast.words_of(type_id integer, data jsonb, rich jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN precast.words(precast.searched_text((SELECT searched FROM precast.slots WHERE content_type_id = type_id), data, rich));
END
$$;

-- The entry with this key, if there is one. A session keeps the plan by which it looks up an entry, and may make it while
-- the table has few entries: any index that begins with the type then costs as little as the primary key. The query
-- therefore asks for an order that only the primary key gives, and the function switches off what could replace that.
-- JIT is off, because a plan that sorts all the same then counts as so expensive that PostgreSQL would compile it.
CREATE FUNCTION precast.entry_of(type_id integer, entry_id uuid) RETURNS SETOF precast.entries LANGUAGE plpgsql STABLE ROWS 1
SET enable_seqscan = off SET enable_sort = off SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT * FROM precast.entries AS e
    WHERE e.content_type_id = type_id AND e.id BETWEEN entry_id AND entry_id ORDER BY e.id LIMIT 1;
END
$$;

-- Writes the words of all entries that a statement has inserted. Before it runs, a trigger of the CMS may have edited
-- an inserted entry (its words are in the table then), or unpublished or deleted it (its words must be removed then).
CREATE FUNCTION precast.write_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  INSERT INTO precast.entry_words (content_type_id, id, published_at, words)
  SELECT e.content_type_id, e.id, e.published_at, precast.words(precast.searched_text(slots.searched, e.data, e.rich))
  FROM written AS e JOIN precast.slots ON slots.content_type_id = e.content_type_id
  WHERE e.status = 'published'
  ON CONFLICT DO NOTHING;
  IF precast.is_raised('hidden_at_once') THEN
    DELETE FROM precast.entry_words AS kept USING written AS e
    WHERE (kept.content_type_id, kept.id) = (e.content_type_id, e.id) AND NOT EXISTS (
      SELECT FROM precast.entries WHERE (content_type_id, id) = (kept.content_type_id, kept.id) AND status = 'published');
  END IF;
  RETURN NULL;
END
$$;

-- Deletes the words of an entry. If it has none, the statement that inserted it has not finished and is still to write
-- them: the flag makes `write_words` remove them again. A trigger of the CMS may have published the entry again since, or
-- added another with its id, whose words are written then.
CREATE FUNCTION precast.forget_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  DELETE FROM precast.entry_words WHERE content_type_id = OLD.content_type_id AND id = OLD.id;
  IF NOT FOUND THEN
    PERFORM precast.raise_flag('hidden_at_once');
  END IF;
  INSERT INTO precast.entry_words (content_type_id, id, published_at, words)
  SELECT e.content_type_id, e.id, e.published_at, precast.words_of(e.content_type_id, e.data, e.rich)
  FROM precast.entry_of(OLD.content_type_id, OLD.id) AS e WHERE e.status = 'published'
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;

-- Computes the words anew only if a searchable field has changed, if the entry had no words under this type and id, or
-- if a change of fields rewrites it. Reads the entry from the table and not from NEW: a trigger of the CMS may have
-- edited, unpublished or deleted it since.
CREATE FUNCTION precast.change_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
  anew boolean := OLD.status <> 'published' OR (OLD.content_type_id, OLD.id) IS DISTINCT FROM (NEW.content_type_id, NEW.id)
    OR precast.is_raised('refreshing') OR EXISTS (
      SELECT FROM precast.slots CROSS JOIN jsonb_array_elements(searched) AS field
      WHERE content_type_id = NEW.content_type_id AND CASE field ->> 1
        WHEN 'rich_text' THEN OLD.rich -> (field ->> 0) IS DISTINCT FROM NEW.rich -> (field ->> 0)
        ELSE OLD.data -> (field ->> 0) IS DISTINCT FROM NEW.data -> (field ->> 0) END);
BEGIN
  IF NOT anew AND OLD.published_at <> NEW.published_at THEN
    UPDATE precast.entry_words AS kept SET published_at = e.published_at
    FROM precast.entry_of(NEW.content_type_id, NEW.id) AS e
    WHERE (kept.content_type_id, kept.id) = (NEW.content_type_id, NEW.id) AND e.status = 'published';
    anew := NOT FOUND;
  END IF;
  IF anew THEN
    INSERT INTO precast.entry_words AS kept (content_type_id, id, published_at, words)
    SELECT e.content_type_id, e.id, e.published_at, precast.words_of(e.content_type_id, e.data, e.rich)
    FROM precast.entry_of(NEW.content_type_id, NEW.id) AS e WHERE e.status = 'published'
    ON CONFLICT (content_type_id, id) DO UPDATE SET published_at = excluded.published_at, words = excluded.words
    WHERE (kept.published_at, kept.words) IS DISTINCT FROM (excluded.published_at, excluded.words);
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.forget_all_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  TRUNCATE precast.entry_words, precast.terms;
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
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.write_words();
CREATE TRIGGER change_words AFTER UPDATE ON precast.entries
  FOR EACH ROW WHEN (NEW.status = 'published' AND (OLD.status <> 'published'
    OR (OLD.content_type_id, OLD.id) IS DISTINCT FROM (NEW.content_type_id, NEW.id)
    OR OLD.published_at <> NEW.published_at OR OLD.data <> NEW.data OR OLD.rich <> NEW.rich
    OR precast.is_raised('refreshing')))
  EXECUTE FUNCTION precast.change_words();
CREATE TRIGGER forget_all_words AFTER TRUNCATE ON precast.entries
  FOR EACH STATEMENT EXECUTE FUNCTION precast.forget_all_words();
