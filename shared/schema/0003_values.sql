-- How stored values are read and written: what fits a field, its canonical form, and the numbers and instants in it.
-- Every function is total: what it cannot read is NULL, never an error.

-- A jsonb number as a double; beyond a double's range it is an infinity or zero.
CREATE FUNCTION precast.double(value jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN jsonb_typeof(value) IS DISTINCT FROM 'number' THEN NULL
    WHEN abs(value::numeric) >= 1.797693134862315807937e308 THEN sign(value::numeric)::float8 * 'Infinity'::float8
    WHEN abs(value::numeric) < 2.4703282292062327208829e-324 THEN 0
    ELSE value::float8
  END
$$;

-- A text that spells a number (`-?digits[.digits][e±digits]`) as a double. What a double cannot hold is known by its first digits
-- and their place, and never cast: to catch the error would take a subtransaction, which a parallel plan may not begin.
CREATE FUNCTION precast.double(value text) RETURNS float8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
  parts  text[];
  digits text COLLATE "C";
  place  numeric;
BEGIN
  IF value !~ '^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$' THEN
    RETURN NULL;
  ELSIF length(value) < 300 AND strpos(value, 'e') = 0 THEN
    RETURN value::float8;
  END IF;
  -- Of the whole part, the fraction and the exponent; of an exponent beyond all digits its beginning is enough.
  parts := regexp_match(value, '^-?0*([0-9]*)(?:\.([0-9]+))?(?:e\+?(-?)0*([0-9]{0,15})[0-9]*)?$');
  digits := ltrim(concat(parts[1], parts[2]), '0');
  -- The number is 0.digits times ten to the power of its place.
  place := concat(parts[3], coalesce(nullif(parts[4], ''), '0'))::numeric + length(parts[1])
    - CASE parts[1] WHEN '' THEN coalesce(length(parts[2]), 0) - length(digits) ELSE 0 END;
  RETURN CASE
    WHEN digits = '' OR place < -323 OR (place = -323 AND digits < '24703282292062327208829') THEN 0
    WHEN place < 309 OR (place = 309 AND digits < '1797693134862315807937') THEN value::float8
    WHEN value LIKE '-%' THEN '-Infinity'::float8
    ELSE 'Infinity'::float8
  END;
END
$$;

CREATE FUNCTION precast.is_day(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN value ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' AND value >= '0001' COLLATE "C" THEN
    substr(value, 9, 2)::int <= CASE
      WHEN substr(value, 6, 2) IN ('04', '06', '09', '11') THEN 30
      WHEN substr(value, 6, 2) <> '02' THEN 31
      WHEN substr(value, 1, 4)::int % 4 = 0
       AND (substr(value, 1, 4)::int % 100 <> 0 OR substr(value, 1, 4)::int % 400 = 0) THEN 29
      ELSE 28
    END
  ELSE false END
$$;

-- An instant as every answer spells it. NULL outside of the years 1 to 9999, which have no such spelling.
CREATE FUNCTION precast.utc(instant timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN instant >= '0001-01-01T00:00Z' AND instant < '9999-12-31T24:00Z' THEN
    to_char(instant AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')
  END
$$;

-- An instant with an offset or Z in canonical form: UTC, three digits. NULL when it is none.
CREATE FUNCTION precast.instant(value text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN value ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[+-](0[0-9]|1[0-5]):[0-5][0-9])$'
     AND precast.is_day(left(value, 10))
    THEN precast.utc(regexp_replace(value, '(\.[0-9]{3})[0-9]+', '\1')::timestamptz)
  END
$$;

-- Is this an instant in its canonical form? Inlined.
CREATE FUNCTION precast.is_instant(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN value ~ 'T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}\+00:00$' AND length(value) = 29
    THEN precast.is_day(left(value, 10)) ELSE false END
$$;

-- Is this a UUID in its canonical form? Inlined.
CREATE FUNCTION precast.is_uuid(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT value ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
$$;

-- Does a single value fit a field's type? No value and JSON null fit all.
CREATE FUNCTION precast.fits(type text, value jsonb) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE coalesce(jsonb_typeof(value), 'null')
    WHEN 'null' THEN true
    WHEN 'string' THEN CASE type
      WHEN 'relation' THEN value #>> '{}' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      WHEN 'date' THEN precast.is_day(value #>> '{}')
      WHEN 'datetime' THEN precast.instant(value #>> '{}') IS NOT NULL
      ELSE type NOT IN ('number', 'boolean')
    END
    WHEN 'number' THEN type = 'json' OR (type = 'number' AND abs(value::numeric) < 1.797693134862315807937e308)
    WHEN 'boolean' THEN type IN ('boolean', 'json')
    ELSE type = 'json'
  END
$$;

-- Does an array fit a `multiple` field? JSON null does. Apart from `fits`, which is inlined as long as it has no subquery.
CREATE FUNCTION precast.fits_many(type text, value jsonb) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE coalesce(jsonb_typeof(value), 'null')
    WHEN 'null' THEN true
    WHEN 'array' THEN NOT EXISTS (
      SELECT FROM jsonb_array_elements(value) AS element
      WHERE jsonb_typeof(element) = 'null' OR NOT precast.fits(type, element))
    ELSE false
  END
$$;

-- The one spelling in which a value that fits is stored. What does not fit stays as it is.
CREATE FUNCTION precast.canonical(type text, multiple boolean, value jsonb) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN NOT CASE WHEN multiple THEN precast.fits_many(type, value) ELSE precast.fits(type, value) END THEN value
    WHEN type = 'number' THEN to_jsonb(trim_scale(value::numeric))
    WHEN type = 'datetime' THEN to_jsonb(precast.instant(value #>> '{}'))
    WHEN type = 'relation' THEN lower(value::text)::jsonb
    ELSE value
  END
$$;

-- May a value have another spelling than its canonical one?
CREATE FUNCTION precast.needs_canonical(type text, value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE type
    WHEN 'number' THEN jsonb_typeof(value) = 'number' AND value::text LIKE '%.%0'
    WHEN 'datetime' THEN jsonb_typeof(value) = 'string'
    WHEN 'relation' THEN value::text ~ '[A-F]'
    ELSE false
  END
$$;

-- Is a stored value, in its canonical spelling, an array of what a `multiple` field holds? One that holds anything else is there
-- because the field has changed its type, and reads as no value. Strict: else arrays in the array were looked into. Inlined.
CREATE FUNCTION precast.holds_elements(type text, value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_typeof(value) = 'array' AND NOT value @? CASE type
    WHEN 'relation' THEN
      'strict $[*] ? (@.type() != "string" || !(@ like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))'::jsonpath
    ELSE 'strict $[*] ? (@.type() != "string")'::jsonpath
  END
$$;

-- The elements of a `multiple` field.
CREATE FUNCTION precast.elements(type text, value jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT element
  FROM jsonb_array_elements_text(CASE WHEN precast.holds_elements(type, value) THEN value ELSE '[]' END) AS element
$$;
