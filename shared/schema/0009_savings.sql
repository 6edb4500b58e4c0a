-- What counted requests could have left out to be free, as a query spells it: 'per_page=20' where that is the type's
-- default, 'per_page=20&page=1', 'fields'. Empty where they were worth their price, and in rows that are older.
ALTER TABLE precast.usage ADD COLUMN saving text NOT NULL DEFAULT '';
ALTER TABLE precast.usage DROP CONSTRAINT usage_pkey;
ALTER TABLE precast.usage ADD PRIMARY KEY (app_key, day, shape, status, saving);

-- Since when a batch's journal is known to be removed: nobody sends it again, and in time its id can be forgotten.
ALTER TABLE precast.usage_batches ADD COLUMN removed_at timestamptz;
CREATE INDEX usage_batches_by_removal ON precast.usage_batches (removed_at) WHERE removed_at IS NOT NULL;
