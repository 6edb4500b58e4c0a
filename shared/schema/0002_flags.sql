-- What one statement of ours tells the triggers of those that follow in its transaction. A flag that was never raised in a session
-- reads as NULL there, and as lowered here.

CREATE FUNCTION precast.raise_flag(flag text) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('precast.' || flag, 'on', true)
$$;

CREATE FUNCTION precast.lower_flag(flag text) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('precast.' || flag, 'off', true)
$$;

-- Inlined, in conditions of triggers as well: a write must not pay for a call.
CREATE FUNCTION precast.is_raised(flag text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(current_setting('precast.' || flag, true) = 'on', false)
$$;
