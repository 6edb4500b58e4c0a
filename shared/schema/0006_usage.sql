-- The ledger of counted requests: sums by app, day (UTC), shape and status. An app's rows outlive the app.

CREATE TABLE precast.usage (
  app_key text NOT NULL,
  day     date NOT NULL,
  shape   text NOT NULL,
  status  integer NOT NULL,
  count   bigint NOT NULL,
  PRIMARY KEY (app_key, day, shape, status)
);

-- The batches that `usage` already holds: a batch that comes again changes nothing.
CREATE TABLE precast.usage_batches (
  id          uuid PRIMARY KEY,
  received_at timestamptz NOT NULL DEFAULT now()
);
