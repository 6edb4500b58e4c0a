-- Checks each content type once at commit, however many of its fields were written: a check takes time by the square of
-- their number. Also limits that number.

-- The setting `precast.checked` lists the types that have been checked since definitions were last written. A rollback to
-- a savepoint takes back both.
CREATE FUNCTION precast.check_once(type_id integer) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  checked text := coalesce(current_setting('precast.checked', true), '');
  fields  bigint;
BEGIN
  IF strpos(checked, format(' %s ', type_id)) > 0 THEN
    RETURN;
  END IF;
  SELECT count(*) INTO fields FROM precast.fields WHERE content_type_id = type_id;
  IF fields > 1000 THEN
    RAISE EXCEPTION 'content type "%": has % fields, but at most 1000 are allowed',
      (SELECT slug FROM precast.content_types WHERE id = type_id), fields
      USING ERRCODE = 'check_violation';
  END IF;
  PERFORM precast.refuse_bad_lists(type_id);
  PERFORM set_config('precast.checked', format('%s %s ', checked, type_id), true);
END
$$;

CREATE OR REPLACE FUNCTION precast.check_type() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM precast.check_once(NEW.id);
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION precast.check_field() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM precast.check_once(CASE TG_OP WHEN 'DELETE' THEN OLD.content_type_id ELSE NEW.content_type_id END);
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.check_anew() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('precast.checked', '', true);
  RETURN NULL;
END
$$;

CREATE TRIGGER check_anew BEFORE INSERT OR UPDATE OR DELETE ON precast.content_types
  FOR EACH STATEMENT EXECUTE FUNCTION precast.check_anew();
CREATE TRIGGER check_anew BEFORE INSERT OR UPDATE OR DELETE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.check_anew();
