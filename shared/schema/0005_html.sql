-- The text that an HTML fragment shows: comments, scripts, styles and inline tags vanish, block tags and br become a blank,
-- references are decoded once (contract.md section 4). HTML is read from left to right, each piece of markup for what it is where
-- it stands: a comment in an attribute is none, nor is a tag in a script. The functions are PL/pgSQL where a text goes through
-- several steps: SQL functions are inlined and do each step again.

-- The character that a numeric reference stands for, by WHATWG HTML: windows-1252 for the C1 range, U+FFFD for what is
-- no character.
CREATE FUNCTION precast.character_of(code integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN code BETWEEN 128 AND 159 THEN
      substr(U&'\20AC\0081\201A\0192\201E\2026\2020\2021\02C6\2030\0160\2039\0152\008D\017D\008F'
             '\0090\2018\2019\201C\201D\2022\2013\2014\02DC\2122\0161\203A\0153\009D\017E\0178', code - 127, 1)
    WHEN code BETWEEN 1 AND 55295 OR code BETWEEN 57344 AND 1114111 THEN chr(code)
    ELSE U&'\FFFD'
  END
$$;

-- Decodes one character reference. One that HTML does not know stays as it is written.
CREATE FUNCTION precast.character_reference(reference text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  decoded text;
BEGIN
  IF reference ~ '^&#[xX]0*[0-9a-fA-F]{1,6};?$' THEN
    RETURN precast.character_of(('x' || lpad(substring(reference FROM '^&#[xX]0*([0-9a-fA-F]+)'), 8, '0'))::bit(32)::int);
  ELSIF reference ~ '^&#0*[0-9]{1,7};?$' THEN
    RETURN precast.character_of(substring(reference FROM '^&#0*([0-9]+)')::int);
  ELSIF reference LIKE '&#%' THEN
    RETURN U&'\FFFD';
  END IF;
  SELECT characters INTO decoded FROM precast.html_entities WHERE name = substr(reference, 2) COLLATE "C";
  IF FOUND THEN
    RETURN decoded;
  END IF;
  -- Old names end without a semicolon, wherever they like: `&copy2` is a sign and a digit.
  SELECT characters || substr(reference, 2 + length(name)) INTO decoded
  FROM generate_series(2, 6) AS size JOIN precast.html_entities ON name = substr(reference, 2, size) COLLATE "C"
  ORDER BY size DESC
  LIMIT 1;
  RETURN coalesce(decoded, reference);
END
$$;

-- Decodes every character reference once. Nearly all are among the named ones, and found there in a fourth of the time that a call
-- takes. A text may come with any collation: by another than the index's, all names would be looked through.
CREATE FUNCTION precast.decode_references(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
  IF strpos(html, '&') = 0 THEN
    RETURN html;
  END IF;
  RETURN (
    SELECT string_agg(CASE
        WHEN place = 1 THEN piece
        WHEN reference IS NULL THEN '&' || piece
        ELSE coalesce((SELECT characters FROM precast.html_entities WHERE name = reference COLLATE "C"),
          precast.character_reference('&' || reference)) || substr(piece, length(reference) + 1)
      END, '' ORDER BY place)
    FROM (
      SELECT piece, place, substring(piece FROM '^(?:#[xX][0-9a-fA-F]+;?|#[0-9]+;?|[A-Za-z][A-Za-z0-9]*;?)') AS reference
      FROM unnest(string_to_array(html, '&')) WITH ORDINALITY AS cut(piece, place)) AS cut);
END
$$;

-- Does a tag begin or end a block? `tag` begins with `<`. Inlined. Here as below letters are those of ASCII, whatever language the
-- database has: in some an `I` is no capital `i`.
CREATE FUNCTION precast.is_block(tag text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(substring(tag FROM '^</?([^ \t\n\f\r/>]+)') COLLATE "C") IN (
    'address', 'article', 'aside', 'blockquote', 'body', 'br', 'caption', 'center', 'col', 'colgroup', 'dd', 'details',
    'dialog', 'dir', 'div', 'dl', 'dt', 'fieldset', 'figcaption', 'figure', 'footer', 'form', 'frame', 'frameset', 'h1',
    'h2', 'h3', 'h4', 'h5', 'h6', 'head', 'header', 'hgroup', 'hr', 'html', 'legend', 'li', 'listing', 'main', 'menu',
    'nav', 'ol', 'optgroup', 'option', 'p', 'plaintext', 'pre', 'search', 'section', 'summary', 'table', 'tbody', 'td',
    'tfoot', 'th', 'thead', 'title', 'tr', 'ul', 'xmp')
$$;

-- What a piece of HTML shows that ends in a tag, or in nothing but the `ending` that it was cut at.
CREATE FUNCTION precast.text_before_tag(piece text, ending text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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

-- The text of any HTML: one piece of markup after the other, with the text before it. PostgreSQL takes the longest of several
-- alternatives. A comment ends as WHATWG HTML has it, and `</` before anything but a letter begins one. Quotes count behind `=`
-- alone. A script that begins a comment and another script within ends where that one does, and its own end is yet to come.
CREATE FUNCTION precast.odd_html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  attributes text := '(?:[^>=]|=[ \t\n\f\r]*(?:"[^"]*(?:"|$)|''[^'']*(?:''|$)|(?![ \t\n\f\r"''])))*';
  -- A name ends at a blank, a slash or the end of the tag: what stands in it is no attribute.
  tag        text := '</?[a-z][^ \t\n\f\r/>]*(?=[ \t\n\f\r/>]|$)' || attributes || '(?:>|$)';
  comment    text := '<!--(?:-?>|(?!-?>)(?:-?[^-]|--+(?:[^->!]|!(?!>)))*(?:--+!?>|-*!?$))';
  bogus      text := '<(?:!(?!--)|\?|/(?![a-z>]))[^>]*(?:>|$)|</>';
  nested     text := '<script[ \t\n\f\r/>](?:[^-<]|-(?!->)|<(?!/script[ \t\n\f\r/>]))*(?:</script[ \t\n\f\r/>]|(?=-->)|$)';
  escaped    text := '<!--(?:-?>|(?!-?>)(?:[^-<]|-(?!->)|<(?!/?script[ \t\n\f\r/>])|' || nested ||
    ')*(?:-->|(?=</script[ \t\n\f\r/>])|$))';
  silent     text := '<(?:script(?=[ \t\n\f\r/>])A>(?:[^<]|<(?!/script(?:[ \t\n\f\r/>]|$)|!--)|' || escaped ||
    ')*(?:</scriptA(?:>|$)|$)'
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

-- The text of HTML, most of which is plain: what is not is left to `odd_html_text`, which takes longer.
CREATE FUNCTION precast.html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  shown  text COLLATE "C" := html;
  pieces text[];
BEGIN
  IF strpos(html, '<') = 0 THEN
    RETURN precast.decode_references(html);
  END IF;
  -- Most comments are where nothing but text could be. One leaves markup, so that what stood around it makes no tag.
  IF strpos(html, '<!--') > 0 AND shown !~* '<(?:script|style)|<[a-z/!?][^>]*<!--|<!---?>|--!>' THEN
    shown := regexp_replace(html, '<!--.*?(?:-->|$)', '<!>', 'g');
  END IF;
  -- What follows reads text that is cut at each `>`: no quoted value may hold one, and no tag may cut a reference or begin in
  -- another.
  IF shown ~* '<(?:!(?!>)|script|style|/[^a-z]|[^>]*<)'
    OR strpos(shown, '=') > 0 AND shown ~ '=\s*(?:"[^">]*(?:>|$)|''[^''>]*(?:>|$))'
    OR strpos(shown, '&') > 0 AND shown ~ '&#?[A-Za-z0-9]*<' THEN
    RETURN precast.odd_html_text(html COLLATE "C");
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
