-- The model gateway: what its people manage. Ids are never used again; times are epoch milliseconds, booleans 0/1; what
-- no query asks for lies in JSON columns. A user_id makes a record private to that user; without one it is shared.

-- fields: default_model, weight, priority, fallback_group, base_url, config, headers (names), model_mapping,
-- allowed_models, limits, timeouts. secret_names and api_key_last4 tell of secrets without opening them.
CREATE TABLE gateway_credentials (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  user_id BIGINT REFERENCES platform_users (id),
  provider TEXT NOT NULL,
  name TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  fields TEXT NOT NULL,
  secret_names TEXT NOT NULL,
  api_key_last4 TEXT,
  version INTEGER NOT NULL,
  created_by BIGINT NOT NULL REFERENCES platform_users (id),
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX gateway_credentials_by_organization ON gateway_credentials (organization_id, id);
CREATE UNIQUE INDEX gateway_credentials_by_name ON gateway_credentials
  (organization_id, COALESCE(user_id, 0), lower(name));

-- One row a secret, its id '<credential id>/<name>': a sealed value opens for that credential and that name alone.
CREATE TABLE gateway_credential_secrets (
  id TEXT PRIMARY KEY,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  credential_id BIGINT NOT NULL REFERENCES gateway_credentials (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  value TEXT NOT NULL
);
CREATE INDEX gateway_credential_secrets_by_organization ON gateway_credential_secrets (organization_id, credential_id);
CREATE INDEX gateway_credential_secrets_by_credential ON gateway_credential_secrets (credential_id);
INSERT INTO platform_sealed_columns (table_name, column_name, row_column)
  VALUES ('gateway_credential_secrets', 'value', 'id');

-- What processes found out about a credential and share. last_error is JSON.
CREATE TABLE gateway_credential_health (
  credential_id BIGINT PRIMARY KEY REFERENCES gateway_credentials (id) ON DELETE CASCADE,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  rejected_until BIGINT,
  last_error TEXT,
  checked_at BIGINT,
  last_used_at BIGINT
);
CREATE INDEX gateway_credential_health_by_organization ON gateway_credential_health (organization_id);

-- fields: strategy, members, fallback_models, fallback_on, cache_ttl, max_output_tokens.
CREATE TABLE gateway_aliases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  user_id BIGINT REFERENCES platform_users (id),
  name TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  fields TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX gateway_aliases_by_organization ON gateway_aliases (organization_id, id);
CREATE UNIQUE INDEX gateway_aliases_by_name ON gateway_aliases (organization_id, COALESCE(user_id, 0), name);

-- Of tokens only the SHA-256 is kept; the one before a rotation is good until previous_until. fields: allowed_models,
-- allowed_credentials, limits, max_output_tokens.
CREATE TABLE gateway_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  user_id BIGINT REFERENCES platform_users (id),
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  previous_hash TEXT,
  previous_until BIGINT,
  prefix TEXT NOT NULL,
  last4 TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  fields TEXT NOT NULL,
  budget TEXT,
  expires_at BIGINT,
  last_used_at BIGINT,
  created_by BIGINT NOT NULL REFERENCES platform_users (id),
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX gateway_keys_by_organization ON gateway_keys (organization_id, id);
CREATE INDEX gateway_keys_by_user ON gateway_keys (organization_id, user_id, id);
CREATE INDEX gateway_keys_with_budget ON gateway_keys (organization_id) WHERE budget IS NOT NULL;

-- Settings that were saved, as JSON; the others have their defaults.
CREATE TABLE gateway_settings (
  organization_id BIGINT PRIMARY KEY REFERENCES platform_organizations (id),
  settings TEXT NOT NULL
);

CREATE TABLE gateway_metrics_tokens (
  organization_id BIGINT PRIMARY KEY REFERENCES platform_organizations (id),
  hash TEXT NOT NULL UNIQUE,
  last4 TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT
);

-- Rises in the transaction of every change that calls must know of: processes compare it with what they hold.
CREATE TABLE gateway_revisions (
  organization_id BIGINT PRIMARY KEY REFERENCES platform_organizations (id),
  revision BIGINT NOT NULL
);
