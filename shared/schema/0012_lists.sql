-- Checks a type's lists: they may name only timestamp columns and the type's own fields that can be filtered, sorted or
-- shown, respectively. The check runs at commit, so that a type and its fields can be written in any order.

CREATE FUNCTION precast.refuse_bad_lists(type_id integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  problem text;
BEGIN
  WITH own AS (SELECT * FROM precast.fields WHERE content_type_id = type_id),
  stamps(name) AS (VALUES ('published_at'), ('created_at'), ('updated_at')),
  sortable AS (SELECT name FROM own WHERE type NOT IN ('rich_text', 'json', 'relation') AND NOT multiple
               UNION SELECT name FROM stamps),
  filterable AS (SELECT name FROM own WHERE type NOT IN ('rich_text', 'json') UNION SELECT name FROM stamps)
  SELECT format('content type "%s": ', kind.slug) || complaint INTO problem
  FROM precast.content_types AS kind, LATERAL (
    WITH lists(list, names, allowed) AS (VALUES
      ('filterable_fields', kind.filterable_fields, ARRAY(SELECT filterable.name FROM filterable)),
      ('sortable_fields', kind.sortable_fields, ARRAY(SELECT sortable.name FROM sortable)),
      ('summary_fields', kind.summary_fields, ARRAY(SELECT own.name FROM own)))
    SELECT format('%s must be a one-dimensional array, but contains arrays', list) FROM lists WHERE array_ndims(names) > 1
    UNION ALL
    SELECT format('%s cannot hold %s', list, coalesce('"' || name || '"', 'NULL'))
      FROM lists, unnest(names) AS name WHERE (name = ANY (allowed)) IS NOT TRUE
    UNION ALL
    SELECT format('%s holds "%s" twice', list, name)
      FROM lists, unnest(names) AS name GROUP BY list, name HAVING count(*) > 1
    UNION ALL
    SELECT format('default_sort cannot be "%s"', kind.default_sort)
      WHERE regexp_replace(kind.default_sort, '^-', '') NOT IN (SELECT sortable.name FROM sortable)
    UNION ALL
    SELECT format('field "%s" has the name that is reserved for the address of media field "%s"', own.name, media.name)
      FROM own JOIN own AS media ON media.type = 'media' AND own.name = media.name || '_url'
  ) AS complaints(complaint)
  WHERE kind.id = type_id
  LIMIT 1;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION '%', problem USING ERRCODE = 'check_violation';
  END IF;
END
$$;

CREATE FUNCTION precast.check_type() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refuse_bad_lists(NEW.id);
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.check_field() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refuse_bad_lists(CASE TG_OP WHEN 'DELETE' THEN OLD.content_type_id ELSE NEW.content_type_id END);
  RETURN NULL;
END
$$;

-- A trigger on TRUNCATE cannot be deferred to the end of the transaction. This one updates all types instead, so that
-- the deferred trigger `check_type` checks them.
CREATE FUNCTION precast.check_types_later() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
BEGIN
  UPDATE precast.content_types SET slug = slug;
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER check_type AFTER INSERT OR UPDATE ON precast.content_types
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.check_type();
CREATE CONSTRAINT TRIGGER check_field AFTER INSERT OR UPDATE OR DELETE ON precast.fields
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.check_field();
CREATE TRIGGER check_types_later AFTER TRUNCATE ON precast.fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.check_types_later();
