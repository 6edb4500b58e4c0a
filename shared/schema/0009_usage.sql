-- The ledger of counted requests: sums by app, day (UTC), shape, status and saving. An app's rows outlive the app.

-- `saving` lists the query parameters that the requests could have left out to be free with the same answer:
-- 'per_page=20' (if that is the type's default), 'per_page=20&page=1', 'fields'. Empty if they could not have been
-- free.
CREATE TABLE precast.usage (
  app_key text COLLATE "C" NOT NULL,
  day     date NOT NULL,
  shape   text COLLATE "C" NOT NULL,
  status  integer NOT NULL,
  count   bigint NOT NULL,
  saving  text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (app_key, day, shape, status, saving)
);

-- The ids of the batches that `usage` already includes: a batch that is sent again changes nothing. `removed_at` is the
-- time at which a server reported that it had removed the batch's journal: no server will send the batch again, and
-- after some time its row is deleted.
CREATE TABLE precast.usage_batches (
  id          uuid PRIMARY KEY,
  received_at timestamptz NOT NULL DEFAULT now(),
  removed_at  timestamptz
);

CREATE INDEX usage_batches_by_removal ON precast.usage_batches (removed_at) WHERE removed_at IS NOT NULL;
