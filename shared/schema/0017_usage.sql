-- The ledger of counted requests: sums by app, day (UTC), shape, status and saving. An app's rows outlive the app.

-- `saving` is what the requests could have left out to be free, as a query spells it: 'per_page=20' where that is the type's
-- default, 'per_page=20&page=1', 'fields'. Empty where they were worth their price.
CREATE TABLE precast.usage (
  app_key text COLLATE "C" NOT NULL,
  day     date NOT NULL,
  shape   text COLLATE "C" NOT NULL,
  status  integer NOT NULL,
  count   bigint NOT NULL,
  saving  text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (app_key, day, shape, status, saving)
);

-- The batches that `usage` already holds: a batch that comes again changes nothing. `removed_at` is since when a batch's journal is
-- known to be removed: nobody sends it again, and in time its id can be forgotten.
CREATE TABLE precast.usage_batches (
  id          uuid PRIMARY KEY,
  received_at timestamptz NOT NULL DEFAULT now(),
  removed_at  timestamptz
);

CREATE INDEX usage_batches_by_removal ON precast.usage_batches (removed_at) WHERE removed_at IS NOT NULL;
