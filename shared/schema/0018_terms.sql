-- The terms of each type: the distinct words of its entries. Search looks up the terms that contain what it looks for,
-- and then the entries that have one of these terms: a type has few words and many entries. Two transactions that write
-- the same new word both add it, so that none waits for the other. A word stays when the last entry that has it is
-- edited or deleted, and then finds nothing: a transaction that has begun before may write it again and rely on it.
-- `added_in` makes the key unique, by which a logical replica finds the terms of a deleted type.
CREATE TABLE precast.terms (
  content_type_id integer NOT NULL,
  term            text COLLATE "C" NOT NULL,
  added_in        xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (content_type_id, term, added_in)
);

-- The letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
CREATE FUNCTION precast.unspaced() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]'
$$;

CREATE FUNCTION precast.is_unspaced(text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT octet_length(text) > length(text) AND text ~ precast.unspaced()
$$;

-- Whether each of the words is a term as it is.
CREATE FUNCTION precast.are_terms(words text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT NOT precast.is_unspaced(words) AND (octet_length(words) < 255 OR words !~ '[^ ]{255}')
$$;

-- The terms in the words of an entry (0006_words.sql), or in one word.
CREATE FUNCTION precast.terms_in(words text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN CASE WHEN precast.are_terms(words) THEN string_to_array(btrim(words), '  ') ELSE precast.cut_terms(words) END;
END
$$;

-- The terms in words of which some are no terms as they are. A sentence without spaces would be a term that no other entry
-- has: it becomes all pairs of letters that follow each other, and the runs of other letters in it. A word of more than 600
-- letters is too long for an index and becomes pieces of 600, one every 200: what is looked for, at most 400 letters (200 of
-- a query in lower case), lies within one of them. They are put together from parts of 200, because substr() counts the
-- letters from the beginning of the word each time.
CREATE FUNCTION precast.cut_terms(words text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET jit = off AS $$
DECLARE
  whole text[] := string_to_array(btrim(words), '  ');
BEGIN
  RETURN ARRAY(
    SELECT word FROM unnest(whole) AS word WHERE NOT precast.is_unspaced(word) AND length(word) <= 600
    UNION ALL
    SELECT piece
    FROM unnest(whole) AS word, regexp_split_to_table(word, precast.unspaced() || '+') AS run, LATERAL (
      SELECT run WHERE length(run) <= 600
      UNION ALL
      SELECT part[1] || next[1] || last[1]
      FROM (
        SELECT part, lead(part) OVER places AS next, lead(part, 2) OVER places AS last
        FROM regexp_matches(run, '.{1,200}', 'g') WITH ORDINALITY AS parts (part, place)
        WHERE length(run) > 600 WINDOW places AS (ORDER BY place)) AS parts
      WHERE last IS NOT NULL) AS pieces (piece)
    WHERE (precast.is_unspaced(word) OR length(word) > 600) AND run <> ''
    UNION ALL
    SELECT pair
    FROM unnest(whole) AS word, LATERAL (
      SELECT letter || coalesce(lead(letter) OVER (ORDER BY place), CASE WHEN place = 1 THEN '' END)
      FROM unnest(string_to_array(word, NULL)) WITH ORDINALITY AS letters (letter, place)) AS pairs (pair)
    WHERE precast.is_unspaced(word) AND precast.is_unspaced(pair));
END
$$;

-- The keys by which the index below finds an entry: one of each of its terms, and one of the type alone, which is that of
-- the empty term. The type is part of them, so that a small type is not searched among the entries of large ones. Two
-- terms can have the same key: what is found contains the word perhaps. The planner expects many entries of a key, of
-- which there are few: no parallel workers, which take longer to start than the search takes.
CREATE FUNCTION precast.term_key(type_id integer, term text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT hashtextextended(term COLLATE "C", type_id)
$$;

CREATE FUNCTION precast.term_keys(type_id integer, words text) RETURNS bigint[] LANGUAGE plpgsql
IMMUTABLE PARALLEL RESTRICTED COST 1000 AS $$
BEGIN
  RETURN ARRAY(SELECT precast.term_key(type_id, term) FROM unnest(precast.terms_in(words) || ''::text) AS term);
END
$$;

CREATE INDEX entry_words_by_term ON precast.entry_words USING gin (precast.term_keys(content_type_id, words));
-- What keys are common is of no use to the planner, which does not know what keys a search has, and takes long to find out.
ALTER INDEX precast.entry_words_by_term ALTER COLUMN 1 SET STATISTICS 0;

-- The keys of the entries of a type that may contain a word: those of all entries, if too many terms contain the word
-- for the index to be faster. A plan is made for each word, as parts of two letters are better looked for without an
-- index.
CREATE FUNCTION precast.keys_with(type_id integer, word text) RETURNS bigint[] LANGUAGE plpgsql STABLE PARALLEL SAFE
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF length(word) > 1 AND precast.is_unspaced(word) THEN
    RETURN ARRAY(
      SELECT precast.term_key(type_id, term) FROM unnest(precast.terms_in(word)) AS term WHERE precast.is_unspaced(term)
      ORDER BY term LIMIT 1);
  END IF;
  RETURN (
    SELECT CASE WHEN count(*) <= 500 THEN coalesce(array_agg(precast.term_key(type_id, term)), '{}')
      ELSE ARRAY[precast.term_key(type_id, '')] END
    FROM precast.terms WHERE content_type_id = type_id AND term LIKE '%' || word || '%');
END
$$;

-- Adds the terms of written entries that their types do not have. Each is looked up by the primary key: the planner
-- does not know how many a type has while one transaction fills it, and would join the subquery in a way that reads them
-- all for each term, from which OFFSET keeps it; and terms_by_part (0023_parts.sql), which finds whole terms too, reads its
-- pending list for each. A transaction that builds indexes at its commit (0022_late_indexes.sql) adds them all then.
CREATE FUNCTION precast.add_terms() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET jit = off SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM precast.late_indexes) THEN
    INSERT INTO precast.terms (content_type_id, term)
    SELECT content_type_id, term
    FROM (SELECT DISTINCT content_type_id, unnest(precast.terms_in(words)) AS term FROM written) AS found
    WHERE NOT EXISTS (
      SELECT FROM precast.terms AS known
      WHERE (known.content_type_id, known.term) = (found.content_type_id, found.term) OFFSET 0);
  END IF;
  RETURN NULL;
END
$$;

-- Adds the new terms of edited entries. Those that they had before need not be looked up.
CREATE FUNCTION precast.add_changed_terms() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET jit = off SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM precast.late_indexes) THEN
    INSERT INTO precast.terms (content_type_id, term)
    SELECT content_type_id, term
    FROM (
      SELECT content_type_id, unnest(precast.terms_in(words)) AS term FROM written
      EXCEPT
      SELECT content_type_id, unnest(precast.terms_in(words)) AS term FROM former) AS found
    WHERE NOT EXISTS (
      SELECT FROM precast.terms AS known
      WHERE (known.content_type_id, known.term) = (found.content_type_id, found.term) OFFSET 0);
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER add_terms AFTER INSERT ON precast.entry_words
  REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.add_terms();
CREATE TRIGGER add_changed_terms AFTER UPDATE ON precast.entry_words
  REFERENCING OLD TABLE AS former NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION precast.add_changed_terms();

CREATE FUNCTION precast.forget_terms() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  DELETE FROM precast.terms WHERE content_type_id = OLD.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER forget_terms AFTER DELETE ON precast.content_types
  FOR EACH ROW EXECUTE FUNCTION precast.forget_terms();

-- Adds the terms of all entries that are missing. It deletes none: a transaction that has begun before may rely on it.
CREATE FUNCTION precast.add_missing_terms() RETURNS void LANGUAGE plpgsql
SET jit = off SET enable_sort = off SET enable_bitmapscan = off AS $$
BEGIN
  INSERT INTO precast.terms (content_type_id, term)
  SELECT content_type_id, term
  FROM (SELECT DISTINCT content_type_id, unnest(precast.terms_in(words)) AS term FROM precast.entry_words) AS found
  WHERE NOT EXISTS (
    SELECT FROM precast.terms AS known WHERE (known.content_type_id, known.term) = (found.content_type_id, found.term));
END
$$;
