-- Flags: transaction-local settings by which Precast's own statements tell triggers that fire later in the transaction
-- how to act. The setting of a flag that was never raised in the session is NULL; `is_raised` treats it as lowered.

CREATE FUNCTION precast.raise_flag(flag text) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('precast.' || flag, 'on', true)
$$;

CREATE FUNCTION precast.lower_flag(flag text) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('precast.' || flag, 'off', true)
$$;

-- PostgreSQL inlines this function, also in WHEN conditions of triggers, so that a write does not pay for a function
-- call.
CREATE FUNCTION precast.is_raised(flag text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(current_setting('precast.' || flag, true) = 'on', false)
$$;
