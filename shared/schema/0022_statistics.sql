-- Whether the planner's statistics know a type. Where they list all values of a column and the type is not among them, the
-- planner expects one entry of the type, however many were added since, and would as soon read all of them for each entry
-- that it joins. Where they list the most common values only, it expects an average number. A function, because planning
-- a query on pg_stats takes longer than asking. Runs as the owner, who may read all statistics.
CREATE FUNCTION precast.is_known(type_id integer) RETURNS boolean LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT count(*) = 2 FROM pg_stats
    WHERE schemaname = 'precast' AND tablename IN ('entries', 'entry_words') AND attname = 'content_type_id'
      AND (type_id = ANY (most_common_vals::text::integer[])
        OR (SELECT sum(frequency) FROM unnest(most_common_freqs) AS frequency) < 0.999));
END
$$;
