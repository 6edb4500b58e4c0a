-- The indexes of slots hold the values of all slots: what several filters and a sort ask for together is found and counted
-- in one of them, without a look at the entries. Numbers stand first: they are read past texts of any length otherwise.

-- An index takes a third of a page at most, and now all texts stand in it together: the longest give way.
CREATE OR REPLACE FUNCTION precast.give_up_long_slots(type_id integer, data jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  too_long text[] := ARRAY(
    SELECT slot FROM (
      SELECT slot, size, sum(size) OVER (ORDER BY size, slot) AS together
      FROM precast.slots CROSS JOIN jsonb_each(map) AS held(slot, field),
      LATERAL (SELECT octet_length(data ->> (field ->> 0)) AS size) AS measured
      WHERE content_type_id = type_id AND slot LIKE 't_' AND jsonb_typeof(data -> (field ->> 0)) = 'string') AS texts
    WHERE size > 2000 OR together > 2400);
BEGIN
  IF too_long <> '{}' THEN
    UPDATE precast.slots
    SET map = (map - too_long) || jsonb_build_object('long', coalesce(map -> 'long', '[]')
      || (SELECT jsonb_agg(map -> slot -> 0) FROM unnest(too_long) AS slot WHERE map ? slot))
    WHERE content_type_id = type_id AND map ?| too_long;
  END IF;
END
$$;

-- What the texts of slots say in lower case, each a line that begins with the number of its slot: so that one index finds parts
-- and beginnings of texts. Ends of lines within a text become returns.
ALTER TABLE precast.entries ADD COLUMN texts text COLLATE "C";

CREATE FUNCTION precast.line_of(slot text, value text, field jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN field ->> 1 IN ('text', 'select', 'media') THEN E'\n' || slot || replace(value, E'\n', E'\r') ELSE '' END
$$;

-- The map is locked until the entry is there for all: a change must find every entry.
CREATE OR REPLACE FUNCTION precast.fill_slots() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held jsonb;
BEGIN
  IF octet_length(NEW.data::text) > 2000 THEN
    PERFORM precast.give_up_long_slots(NEW.content_type_id, NEW.data);
  END IF;
  SELECT map INTO held FROM precast.slots WHERE content_type_id = NEW.content_type_id FOR SHARE;
  NEW.t1 := precast.text_slot(NEW.data, held -> 't1');
  NEW.t2 := precast.text_slot(NEW.data, held -> 't2');
  NEW.t3 := precast.text_slot(NEW.data, held -> 't3');
  NEW.t4 := precast.text_slot(NEW.data, held -> 't4');
  NEW.t5 := precast.text_slot(NEW.data, held -> 't5');
  NEW.t6 := precast.text_slot(NEW.data, held -> 't6');
  NEW.t7 := precast.text_slot(NEW.data, held -> 't7');
  NEW.t8 := precast.text_slot(NEW.data, held -> 't8');
  NEW.texts := lower(concat(precast.line_of('1', NEW.t1, held -> 't1'), precast.line_of('2', NEW.t2, held -> 't2'), precast.line_of('3', NEW.t3, held -> 't3'), precast.line_of('4', NEW.t4, held -> 't4'),
    precast.line_of('5', NEW.t5, held -> 't5'), precast.line_of('6', NEW.t6, held -> 't6'), precast.line_of('7', NEW.t7, held -> 't7'), precast.line_of('8', NEW.t8, held -> 't8')) COLLATE "und-x-icu");
  NEW.n1 := precast.number_slot(NEW.data, held -> 'n1');
  NEW.n2 := precast.number_slot(NEW.data, held -> 'n2');
  NEW.n3 := precast.number_slot(NEW.data, held -> 'n3');
  NEW.n4 := precast.number_slot(NEW.data, held -> 'n4');
  NEW.n5 := precast.number_slot(NEW.data, held -> 'n5');
  NEW.n6 := precast.number_slot(NEW.data, held -> 'n6');
  RETURN NEW;
END
$$;

CREATE OR REPLACE TRIGGER keep_slots
  BEFORE INSERT OR UPDATE OF content_type_id, data, rich, texts, t1, t2, t3, t4, t5, t6, t7, t8, n1, n2, n3, n4, n5, n6
  ON precast.entries FOR EACH ROW EXECUTE FUNCTION precast.fill_slots();

DROP INDEX precast.entries_by_t1;
DROP INDEX precast.entries_by_t2;
DROP INDEX precast.entries_by_t3;
DROP INDEX precast.entries_by_t4;
DROP INDEX precast.entries_by_t5;
DROP INDEX precast.entries_by_t6;
DROP INDEX precast.entries_by_t7;
DROP INDEX precast.entries_by_t8;
DROP INDEX precast.entries_by_n1;
DROP INDEX precast.entries_by_n2;
DROP INDEX precast.entries_by_n3;
DROP INDEX precast.entries_by_n4;
DROP INDEX precast.entries_by_n5;
DROP INDEX precast.entries_by_n6;

-- Texts stay in the row, as `data` does: each test of many rows would fetch them one by one.
ALTER TABLE precast.entries
  ALTER COLUMN t1 SET STORAGE MAIN,
  ALTER COLUMN t2 SET STORAGE MAIN,
  ALTER COLUMN t3 SET STORAGE MAIN,
  ALTER COLUMN t4 SET STORAGE MAIN,
  ALTER COLUMN t5 SET STORAGE MAIN,
  ALTER COLUMN t6 SET STORAGE MAIN,
  ALTER COLUMN t7 SET STORAGE MAIN,
  ALTER COLUMN t8 SET STORAGE MAIN,
  ALTER COLUMN texts SET STORAGE MAIN;

SELECT precast.give_up_long_slots(content_type_id, data) FROM precast.entries WHERE octet_length(data::text) > 2000;
SELECT set_config('precast.filling', 'on', true);
UPDATE precast.entries SET t1 = NULL WHERE num_nonnulls(t1, t2, t3, t4, t5, t6, t7, t8) > 0;
SELECT set_config('precast.filling', 'off', true);

CREATE INDEX entries_by_t1 ON precast.entries (content_type_id, t1, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t1 IS NOT NULL;
CREATE INDEX entries_by_t2 ON precast.entries (content_type_id, t2, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t1, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t2 IS NOT NULL;
CREATE INDEX entries_by_t3 ON precast.entries (content_type_id, t3, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t1, t2, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t3 IS NOT NULL;
CREATE INDEX entries_by_t4 ON precast.entries (content_type_id, t4, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t1, t2, t3, t5, t6, t7, t8)
  WHERE status = 'published' AND t4 IS NOT NULL;
CREATE INDEX entries_by_t5 ON precast.entries (content_type_id, t5, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t6, t7, t8)
  WHERE status = 'published' AND t5 IS NOT NULL;
CREATE INDEX entries_by_t6 ON precast.entries (content_type_id, t6, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t7, t8)
  WHERE status = 'published' AND t6 IS NOT NULL;
CREATE INDEX entries_by_t7 ON precast.entries (content_type_id, t7, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t8)
  WHERE status = 'published' AND t7 IS NOT NULL;
CREATE INDEX entries_by_t8 ON precast.entries (content_type_id, t8, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7)
  WHERE status = 'published' AND t8 IS NOT NULL;
CREATE INDEX entries_by_n1 ON precast.entries (content_type_id, n1, published_at DESC, id)
  INCLUDE (n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n1 IS NOT NULL;
CREATE INDEX entries_by_n2 ON precast.entries (content_type_id, n2, published_at DESC, id)
  INCLUDE (n1, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n2 IS NOT NULL;
CREATE INDEX entries_by_n3 ON precast.entries (content_type_id, n3, published_at DESC, id)
  INCLUDE (n1, n2, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n3 IS NOT NULL;
CREATE INDEX entries_by_n4 ON precast.entries (content_type_id, n4, published_at DESC, id)
  INCLUDE (n1, n2, n3, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n4 IS NOT NULL;
CREATE INDEX entries_by_n5 ON precast.entries (content_type_id, n5, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n5 IS NOT NULL;
CREATE INDEX entries_by_n6 ON precast.entries (content_type_id, n6, published_at DESC, id)
  INCLUDE (n1, n2, n3, n4, n5, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n6 IS NOT NULL;

DROP INDEX IF EXISTS precast.entries_by_texts;
DO $$
DECLARE
  operators text;
BEGIN
  SELECT quote_ident(nspname) || '.gin_trgm_ops' INTO operators
  FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm';
  IF FOUND THEN
    EXECUTE format('CREATE INDEX entries_by_texts ON precast.entries USING gin (texts %s) WHERE status = ''published''', operators);
  END IF;
END
$$;
