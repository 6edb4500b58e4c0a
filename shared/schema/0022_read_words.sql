-- What search looks through is read from HTML and cut into words as 0017 and 0011 have it, in half of the time.

CREATE OR REPLACE FUNCTION precast.html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  shown  text := html;
  pieces text[];
BEGIN
  IF strpos(html, '<') = 0 THEN
    RETURN precast.decode_references(html);
  END IF;
  -- Most comments are where nothing but text could be. One leaves markup, so that what stood around it makes no tag.
  IF strpos(html, '<!--') > 0 AND html !~* '<(?:script|style)|<[a-z/!?][^>]*<!--|<!---?>|--!>' THEN
    shown := regexp_replace(html, '<!--.*?(?:-->|$)', '<!>', 'g');
  END IF;
  -- What follows reads text that is cut at each `>`: no quoted value may hold one, and no tag may cut a reference or begin in
  -- another.
  IF shown ~* '<(?:!(?!>)|script|style|/[^a-z]|[^>]*<)'
    OR strpos(shown, '=') > 0 AND shown ~ '=\s*(?:"[^">]*(?:>|$)|''[^''>]*(?:>|$))'
    OR strpos(shown, '&') > 0 AND shown ~ '&#?[A-Za-z0-9]*<' THEN
    RETURN precast.odd_html_text(html);
  END IF;
  -- Most tags are these, and no others are left in most texts.
  shown := replace(replace(replace(replace(replace(replace(shown,
    '<p>', ' '), '</p>', ' '), '<br>', ' '), '<li>', ' '), '</li>', ' '), '</a>', '');
  shown := replace(replace(replace(replace(shown, '<strong>', ''), '</strong>', ''), '<em>', ''), '</em>', '');
  IF strpos(shown, '<') = 0 THEN
    RETURN precast.decode_references(shown);
  END IF;
  pieces := string_to_array(shown, '>');
  RETURN precast.decode_references(coalesce((
    SELECT string_agg(CASE WHEN strpos(piece, '<') > 0 THEN precast.text_before_tag(piece, ending) ELSE piece || ending END,
      '' ORDER BY place)
    FROM (
      SELECT piece, place, CASE WHEN place < cardinality(pieces) THEN '>' ELSE '' END AS ending
      FROM unnest(pieces) WITH ORDINALITY AS cut(piece, place)) AS cut), ''));
END
$$;

-- The words of a text, as 0011 has it. Where there is nothing but ASCII, a pattern of its letters and digits takes a third of the
-- time.
DO $do$
DECLARE
  class text := substring(pg_get_functiondef('precast.words(text)'::regprocedure) FROM $re$'\[\^ '\s+('.*')\s+'\]\+', ' ', 'g'$re$);
BEGIN
  EXECUTE format($sql$
    CREATE OR REPLACE FUNCTION precast.words(text text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $words$
    DECLARE
      lowered text := lower(text COLLATE "und-x-icu");
      spaced  text;
    BEGIN
      IF octet_length(lowered) = length(lowered) THEN
        spaced := regexp_replace(lowered, '[^ 0-9A-Za-z]+', ' ', 'g');
      ELSE
        spaced := regexp_replace(lowered, '[^ '
    %s
    ']+', ' ', 'g');
      END IF;
      spaced := btrim(regexp_replace(spaced, '  +', ' ', 'g'));
      RETURN CASE WHEN spaced = '' THEN '' ELSE ' ' || replace(spaced, ' ', '  ') || ' ' END;
    END
    $words$
  $sql$, class);
END
$do$;

-- The texts of an entry that search looks through, as the shape of its type says how to read them.
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
        texts := concat(texts, ' ', precast.html_text(rich ->> name));
      WHEN 'many' THEN
        texts := concat(texts, ' ', (SELECT string_agg(value, ' ') FROM precast.strings(data -> name) AS value));
      ELSE
        texts := concat(texts, ' ', CASE WHEN jsonb_typeof(data -> name) = 'string' THEN data ->> name END);
    END CASE;
  END LOOP;
  RETURN texts;
END
$$;

CREATE OR REPLACE FUNCTION precast.words_of(type_id integer, data jsonb, rich jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN precast.words(precast.searched_text((SELECT searched FROM precast.slots WHERE content_type_id = type_id), data, rich));
END
$$;

-- The words of all entries that a statement has inserted. By then a trigger of somebody else's may have edited them, and the words
-- are there, or have hidden or deleted them.
CREATE FUNCTION precast.write_words_of_added() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO precast.entry_words (content_type_id, id, published_at, words)
  SELECT e.content_type_id, e.id, e.published_at, precast.words(precast.searched_text(slots.searched, e.data, e.rich))
  FROM written AS e JOIN precast.slots ON slots.content_type_id = e.content_type_id
  WHERE e.status = 'published'
  ON CONFLICT DO NOTHING;
  IF current_setting('precast.hidden_at_once', true) = 'on' THEN
    DELETE FROM precast.entry_words AS kept USING written AS e
    WHERE (kept.content_type_id, kept.id) = (e.content_type_id, e.id) AND NOT EXISTS (
      SELECT FROM precast.entries WHERE (content_type_id, id) = (kept.content_type_id, kept.id) AND status = 'published');
  END IF;
  RETURN NULL;
END
$$;

DROP TRIGGER write_words ON precast.entries;
CREATE TRIGGER write_words AFTER INSERT ON precast.entries
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.write_words_of_added();

CREATE OR REPLACE FUNCTION precast.forget_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM precast.entry_words WHERE content_type_id = OLD.content_type_id AND id = OLD.id;
  IF NOT FOUND THEN
    PERFORM set_config('precast.hidden_at_once', 'on', true);
  END IF;
  RETURN NULL;
END
$$;

-- An edit of what no search looks through has no words to read.
CREATE OR REPLACE FUNCTION precast.change_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  anew boolean := current_setting('precast.refreshing', true) = 'on' OR EXISTS (
    SELECT FROM precast.fields AS field
    WHERE field.content_type_id = NEW.content_type_id AND field.searchable
      AND CASE WHEN field.type = 'rich_text' THEN OLD.rich -> field.name IS DISTINCT FROM NEW.rich -> field.name
        ELSE OLD.data -> field.name IS DISTINCT FROM NEW.data -> field.name END);
BEGIN
  IF NOT anew AND OLD.published_at <> NEW.published_at THEN
    UPDATE precast.entry_words SET published_at = NEW.published_at
    WHERE content_type_id = NEW.content_type_id AND id = NEW.id;
    anew := NOT FOUND;
  END IF;
  IF anew THEN
    INSERT INTO precast.entry_words AS kept (content_type_id, id, published_at, words)
    VALUES (NEW.content_type_id, NEW.id, NEW.published_at, precast.words_of(NEW.content_type_id, NEW.data, NEW.rich))
    ON CONFLICT (content_type_id, id) DO UPDATE SET published_at = excluded.published_at, words = excluded.words
    WHERE (kept.published_at, kept.words) IS DISTINCT FROM (excluded.published_at, excluded.words);
  END IF;
  RETURN NULL;
END
$$;

-- Has the indexes of words and texts take in what was left to be taken in together. Each search reads through that until then.
CREATE FUNCTION precast.take_in_pending() RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT gin_clean_pending_list(index.oid) FROM pg_class AS index JOIN pg_am AS method ON method.oid = index.relam
  WHERE index.relnamespace = 'precast'::regnamespace AND index.relkind = 'i' AND method.amname = 'gin'
$$;
