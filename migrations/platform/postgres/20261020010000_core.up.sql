-- Organizations and what belongs to them. Ids are never used again; times are epoch milliseconds, booleans 0/1.

CREATE TABLE platform_organizations (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);

-- email is lower-cased. password_hash names its own parameters.
CREATE TABLE platform_users (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  email TEXT COLLATE "C" NOT NULL UNIQUE,
  password_hash TEXT COLLATE "C" NOT NULL,
  display_name TEXT COLLATE "C",
  role TEXT COLLATE "C" NOT NULL,
  active INTEGER NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX platform_users_by_organization ON platform_users (organization_id, id);

-- Of a session token only its SHA-256 is kept.
CREATE TABLE platform_sessions (
  token_hash TEXT COLLATE "C" PRIMARY KEY,
  user_id BIGINT NOT NULL REFERENCES platform_users (id),
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX platform_sessions_by_user ON platform_sessions (user_id);
CREATE INDEX platform_sessions_by_end ON platform_sessions (expires_at);

-- Logins that failed, or are being tried; subject is the SHA-256 of an e-mail or an address. Kept 15 minutes.
CREATE TABLE platform_login_attempts (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subject TEXT COLLATE "C" NOT NULL,
  attempted_at BIGINT NOT NULL
);
CREATE INDEX platform_login_attempts_by_subject ON platform_login_attempts (subject, attempted_at);
CREATE INDEX platform_login_attempts_by_age ON platform_login_attempts (attempted_at);

-- Only flags that were set; the others have their defaults.
CREATE TABLE platform_feature_flags (
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  name TEXT COLLATE "C" NOT NULL,
  enabled INTEGER NOT NULL,
  PRIMARY KEY (organization_id, name)
);

CREATE TABLE platform_projects (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  name TEXT COLLATE "C" NOT NULL,
  source_control TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  UNIQUE (organization_id, name)
);
CREATE INDEX platform_projects_by_organization ON platform_projects (organization_id, id);

CREATE TABLE platform_members (
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  project_id BIGINT NOT NULL REFERENCES platform_projects (id),
  user_id BIGINT NOT NULL REFERENCES platform_users (id),
  role TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (project_id, user_id)
);
CREATE INDEX platform_members_by_user ON platform_members (user_id);

CREATE TABLE platform_work_items (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  project_id BIGINT NOT NULL REFERENCES platform_projects (id),
  type TEXT COLLATE "C" NOT NULL,
  title TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C",
  status TEXT COLLATE "C" NOT NULL,
  branch TEXT COLLATE "C",
  repository_link_id BIGINT,
  session_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  completed_at BIGINT
);
CREATE INDEX platform_work_items_by_project ON platform_work_items (project_id, id);

CREATE TABLE platform_agent_sessions (
  sid BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id TEXT COLLATE "C" NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES platform_organizations (id),
  project_id BIGINT NOT NULL REFERENCES platform_projects (id),
  user_id BIGINT NOT NULL REFERENCES platform_users (id),
  kind TEXT COLLATE "C" NOT NULL,
  branch TEXT COLLATE "C",
  repository_link_id BIGINT,
  work_item_id BIGINT,
  status TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX platform_agent_sessions_by_project ON platform_agent_sessions (project_id, sid);

-- Where secrets are sealed, for whoever seals them anew: a migration that makes such a column names it here. row_column is
-- the unique column that a sealed value is bound to; every such table has an organization_id.
CREATE TABLE platform_sealed_columns (
  table_name TEXT COLLATE "C" NOT NULL,
  column_name TEXT COLLATE "C" NOT NULL,
  row_column TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (table_name, column_name)
);
