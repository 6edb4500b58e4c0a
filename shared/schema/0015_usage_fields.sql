-- What counted requests use: `type` is the slug of the content type, empty for one that the app did not have, and `fields`
-- are the names of the fields by which they filter, sort and populate, sorted, with commas between them. Both are
-- '(other)' where a day has too many combinations, and empty for what was counted before. No values are kept.
ALTER TABLE precast.usage
  ADD COLUMN type   text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN fields text COLLATE "C" NOT NULL DEFAULT '',
  DROP CONSTRAINT usage_pkey,
  ADD PRIMARY KEY (app_key, day, shape, status, saving, type, fields);
