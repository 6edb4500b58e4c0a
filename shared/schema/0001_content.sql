-- The tables that a CMS writes: apps, their content types, the types' fields, and entries.
-- Names and rules: contract.md section 2. The constraints here enforce the rules that concern a single row.

CREATE TABLE precast.apps (
  id             integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key            text COLLATE "C" NOT NULL UNIQUE CHECK (key ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$'),
  name           text NOT NULL DEFAULT '',
  media_base_url text CHECK (media_base_url ~ '^https?://[^/]')
);

CREATE TABLE precast.content_types (
  id                integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app_id            integer NOT NULL REFERENCES precast.apps ON DELETE CASCADE,
  slug              text COLLATE "C" NOT NULL CHECK (slug ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  name              text NOT NULL DEFAULT '',
  description       text NOT NULL DEFAULT '',
  icon              text NOT NULL DEFAULT '',
  position          integer,
  published         boolean NOT NULL DEFAULT true,
  default_sort      text,
  per_page          integer CHECK (per_page BETWEEN 1 AND 100),
  summary_fields    text[],
  filterable_fields text[] NOT NULL DEFAULT '{}',
  sortable_fields   text[] NOT NULL DEFAULT '{}',
  UNIQUE (app_id, slug)
);

CREATE TABLE precast.fields (
  content_type_id integer NOT NULL REFERENCES precast.content_types ON DELETE CASCADE,
  name            text COLLATE "C" NOT NULL CHECK (
                    name ~ '^[a-z][a-z0-9_]{0,62}$'
                    AND name NOT IN ('id', 'published_at', 'created_at', 'updated_at', 'search')),
  position        integer NOT NULL,
  type            text NOT NULL CHECK (type IN ('text', 'rich_text', 'select', 'media', 'relation',
                                                'number', 'boolean', 'date', 'datetime', 'json')),
  label           text NOT NULL DEFAULT '',
  required        boolean NOT NULL DEFAULT false,
  searchable      boolean NOT NULL DEFAULT false,
  multiple        boolean NOT NULL DEFAULT false,
  target          text,
  PRIMARY KEY (content_type_id, name),
  -- The error shows a constraint's name and nothing else of it.
  CONSTRAINT text_rich_text_and_select_can_be_searchable CHECK (
    NOT searchable OR type IN ('text', 'rich_text', 'select')),
  CONSTRAINT text_select_media_and_relation_can_be_multiple CHECK (
    NOT multiple OR type IN ('text', 'select', 'media', 'relation')),
  CONSTRAINT relations_and_no_others_have_a_target CHECK ((target IS NOT NULL) = (type = 'relation'))
);

-- One row per entry. `data` holds the values that lists, filters and sorts read, by field name; `rich` holds the rich
-- text, which they never read. Triggers move rich text from `data` to `rich` and maintain `changed_in`.
CREATE TABLE precast.entries (
  content_type_id integer NOT NULL REFERENCES precast.content_types ON DELETE CASCADE,
  id              uuid NOT NULL,
  status          text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'published')),
  data            jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(data) = 'object'),
  rich            jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(rich) = 'object'),
  published_at    timestamptz(3),
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  changed_in      xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (content_type_id, id),
  CONSTRAINT published_entries_have_a_published_at CHECK (status <> 'published' OR published_at IS NOT NULL),
  -- Answers write years with four digits.
  CONSTRAINT timestamps_are_in_the_years_0001_to_9999_of_utc CHECK (
    least(published_at, created_at, updated_at) >= '0001-01-01T00:00Z'
    AND greatest(published_at, created_at, updated_at) < '9999-12-31T24:00Z')
);

-- Keeps `data` in the row and moves rich text out to the TOAST table: a list that reads 10,000 rows must not decompress
-- 10,000 bodies.
ALTER TABLE precast.entries SET (toast_tuple_target = 128);
ALTER TABLE precast.entries ALTER COLUMN data SET STORAGE MAIN;

-- Renews statistics after fewer changes than usual: while they do not know a new type, the planner expects one entry in
-- it, and a search in thousands may then be slow.
ALTER TABLE precast.entries SET (autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX entries_by_publication ON precast.entries (content_type_id, published_at DESC, id)
  WHERE status = 'published';

-- Serves equality filters on any field of any content type: `data @> '{"name": "Oslo"}'`.
CREATE INDEX entries_by_value ON precast.entries USING gin (data jsonb_path_ops)
  WHERE status = 'published';

-- Lists are also sorted and filtered by creation and edit time: clients that keep a copy ask for what has changed since
-- a given time.
CREATE INDEX entries_by_creation ON precast.entries (content_type_id, created_at DESC, published_at DESC, id)
  WHERE status = 'published';
CREATE INDEX entries_by_edit ON precast.entries (content_type_id, updated_at DESC, published_at DESC, id)
  WHERE status = 'published';
