-- What the gateway meters. Times are epoch milliseconds, booleans 0/1, money nano-dollars; what no query asks for lies in
-- JSON columns.

-- record is the usage record as it is shown; the other columns are what it is found by. model is the one used.
CREATE TABLE gateway_usage (
  id TEXT COLLATE "C" PRIMARY KEY,
  organization_id BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL,
  user_id BIGINT,
  key_id BIGINT,
  credential_id BIGINT,
  provider TEXT COLLATE "C",
  model TEXT COLLATE "C",
  outcome TEXT COLLATE "C" NOT NULL,
  surface TEXT COLLATE "C" NOT NULL,
  record TEXT COLLATE "C" NOT NULL
);
CREATE INDEX gateway_usage_by_start ON gateway_usage (organization_id, started_at, id);
CREATE INDEX gateway_usage_by_user ON gateway_usage (organization_id, user_id, started_at, id) WHERE user_id IS NOT NULL;
CREATE INDEX gateway_usage_by_request ON gateway_usage (organization_id, request_id, started_at, id);

-- Sums over a span (of a minute, an hour, a day) that begins at bucket. 0 and '' stand for none. times holds the histograms:
-- JSON, from a letter (duration, upstream, overhead, first token) to its lowest bucket and how many fell into each from there.
CREATE TABLE gateway_usage_aggregates (
  organization_id BIGINT NOT NULL,
  span BIGINT NOT NULL,
  bucket BIGINT NOT NULL,
  user_id BIGINT NOT NULL,
  key_id BIGINT NOT NULL,
  credential_id BIGINT NOT NULL,
  provider TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  surface TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  fallbacks BIGINT NOT NULL,
  rate_limited BIGINT NOT NULL,
  rejected BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  cache_read_tokens BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  cache_write_1h_tokens BIGINT NOT NULL,
  reasoning_tokens BIGINT NOT NULL,
  cost_nano BIGINT NOT NULL,
  cost_requests BIGINT NOT NULL,
  estimated_nano BIGINT NOT NULL,
  unknown_price BIGINT NOT NULL,
  no_usage BIGINT NOT NULL,
  times TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, span, bucket, user_id, key_id, credential_id, provider, model, surface)
);
CREATE INDEX gateway_usage_aggregates_by_user ON gateway_usage_aggregates
  (organization_id, user_id, span, bucket, key_id, credential_id, provider, model, surface);
CREATE INDEX gateway_usage_aggregates_by_key ON gateway_usage_aggregates (organization_id, key_id, span, bucket);

-- Servers that live, by their heartbeats.
CREATE TABLE gateway_processes (
  id TEXT COLLATE "C" PRIMARY KEY,
  seen_at BIGINT NOT NULL
);
CREATE INDEX gateway_processes_by_age ON gateway_processes (seen_at);

-- What was spent and is set aside in a window of time; owner is organization:<id>, user:<id> or key:<id>. A row exists from
-- the first call under a budget in that window on, and begins with what the aggregates know.
CREATE TABLE gateway_budgets (
  owner TEXT COLLATE "C" NOT NULL,
  period TEXT COLLATE "C" NOT NULL,
  starts_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  organization_id BIGINT NOT NULL,
  spent BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  PRIMARY KEY (owner, period, starts_at)
);
CREATE INDEX gateway_budgets_by_organization ON gateway_budgets (organization_id, ends_at);
CREATE INDEX gateway_budgets_by_end ON gateway_budgets (ends_at);

-- What of the money set aside each process holds: reserved is the sum of them.
CREATE TABLE gateway_budget_blocks (
  process_id TEXT COLLATE "C" NOT NULL REFERENCES gateway_processes (id),
  owner TEXT COLLATE "C" NOT NULL,
  period TEXT COLLATE "C" NOT NULL,
  starts_at BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (process_id, owner, period, starts_at)
);

-- Prompts and answers, by the id of their usage record; only where an organization keeps them.
CREATE TABLE gateway_contents (
  id TEXT COLLATE "C" PRIMARY KEY,
  organization_id BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  request TEXT COLLATE "C" NOT NULL,
  response TEXT COLLATE "C" NOT NULL,
  truncated INTEGER NOT NULL
);
CREATE INDEX gateway_contents_by_age ON gateway_contents (organization_id, created_at);
INSERT INTO platform_sealed_columns (table_name, column_name, row_column)
  VALUES ('gateway_contents', 'request', 'id'), ('gateway_contents', 'response', 'id');

-- The chain of each organization: where it ends, and its records. actor, target and changes are canonical JSON.
CREATE TABLE gateway_audit_chains (
  organization_id BIGINT PRIMARY KEY REFERENCES platform_organizations (id),
  seq BIGINT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL
);
CREATE TABLE gateway_audit_records (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  seq BIGINT NOT NULL,
  prev_hash TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  actor_type TEXT COLLATE "C" NOT NULL,
  actor_id BIGINT,
  action TEXT COLLATE "C" NOT NULL,
  target_type TEXT COLLATE "C" NOT NULL,
  target_id TEXT COLLATE "C" NOT NULL,
  target_name TEXT COLLATE "C",
  changes TEXT COLLATE "C",
  request_id TEXT COLLATE "C",
  ip TEXT COLLATE "C",
  user_agent TEXT COLLATE "C",
  count BIGINT NOT NULL,
  UNIQUE (organization_id, seq)
);
CREATE INDEX gateway_audit_records_by_organization ON gateway_audit_records (organization_id, id);
CREATE INDEX gateway_audit_records_by_target ON gateway_audit_records (organization_id, target_type, target_id, id);

-- What the system did, counted by the minute until it is over; then one record of each goes into the chain.
CREATE TABLE gateway_audit_pending (
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  minute BIGINT NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  target_type TEXT COLLATE "C" NOT NULL,
  target_id TEXT COLLATE "C" NOT NULL,
  target_name TEXT COLLATE "C",
  changes TEXT COLLATE "C",
  count BIGINT NOT NULL,
  PRIMARY KEY (organization_id, minute, action, target_type, target_id)
);
CREATE INDEX gateway_audit_pending_by_minute ON gateway_audit_pending (minute);
