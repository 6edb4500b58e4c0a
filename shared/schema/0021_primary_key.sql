-- Makes the primary key the youngest index of precast.entries. Where several indexes cost the same, PostgreSQL takes the
-- youngest. In a table of few entries, every index that begins with the type costs the same: a session that fills an
-- empty database prepares its statements then, and would keep a plan that reads all of a type to find one entry.
ALTER TABLE precast.entries DROP CONSTRAINT entries_pkey, ADD PRIMARY KEY (content_type_id, id);
