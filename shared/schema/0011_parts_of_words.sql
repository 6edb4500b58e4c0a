-- Indexes for parts of texts: of the words that search looks through, and of the texts in slots, for `contains` and
-- `starts_with`. They need two extensions that every PostgreSQL brings and that the owner of a database may create. Without
-- them the answers are the same, and large types slower.
DO $$
DECLARE
  operators text;
  texts     text := $texts$lower((coalesce(t1, '') || E'\n' || coalesce(t2, '') || E'\n' || coalesce(t3, '') || E'\n' || coalesce(t4, '') || E'\n' || coalesce(t5, '') || E'\n' || coalesce(t6, '') || E'\n' || coalesce(t7, '') || E'\n' || coalesce(t8, '')) COLLATE "und-x-icu")$texts$;
BEGIN
  BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE EXTENSION IF NOT EXISTS btree_gin;
  EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN
    RAISE NOTICE 'search has no index: %', SQLERRM;
    RETURN;
  END;
  SELECT quote_ident(nspname) || '.gin_trgm_ops' INTO operators
  FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX entries_by_words ON precast.entries USING gin (content_type_id, words %s)
    WHERE status = ''published''', operators);
  EXECUTE format('CREATE INDEX entries_by_texts ON precast.entries USING gin (content_type_id, (%s) %s)
    WHERE status = ''published''', texts, operators);
END
$$;
