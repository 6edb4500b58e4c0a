-- Reads and checks stored values: whether a value fits its field, its canonical form, and the numbers and instants that
-- texts contain. A function that cannot read a value returns NULL or false and never raises an error.

-- A jsonb number as a double: an infinity or zero beyond the range of a double, NULL for anything that is not a number.
CREATE FUNCTION precast.double(value jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN jsonb_typeof(value) IS DISTINCT FROM 'number' THEN NULL
    WHEN abs(value::numeric) >= 1.797693134862315807937e308 THEN sign(value::numeric)::float8 * 'Infinity'::float8
    WHEN abs(value::numeric) < 2.4703282292062327208829e-324 THEN 0
    ELSE value::float8
  END
$$;

-- A text that spells a number (`-?digits[.digits][e±digits]`) as a double, NULL for any other text. Numbers beyond the
-- range of a double are recognised by their leading digits and magnitude and are never cast: catching the error of a
-- cast needs a subtransaction, which a parallel plan may not start.
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
  -- The integer part, the fraction, the exponent's sign and its digits. Of a longer exponent 15 digits are enough: no
  -- text has enough digits to compensate for it.
  parts := regexp_match(value, '^-?0*([0-9]*)(?:\.([0-9]+))?(?:e\+?(-?)0*([0-9]{0,15})[0-9]*)?$');
  digits := ltrim(concat(parts[1], parts[2]), '0');
  -- The number is 0.digits times ten to the power of `place`.
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

-- An instant in the format of all answers (UTC, three digits, `+00:00`). NULL outside of the years 1 to 9999, which
-- this format cannot express.
CREATE FUNCTION precast.utc(instant timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN instant >= '0001-01-01T00:00Z' AND instant < '9999-12-31T24:00Z' THEN
    to_char(instant AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')
  END
$$;

-- Converts a text that spells an instant with an offset or Z to the canonical form. NULL if the text is not such an
-- instant.
CREATE FUNCTION precast.instant(value text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN value ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[+-](0[0-9]|1[0-5]):[0-5][0-9])$'
     AND precast.is_day(left(value, 10))
    THEN precast.utc(regexp_replace(value, '(\.[0-9]{3})[0-9]+', '\1')::timestamptz)
  END
$$;

-- Whether a text is an instant in canonical form. Inlined by PostgreSQL.
CREATE FUNCTION precast.is_instant(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN value ~ 'T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}\+00:00$' AND length(value) = 29
    THEN precast.is_day(left(value, 10)) ELSE false END
$$;

-- Whether a text is a UUID in canonical form (lower case). Inlined by PostgreSQL.
CREATE FUNCTION precast.is_uuid(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT value ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
$$;

-- Whether a single value fits a field's type. A missing value (NULL) and JSON null fit every type.
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

-- Whether a value fits a `multiple` field: an array, JSON null or a missing value (NULL). Separate from `fits`, because
-- PostgreSQL inlines `fits` only while it contains no subquery.
CREATE FUNCTION precast.fits_many(type text, value jsonb) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE coalesce(jsonb_typeof(value), 'null')
    WHEN 'null' THEN true
    WHEN 'array' THEN NOT EXISTS (
      SELECT FROM jsonb_array_elements(value) AS element
      WHERE jsonb_typeof(element) = 'null' OR NOT precast.fits(type, element))
    ELSE false
  END
$$;

-- The canonical spelling of a value that fits its field; any other value is returned unchanged. Call it only for values
-- that `needs_canonical` selects: it does not handle JSON null in a number or datetime field.
CREATE FUNCTION precast.canonical(type text, multiple boolean, value jsonb) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN NOT CASE WHEN multiple THEN precast.fits_many(type, value) ELSE precast.fits(type, value) END THEN value
    WHEN type = 'number' THEN to_jsonb(trim_scale(value::numeric))
    WHEN type = 'datetime' THEN to_jsonb(precast.instant(value #>> '{}'))
    WHEN type = 'relation' THEN lower(value::text)::jsonb
    ELSE value
  END
$$;

-- Whether a value may be spelled differently from its canonical form.
CREATE FUNCTION precast.needs_canonical(type text, value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE type
    WHEN 'number' THEN jsonb_typeof(value) = 'number' AND value::text LIKE '%.%0'
    WHEN 'datetime' THEN jsonb_typeof(value) = 'string'
    WHEN 'relation' THEN value::text ~ '[A-F]'
    ELSE false
  END
$$;

-- Whether a stored value, in canonical spelling, is an array whose elements all fit a `multiple` field. Other arrays
-- exist only because the field has changed its type; they read as no value. The paths are strict because a lax filter
-- would also test the elements of nested arrays. Inlined by PostgreSQL.
CREATE FUNCTION precast.holds_elements(type text, value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_typeof(value) = 'array' AND NOT value @? CASE type
    WHEN 'relation' THEN
      'strict $[*] ? (@.type() != "string" || !(@ like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))'::jsonpath
    ELSE 'strict $[*] ? (@.type() != "string")'::jsonpath
  END
$$;

-- The elements of a `multiple` field's value; none if the value does not fit the field.
CREATE FUNCTION precast.elements(type text, value jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT element
  FROM jsonb_array_elements_text(CASE WHEN precast.holds_elements(type, value) THEN value ELSE '[]' END) AS element
$$;
