-- Creates trigram indexes that find substrings of terms (0018_terms.sql) and of the texts in slots. They need the
-- extension pg_trgm, which comes with PostgreSQL and which the owner of a database may create. Without it the answers
-- are the same, but slower for large types. The indexes contain only texts and not the type: every search would read
-- the index entry of its type as well, and entries of small types are found by the primary key anyway.
DO $$
DECLARE
  operators text;
BEGIN
  IF current_schema() IS NULL THEN
    CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA precast;
  ELSE
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
  END IF;
  SELECT quote_ident(nspname) || '.gin_trgm_ops' INTO operators
  FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX terms_by_part ON precast.terms USING gin (term %s)', operators);
  EXECUTE format('CREATE INDEX entries_by_texts ON precast.entries USING gin (texts %s) WHERE status = ''published''', operators);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN
  -- `precast doctor` recommends the indexes once a type is large enough to need them.
  NULL;
END
$$;

-- Merges the pending lists of all GIN indexes of the schema into the indexes. Until then, each search reads the whole
-- pending list.
CREATE FUNCTION precast.take_in_pending() RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  SELECT gin_clean_pending_list(index.oid) FROM pg_class AS index JOIN pg_am AS method ON method.oid = index.relam
  WHERE index.relnamespace = 'precast'::regnamespace AND index.relkind = 'i' AND method.amname = 'gin'
$$;
