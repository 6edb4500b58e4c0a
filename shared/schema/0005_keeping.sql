-- What the database keeps by itself, whoever writes: canonical values, search words, and the rules that span rows.

-- Sorts what was written into `data` and `rich` in canonical spelling, and keeps the words that search looks through.
-- Each step is one statement over all fields: a loop in PL/pgSQL takes many times as long.
CREATE FUNCTION precast.keep_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  written   jsonb := NEW.rich || NEW.data;
  rich_text text[];
  misfit    record;
BEGIN
  SELECT
    coalesce(array_agg(field.name) FILTER (WHERE field.type = 'rich_text'), '{}'),
    coalesce(jsonb_object_agg(field.name, value) FILTER (WHERE field.type = 'rich_text' AND value IS NOT NULL), '{}'),
    written || coalesce(jsonb_object_agg(field.name, precast.canonical(field.type, field.multiple, value))
      FILTER (WHERE precast.needs_canonical(field.type, value)), '{}')
  INTO rich_text, NEW.rich, NEW.data
  FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
  WHERE field.content_type_id = NEW.content_type_id;
  NEW.data := NEW.data - rich_text;

  -- A field that changes its type must not fail on entries that were right before.
  IF current_setting('precast.refreshing', true) IS DISTINCT FROM 'on' THEN
    SELECT field.* INTO misfit
    FROM precast.fields AS field CROSS JOIN LATERAL (SELECT written -> field.name) AS stored(value)
    WHERE field.content_type_id = NEW.content_type_id
      AND NOT CASE WHEN field.multiple THEN precast.fits_many(field.type, value) ELSE precast.fits(field.type, value) END
    ORDER BY field.position
    LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'entry %: field "%" must hold %', NEW.id, misfit.name,
        CASE WHEN misfit.multiple THEN 'an array of ' || misfit.type || ' values' ELSE 'a ' || misfit.type || ' value' END
        USING ERRCODE = 'check_violation';
    END IF;
  END IF;

  SELECT precast.words(coalesce(string_agg(CASE
      WHEN field.type = 'rich_text' THEN precast.html_text(NEW.rich ->> field.name)
      WHEN field.multiple THEN (SELECT string_agg(value, ' ') FROM precast.strings(NEW.data -> field.name) AS value)
      WHEN jsonb_typeof(NEW.data -> field.name) = 'string' THEN NEW.data ->> field.name
    END, ' ' ORDER BY field.position), ''))
  INTO NEW.words
  FROM precast.fields AS field
  WHERE field.content_type_id = NEW.content_type_id AND field.searchable;
  RETURN NEW;
END
$$;

CREATE TRIGGER keep_entry BEFORE INSERT OR UPDATE OF content_type_id, data, rich ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.keep_entry();

CREATE FUNCTION precast.stamp_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.changed_in := pg_current_xact_id();
  RETURN NEW;
END
$$;

CREATE TRIGGER stamp_entry BEFORE INSERT OR UPDATE ON precast.entries
  FOR EACH ROW EXECUTE FUNCTION precast.stamp_entry();

-- A field that becomes searchable, changes its type or goes has its entries kept anew.
CREATE FUNCTION precast.refresh_entries(type_ids integer[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('precast.refreshing', 'on', true);
  UPDATE precast.entries SET data = data WHERE content_type_id = ANY (type_ids);
  PERFORM set_config('precast.refreshing', 'off', true);
END
$$;

CREATE FUNCTION precast.field_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(ARRAY(
    SELECT DISTINCT coalesce(new_fields.content_type_id, old_fields.content_type_id)
    FROM old_fields FULL JOIN new_fields USING (content_type_id, name)
    WHERE (old_fields.type, old_fields.multiple, old_fields.searchable, old_fields.position)
          IS DISTINCT FROM (new_fields.type, new_fields.multiple, new_fields.searchable, new_fields.position)));
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.field_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(ARRAY(SELECT DISTINCT content_type_id FROM new_fields));
  RETURN NULL;
END
$$;

CREATE FUNCTION precast.field_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM precast.refresh_entries(ARRAY(SELECT DISTINCT content_type_id FROM old_fields));
  RETURN NULL;
END
$$;

CREATE TRIGGER field_changed AFTER UPDATE ON precast.fields
  REFERENCING OLD TABLE AS old_fields NEW TABLE AS new_fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.field_changed();
CREATE TRIGGER field_added AFTER INSERT ON precast.fields
  REFERENCING NEW TABLE AS new_fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.field_added();
CREATE TRIGGER field_removed AFTER DELETE ON precast.fields
  REFERENCING OLD TABLE AS old_fields
  FOR EACH STATEMENT EXECUTE FUNCTION precast.field_removed();

-- A type's lists may name its own fields alone, and of those only what can be filtered, sorted or shown. Looked at when
-- the transaction commits, so that a type and its fields can be written in any order.
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
    SELECT format('filterable_fields cannot hold "%s"', name) FROM unnest(kind.filterable_fields) AS name
      WHERE name NOT IN (SELECT filterable.name FROM filterable)
    UNION ALL
    SELECT format('sortable_fields cannot hold "%s"', name) FROM unnest(kind.sortable_fields) AS name
      WHERE name NOT IN (SELECT sortable.name FROM sortable)
    UNION ALL
    SELECT format('summary_fields cannot hold "%s"', name) FROM unnest(kind.summary_fields) AS name
      WHERE name NOT IN (SELECT own.name FROM own)
    UNION ALL
    SELECT format('default_sort cannot be "%s"', kind.default_sort)
      WHERE ltrim(kind.default_sort, '-') NOT IN (SELECT sortable.name FROM sortable)
    UNION ALL
    SELECT format('field "%s" has the name of the address of "%s"', own.name, media.name)
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

CREATE CONSTRAINT TRIGGER check_type AFTER INSERT OR UPDATE ON precast.content_types
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.check_type();
CREATE CONSTRAINT TRIGGER check_field AFTER INSERT OR UPDATE OR DELETE ON precast.fields
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION precast.check_field();
