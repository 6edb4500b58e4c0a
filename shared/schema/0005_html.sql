-- Extracts the visible text of an HTML fragment: comments, scripts, styles and inline tags are removed, block tags and
-- br become a space, and character references are decoded once (contract.md section 4). HTML is read from left to
-- right, and each piece of markup is interpreted in its context: `<!--` inside an attribute value starts no comment,
-- and a tag inside a script is not a tag. Functions that process a text in several steps are PL/pgSQL: PostgreSQL would
-- inline SQL functions and repeat a step for each use of its result.

-- The character of a numeric reference by WHATWG HTML: windows-1252 for the C1 range, U+FFFD for code points that are
-- not characters (0, surrogates, above U+10FFFF).
CREATE FUNCTION precast.character_of(code integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN code BETWEEN 128 AND 159 THEN
      substr(U&'\20AC\0081\201A\0192\201E\2026\2020\2021\02C6\2030\0160\2039\0152\008D\017D\008F'
             '\0090\2018\2019\201C\201D\2022\2013\2014\02DC\2122\0161\203A\0153\009D\017E\0178', code - 127, 1)
    WHEN code BETWEEN 1 AND 55295 OR code BETWEEN 57344 AND 1114111 THEN chr(code)
    ELSE U&'\FFFD'
  END
$$;

-- Decodes one character reference, which begins with `&`. Returns an unknown named reference unchanged.
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
  -- Legacy names need no semicolon and may be followed by anything: `&copy2` is a copyright sign and a digit.
  SELECT characters || substr(reference, 2 + length(name)) INTO decoded
  FROM generate_series(2, 6) AS size JOIN precast.html_entities ON name = substr(reference, 2, size) COLLATE "C"
  ORDER BY size DESC
  LIMIT 1;
  RETURN coalesce(decoded, reference);
END
$$;

-- Decodes every character reference once. Nearly all references are in the table of names, where looking them up takes
-- a quarter of the time of a call to `character_reference`. The text may have any collation; without COLLATE "C" the
-- index of names could not be used.
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

-- Whether a tag starts or ends a block. `tag` begins with `<`. Inlined by PostgreSQL. Here and below, COLLATE "C"
-- restricts case folding to ASCII whatever the locale of the database: in Turkish, `I` is not the capital of `i`.
CREATE FUNCTION precast.is_block(tag text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(substring(tag FROM '^</?([^ \t\n\f\r/>]+)') COLLATE "C") IN (
    'address', 'article', 'aside', 'blockquote', 'body', 'br', 'caption', 'center', 'col', 'colgroup', 'dd', 'details',
    'dialog', 'dir', 'div', 'dl', 'dt', 'fieldset', 'figcaption', 'figure', 'footer', 'form', 'frame', 'frameset', 'h1',
    'h2', 'h3', 'h4', 'h5', 'h6', 'head', 'header', 'hgroup', 'hr', 'html', 'legend', 'li', 'listing', 'main', 'menu',
    'nav', 'ol', 'optgroup', 'option', 'p', 'plaintext', 'pre', 'search', 'section', 'summary', 'table', 'tbody', 'td',
    'tfoot', 'th', 'thead', 'title', 'tr', 'ul', 'xmp')
$$;

-- The visible text of one piece of HTML that was split at `>`. `ending` is that `>`, or empty for the last piece: it
-- closes the tag in which the piece ends and is visible if the piece contains no tag.
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

-- Extracts the text of any HTML: each match is one piece of markup and the text before it. In PostgreSQL the longest
-- alternative matches, not the first. Comments end where WHATWG HTML ends them, and `</` followed by neither a letter
-- nor `>` starts a bogus comment. Quotes delimit attribute values only after `=`. If a script contains `<!--` and then
-- `<script`, the next `</script>` ends the inner script, and the outer one continues.
CREATE FUNCTION precast.odd_html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  attributes text := '(?:[^>=]|=[ \t\n\f\r]*(?:"[^"]*(?:"|$)|''[^'']*(?:''|$)|(?![ \t\n\f\r"''])))*';
  -- A tag name ends at whitespace, a slash or the end of the tag; `=` and quotes in the name do not form an attribute.
  tag        text := '</?[a-z][^ \t\n\f\r/>]*(?=[ \t\n\f\r/>]|$)' || attributes || '(?:>|$)';
  comment    text := '<!--(?:-?>|(?!-?>)(?:-?[^-]|--+(?:[^->!]|!(?!>)))*(?:--+!?>|-*!?$))';
  bogus      text := '<(?:!(?!--)|\?|/(?![a-z>]))[^>]*(?:>|$)|</>';
  nested     text := '<script[ \t\n\f\r/>](?:[^-<]|-(?!->)|<(?!/script[ \t\n\f\r/>]))*(?:</script[ \t\n\f\r/>]|(?=-->)|$)';
  escaped    text := '<!--(?:-?>|(?!-?>)(?:[^-<]|-(?!->)|<(?!/?script[ \t\n\f\r/>])|' || nested ||
    ')*(?:-->|(?=</script[ \t\n\f\r/>])|$))';
  silent     text := '<(?:script(?=[ \t\n\f\r/>])A>(?:[^<]|<(?!/script(?:[ \t\n\f\r/>]|$)|!--)|' || escaped ||
    ')*(?:</script(?=[ \t\n\f\r/>]|$)A(?:>|$)|$)'
    '|style(?=[ \t\n\f\r/>])A>(?:[^<]|<(?!/style(?:[ \t\n\f\r/>]|$)))*(?:</style(?=[ \t\n\f\r/>]|$)A(?:>|$)|$))';
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

-- Extracts the text of HTML. Most HTML is simple and handled here; the rest goes to `odd_html_text`, which is slower.
CREATE FUNCTION precast.html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  shown  text COLLATE "C" := html;
  pieces text[];
BEGIN
  IF strpos(html, '<') = 0 THEN
    RETURN precast.decode_references(html);
  END IF;
  -- Most comments stand between tags, in text. Each is replaced by `<!>` and not removed, so that the characters around
  -- it cannot form a tag.
  IF strpos(html, '<!--') > 0 AND shown !~* '<(?:script|style)|<[a-z/!?][^>]*<!--|<!---?>|--!>' THEN
    shown := regexp_replace(html, '<!--.*?(?:-->|$)', '<!>', 'g');
  END IF;
  -- The code below splits the text at every `>`. That is correct only if no quoted value contains `>`, no tag
  -- interrupts a character reference, and no tag starts inside another.
  IF shown ~* '<(?:!(?!>)|script|style|/[^a-z]|[^>]*<)'
    OR strpos(shown, '=') > 0 AND shown ~ '=\s*(?:"[^">]*(?:>|$)|''[^''>]*(?:>|$))'
    OR strpos(shown, '&') > 0 AND shown ~ '&#?[A-Za-z0-9]*<' THEN
    RETURN precast.odd_html_text(html COLLATE "C");
  END IF;
  -- These are the most frequent tags; most texts contain no others.
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
