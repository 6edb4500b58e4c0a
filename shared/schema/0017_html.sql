-- HTML is read from left to right, each piece of markup for what it is where it stands: a comment in an attribute is none, nor
-- is a tag in a script. Functions as 0011 has them.

-- Does a tag begin or end a block? `tag` begins with `<`. Inlined.
CREATE FUNCTION precast.is_block(tag text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(substring(tag FROM '^</?([^ \t\n\f\r/>]+)')) IN (
    'address', 'article', 'aside', 'blockquote', 'body', 'br', 'caption', 'center', 'col', 'colgroup', 'dd', 'details',
    'dialog', 'dir', 'div', 'dl', 'dt', 'fieldset', 'figcaption', 'figure', 'footer', 'form', 'frame', 'frameset', 'h1',
    'h2', 'h3', 'h4', 'h5', 'h6', 'head', 'header', 'hgroup', 'hr', 'html', 'legend', 'li', 'listing', 'main', 'menu',
    'nav', 'ol', 'optgroup', 'option', 'p', 'plaintext', 'pre', 'search', 'section', 'summary', 'table', 'tbody', 'td',
    'tfoot', 'th', 'thead', 'title', 'tr', 'ul', 'xmp')
$$;

CREATE OR REPLACE FUNCTION precast.text_before_tag(piece text, ending text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  tag text := substring(piece FROM '<(?:/?[A-Za-z]|[!?]).*$');
BEGIN
  RETURN CASE
    WHEN tag IS NULL THEN piece || ending
    WHEN precast.is_block(tag) THEN left(piece, -length(tag)) || ' '
    ELSE left(piece, -length(tag))
  END;
END
$$;

-- One piece of markup after the other, with the text before it. PostgreSQL takes the longest of several alternatives. A
-- comment ends as WHATWG HTML has it, and `</` before anything but a letter begins one. Quotes count behind `=` alone.
CREATE FUNCTION precast.odd_html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  attributes text := '(?:[^>=]|=[ \t\n\f\r]*(?:"[^"]*(?:"|$)|''[^'']*(?:''|$)|(?![ \t\n\f\r"''])))*';
  tag        text := '</?[a-z]' || attributes || '(?:>|$)';
  comment    text := '<!--(?:-?>|(?!-?>)(?:-?[^-]|--+(?:[^->!]|!(?!>)))*(?:--+!?>|-*!?$))';
  bogus      text := '<(?:!(?!--)|\?|/(?![a-z>]))[^>]*(?:>|$)|</>';
  silent     text := '<(?:script(?=[ \t\n\f\r/>])A>(?:[^<]|<(?!/script(?:[ \t\n\f\r/>]|$)))*(?:</scriptA(?:>|$)|$)'
                     '|style(?=[ \t\n\f\r/>])A>(?:[^<]|<(?!/style(?:[ \t\n\f\r/>]|$)))*(?:</styleA(?:>|$)|$))';
BEGIN
  RETURN (
    SELECT string_agg(precast.decode_references(piece[1]) || CASE
        WHEN piece[2] = '<' THEN '<'
        WHEN precast.is_block(piece[2]) THEN ' '
        ELSE ''
      END, '' ORDER BY place)
    FROM regexp_matches(html, format('([^<]*)(%s|%s|%s|%s|<|$)', tag, comment, bogus, replace(silent, 'A', attributes)), 'gi')
         WITH ORDINALITY AS found(piece, place));
END
$$;

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
  -- Where no quoted value holds `>` and no tag cuts a reference, text that is cut at each `>` is read in half of the time.
  IF shown ~* '<(?:!(?!>)|script|style|/[^a-z])'
    OR strpos(shown, '=') > 0 AND shown ~ '=\s*(?:"[^">]*(?:>|$)|''[^''>]*(?:>|$))'
    OR strpos(shown, '&') > 0 AND shown ~ '&#?[A-Za-z0-9]*<' THEN
    RETURN precast.odd_html_text(html);
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

DROP FUNCTION precast.quoted_html_text(text);

-- What was read otherwise is read anew. Nothing that an answer of the tree shows has changed.
DO $do$
BEGIN
  PERFORM set_config('precast.refreshing', 'on', true), set_config('precast.filling', 'on', true);
  UPDATE precast.entries AS entry SET rich = entry.rich
  FROM precast.entry_words AS kept
  WHERE (kept.content_type_id, kept.id) = (entry.content_type_id, entry.id)
    AND entry.rich::text ~* '<(?:!|script|style|/[^a-z])|=\s*(?:\\"[^">]*>|''[^''>]*>)|&#?[a-z0-9]*<'
    AND kept.words <> precast.words_of(entry.content_type_id, entry.data, entry.rich);
  PERFORM set_config('precast.refreshing', 'off', true), set_config('precast.filling', 'off', true);
END
$do$;
