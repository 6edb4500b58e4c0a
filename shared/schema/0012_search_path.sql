-- Functions that run in sessions of others, with the rights of whoever writes: they find functions and operators in the
-- schema of PostgreSQL only, whatever the `search_path` of the session. Functions that are called by these do so too.
-- Functions that only our own statements call are left as they are: our sessions have no other path.

DO $$
DECLARE
  name regprocedure;
BEGIN
  FOR name IN
    SELECT oid FROM pg_proc
    WHERE pronamespace = 'precast'::regnamespace
      AND (prorettype = 'trigger'::regtype OR proname = 'term_keys')
      AND NOT coalesce(array_to_string(proconfig, ' ') LIKE '%search_path=%', false)
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', name);
  END LOOP;
END
$$;
