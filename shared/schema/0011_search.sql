-- Search reads rich text as WHATWG HTML reads it, also where attributes are odd, and compares folded texts (contract.md
-- section 4): the words of an entry are those of its folded text. A query is folded by shared/api/folding.ts, in the same
-- steps.

-- Extracts the text of any HTML, as before (0003_html.sql). What is new is how attributes are read: by the states of the
-- tokenizer, of which each piece of the pattern is as long as it can be.
CREATE OR REPLACE FUNCTION precast.odd_html_text(html text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  value      text := '(?:"[^"]*(?:"|$)|''[^'']*(?:''|$)|[^ \t\n\f\r>"''][^ \t\n\f\r>]*(?=[ \t\n\f\r>]|$)|(?=>|$))';
  -- A name may begin with `=`: then that is no sign between a name and a value. It goes as far as it can, and so does an
  -- unquoted value, which may contain `=` and quotes.
  attribute  text := '[^ \t\n\f\r/>][^ \t\n\f\r/>=]*(?:[ \t\n\f\r]*=[ \t\n\f\r]*' || value ||
    '|(?![ \t\n\f\r]*=)(?=[ \t\n\f\r/>]|$))';
  attributes text := '(?:[ \t\n\f\r/]|' || attribute || ')*';
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

ALTER FUNCTION precast.words(text) RENAME TO split_words;

-- Without accents, other marks of that kind and invisible characters, in lower case, and with ligatures spelled out. The
-- marks are those of Latin, Greek, Cyrillic, Hebrew and Arabic; other scripts cannot be read without theirs.
CREATE FUNCTION precast.fold(text text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  stripped text := regexp_replace(normalize(text, NFKD),
    '[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+',
    '', 'g');
  lowered  text := lower(normalize(stripped, NFKC) COLLATE "und-x-icu");
BEGIN
  RETURN translate(replace(replace(replace(lowered, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'øđłıς', 'odliσ');
END
$$;

-- The words of a text, folded, each with a space on both sides: ' a  b '. ASCII has nothing to fold but case.
CREATE FUNCTION precast.words(text text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN precast.split_words(CASE WHEN octet_length(text) = length(text) THEN text ELSE precast.fold(text) END);
END
$$;

-- Entries that were written before. The trigger of the table adds their new terms.
UPDATE precast.entry_words AS kept SET words = folded.words
FROM (
  SELECT e.content_type_id, e.id, precast.words_of(e.content_type_id, e.data, e.rich) AS words
  FROM precast.entries AS e WHERE e.status = 'published') AS folded
WHERE (kept.content_type_id, kept.id) = (folded.content_type_id, folded.id) AND kept.words <> folded.words;
