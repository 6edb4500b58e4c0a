-- The words that search looks through, in a table of their own, as one that reads nothing else would have them: in the row
-- and uncompressed as far as a page takes them, and under an index of their own. One row a published entry, kept by triggers,
-- which do as little as a write needs.
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

-- Does a value fit its field, and is it spelled as it is stored, as far as one look tells? Most are; a value of which this
-- cannot tell is looked at by `fits` and `canonical`. Inlined, and of nothing but what PostgreSQL itself brings: a function
-- of ours that is not inlined is parsed anew by every statement.
CREATE FUNCTION precast.is_plain(type text, multiple boolean, value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE coalesce(jsonb_typeof(value), 'null')
    WHEN 'null' THEN true
    WHEN 'string' THEN NOT multiple AND CASE type
      WHEN 'relation' THEN value #>> '{}' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      WHEN 'date' THEN value #>> '{}' ~ '^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$'
      WHEN 'datetime' THEN value #>> '{}' ~ ('^(?!0000|9999)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])'
        'T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}\+00:00$')
      ELSE type NOT IN ('number', 'boolean')
    END
    WHEN 'number' THEN NOT multiple AND (type = 'json' OR (type = 'number' AND value::text ~ '^-?[0-9]{1,15}(\.[0-9]{0,14}[1-9])?$'))
    WHEN 'boolean' THEN NOT multiple AND type IN ('boolean', 'json')
    WHEN 'array' THEN CASE
      WHEN NOT multiple THEN type = 'json'
      WHEN type = 'relation' THEN NOT jsonb_path_exists(value, 'strict $[*] ? (!(@.type() == "string"
        && @ like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))')
      ELSE NOT jsonb_path_exists(value, 'strict $[*] ? (@.type() != "string")')
    END
    ELSE NOT multiple AND type = 'json'
  END
$$;

-- Sorts what was written into `data` and `rich` in canonical spelling, and refuses what does not fit. Rich text that an
-- edit leaves alone stays where it is.
CREATE OR REPLACE FUNCTION precast.keep_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  refreshing boolean := coalesce(current_setting('precast.refreshing', true) = 'on', false);
  same_rich  boolean := TG_OP = 'UPDATE' AND NOT refreshing AND NEW.content_type_id = OLD.content_type_id AND NEW.rich = OLD.rich;
  written    jsonb := CASE WHEN same_rich THEN NEW.data ELSE NEW.rich || NEW.data END;
  rich_text  text[];
  unsure     text[];
  misfit     record;
BEGIN
  SELECT coalesce(array_agg(field.name) FILTER (WHERE field.type = 'rich_text'), '{}'),
    array_agg(field.name) FILTER (WHERE NOT precast.is_plain(field.type, field.multiple, written -> field.name))
  INTO rich_text, unsure
  FROM precast.fields AS field WHERE field.content_type_id = NEW.content_type_id;

  IF unsure IS NOT NULL THEN
    -- A field that changes its type must not fail on entries that were right before.
    IF NOT refreshing THEN
      SELECT field.* INTO misfit
      FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
      WHERE field.content_type_id = NEW.content_type_id AND field.name = ANY (unsure)
        AND NOT CASE WHEN field.multiple THEN precast.fits_many(field.type, value) ELSE precast.fits(field.type, value) END
      ORDER BY field.position
      LIMIT 1;
      IF FOUND THEN
        RAISE EXCEPTION 'entry %: field "%" must hold %', NEW.id, misfit.name,
          CASE WHEN misfit.multiple THEN 'an array of ' || misfit.type || ' values' ELSE 'a ' || misfit.type || ' value' END
          USING ERRCODE = 'check_violation';
      END IF;
    END IF;
    SELECT written || coalesce(jsonb_object_agg(field.name, precast.canonical(field.type, field.multiple, value)), '{}')
    INTO written
    FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
    WHERE field.content_type_id = NEW.content_type_id AND field.name = ANY (unsure)
      AND precast.needs_canonical(field.type, value);
  END IF;

  IF written ?| rich_text THEN
    NEW.rich := CASE WHEN same_rich THEN NEW.rich ELSE '{}' END
      || (SELECT jsonb_object_agg(name, written -> name) FROM unnest(rich_text) AS name WHERE written ? name);
    NEW.data := written - rich_text;
  ELSE
    IF NOT same_rich THEN
      NEW.rich := '{}';
    END IF;
    NEW.data := written;
  END IF;
  RETURN NEW;
END
$$;

-- The text of an HTML fragment, as 0004 has it: comments, scripts, styles and inline tags vanish, block tags and br become
-- a blank, references are decoded. One pattern of all names of blocks takes ten times as long as all the rest, so the text
-- is cut behind each tag, and names are looked up. Where a quoted value holds `>`, that would cut too much.
ALTER FUNCTION precast.html_text(text) RENAME TO quoted_html_text;

-- What a piece of HTML shows that ends in a tag, or in nothing but the `ending` that it was cut at.
CREATE FUNCTION precast.text_before_tag(piece text, ending text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  tag text := substring(piece FROM '<(?:/?[A-Za-z]|[!?]).*$');
BEGIN
  RETURN CASE
    WHEN tag IS NULL THEN piece || ending
    WHEN lower(substring(tag FROM '^</?([^\s/]+)')) IN (
      'address', 'article', 'aside', 'blockquote', 'body', 'br', 'caption', 'center', 'col', 'colgroup', 'dd', 'details',
      'dialog', 'dir', 'div', 'dl', 'dt', 'fieldset', 'figcaption', 'figure', 'footer', 'form', 'frame', 'frameset', 'h1',
      'h2', 'h3', 'h4', 'h5', 'h6', 'head', 'header', 'hgroup', 'hr', 'html', 'legend', 'li', 'listing', 'main', 'menu',
      'nav', 'ol', 'optgroup', 'option', 'p', 'plaintext', 'pre', 'search', 'section', 'summary', 'table', 'tbody', 'td',
      'tfoot', 'th', 'thead', 'title', 'tr', 'ul', 'xmp') THEN left(piece, -length(tag)) || ' '
    ELSE left(piece, -length(tag))
  END;
END
$$;

CREATE FUNCTION precast.html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  shown  text := html;
  pieces text[];
BEGIN
  IF strpos(shown, '<') = 0 THEN
    RETURN precast.decode_references(shown);
  END IF;
  IF shown ~* '<(!--|script|style)' THEN
    shown := regexp_replace(shown, '<!--.*?(-->|$)', '', 'g');
    shown := regexp_replace(shown, '<script[\s/>].*?(</script[^>]*>|$)', '', 'gi');
    shown := regexp_replace(shown, '<style[\s/>].*?(</style[^>]*>|$)', '', 'gi');
  END IF;
  IF strpos(shown, '=') > 0 AND shown ~ '=\s*(?:"[^">]*(?:>|$)|''[^''>]*(?:>|$))' THEN
    RETURN precast.quoted_html_text(html);
  END IF;
  pieces := string_to_array(shown, '>');
  RETURN precast.decode_references(coalesce((
    SELECT string_agg(CASE
        WHEN rest IS NULL THEN piece || CASE WHEN place < cardinality(pieces) THEN '>' ELSE '' END
        WHEN rest IN ('<p', '</p', '<br', '<li', '</li') THEN left(piece, -length(rest)) || ' '
        ELSE precast.text_before_tag(piece, CASE WHEN place < cardinality(pieces) THEN '>' ELSE '' END)
      END, '' ORDER BY place)
    FROM (
      SELECT piece, place, CASE WHEN strpos(piece, '<') > 0 THEN substr(piece, strpos(piece, '<')) END AS rest
      FROM unnest(pieces) WITH ORDINALITY AS cut(piece, place) OFFSET 0) AS cut), ''));
END
$$;

-- Decodes every character reference once.
CREATE OR REPLACE FUNCTION precast.decode_references(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
  IF strpos(html, '&') = 0 THEN
    RETURN html;
  END IF;
  RETURN (
    SELECT string_agg(CASE
        WHEN place = 1 THEN piece
        WHEN reference IS NULL THEN '&' || piece
        ELSE precast.character_reference('&' || reference) || substr(piece, length(reference) + 1)
      END, '' ORDER BY place)
    FROM (
      SELECT piece, place, substring(piece FROM '^(?:#[xX][0-9a-fA-F]+;?|#[0-9]+;?|[A-Za-z][A-Za-z0-9]*;?)') AS reference
      FROM unnest(string_to_array(html, '&')) WITH ORDINALITY AS cut(piece, place)) AS cut);
END
$$;

-- The words of a text, as 0004 spells them. Most words have one blank between them: looking for what is neither a letter
-- nor a blank finds little, and takes a third of the time.
DO $do$
DECLARE
  class text := substring(pg_get_functiondef('precast.words(text)'::regprocedure) FROM $re$'\[\^'\s+('.*')\s+'\]\+', '  ', 'g'$re$);
BEGIN
  EXECUTE format($sql$
    CREATE OR REPLACE FUNCTION precast.words(text text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $words$
    DECLARE
      spaced text := btrim(regexp_replace(regexp_replace(lower(text COLLATE "und-x-icu"), '[^ '
    %s
    ']+', ' ', 'g'), '  +', ' ', 'g'));
    BEGIN
      RETURN CASE WHEN spaced = '' THEN '' ELSE ' ' || replace(spaced, ' ', '  ') || ' ' END;
    END
    $words$
  $sql$, class);
END
$do$;

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

ANALYZE precast.entry_words;
