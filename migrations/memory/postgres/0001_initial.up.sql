-- Ids, names and keys compare by bytes (collation "C"), as in SQLite.
-- Workspaces, their chains, and what they hold. Times are epoch milliseconds, booleans 0/1, objects JSON text.

CREATE TABLE workspace (
  workspace_id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  region TEXT COLLATE "C",
  chunker_id TEXT COLLATE "C",
  embedding_model TEXT COLLATE "C",
  meta TEXT COLLATE "C",
  auto_link_enabled INTEGER NOT NULL,
  auto_link_threshold DOUBLE PRECISION NOT NULL,
  auto_link_max_edges INTEGER NOT NULL,
  auto_link_max_incoming_per_day BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- One row a workspace, kept after its deletion. Every mutation locks it first, so mutations of a workspace have one
-- order, which is the order of the ledger (seq) and of changes to what recall sees (change_seq).
CREATE TABLE chain (
  workspace_id TEXT COLLATE "C" PRIMARY KEY,
  seq BIGINT NOT NULL,
  head_hash TEXT COLLATE "C" NOT NULL,
  change_seq BIGINT NOT NULL
);

CREATE TABLE collection (
  collection_id TEXT COLLATE "C" PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (workspace_id, name)
);

-- A forgotten Memory stays as a tombstone without text. embedded_model is set while every Cell has a vector of it.
CREATE TABLE memory (
  memory_id TEXT COLLATE "C" PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL,
  collection_id TEXT COLLATE "C",
  content_md5 TEXT COLLATE "C" NOT NULL,
  head_watermark TEXT COLLATE "C" NOT NULL,
  created_watermark TEXT COLLATE "C" NOT NULL,
  written_by_agent_id TEXT COLLATE "C" NOT NULL,
  last_modified_by_agent_id TEXT COLLATE "C" NOT NULL,
  chunker_id TEXT COLLATE "C",
  chunker_config TEXT COLLATE "C",
  cell_count INTEGER NOT NULL,
  embedded_model TEXT COLLATE "C",
  auto_link_due INTEGER NOT NULL,
  change_seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  forgotten_at BIGINT
);
CREATE INDEX memory_by_age ON memory (workspace_id, created_at, memory_id) WHERE forgotten_at IS NULL;
CREATE INDEX memory_by_collection ON memory (workspace_id, collection_id, created_at, memory_id) WHERE forgotten_at IS NULL;
CREATE INDEX memory_by_content ON memory (workspace_id, content_md5) WHERE forgotten_at IS NULL;
CREATE INDEX memory_by_change ON memory (workspace_id, change_seq);
CREATE INDEX memory_by_model ON memory (workspace_id, embedded_model) WHERE forgotten_at IS NULL AND cell_count > 0;

-- Every body a Memory ever had. tags are those the version ended with; the head's are in memory_tag.
CREATE TABLE memory_version (
  watermark TEXT COLLATE "C" PRIMARY KEY,
  memory_id TEXT COLLATE "C" NOT NULL,
  version_no BIGINT NOT NULL,
  op TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  content_md5_before TEXT COLLATE "C",
  content_md5_after TEXT COLLATE "C" NOT NULL,
  content TEXT COLLATE "C",
  tags TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  superseded_at BIGINT
);
CREATE INDEX memory_version_by_memory ON memory_version (memory_id, version_no);
CREATE INDEX memory_version_superseded ON memory_version (superseded_at) WHERE superseded_at IS NOT NULL;

CREATE TABLE memory_tag (
  memory_id TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  workspace_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (memory_id, key)
);
-- By the begin of the value: an index row holds 2700 bytes, a value up to 16 KB.
CREATE INDEX memory_tag_by_value ON memory_tag (workspace_id, key, substr(value, 1, 100));

-- cell_no is the short key of the search index; never used again.
CREATE TABLE cell (
  cell_no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cell_id TEXT COLLATE "C" NOT NULL,
  workspace_id TEXT COLLATE "C" NOT NULL,
  memory_id TEXT COLLATE "C" NOT NULL,
  seq INTEGER NOT NULL,
  text TEXT COLLATE "C",
  text_md5 TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  metadata_json TEXT COLLATE "C",
  embedding_model TEXT COLLATE "C",
  created_at BIGINT NOT NULL
);
CREATE INDEX cell_by_memory ON cell (memory_id, seq);

-- Float32, little-endian, unit length.
CREATE TABLE cell_vector (
  cell_no BIGINT NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  vector BYTEA NOT NULL,
  PRIMARY KEY (cell_no, model)
);

-- Cells that wait for a vector. A worker leases a row by moving next_at ahead.
CREATE TABLE embed_job (
  cell_no BIGINT PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL,
  memory_id TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  attempts INTEGER NOT NULL,
  next_at BIGINT NOT NULL
);
CREATE INDEX embed_job_due ON embed_job (next_at);
CREATE INDEX embed_job_by_memory ON embed_job (memory_id);

CREATE TABLE edge (
  edge_id TEXT COLLATE "C" PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL,
  source_memory_id TEXT COLLATE "C" NOT NULL,
  target_memory_id TEXT COLLATE "C" NOT NULL,
  edge_type TEXT COLLATE "C" NOT NULL,
  properties_json TEXT COLLATE "C",
  created_by_agent_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  watermark TEXT COLLATE "C" NOT NULL,
  UNIQUE (workspace_id, source_memory_id, target_memory_id, edge_type)
);
CREATE INDEX edge_by_source ON edge (source_memory_id, edge_id);
CREATE INDEX edge_by_target ON edge (target_memory_id, edge_id);
CREATE INDEX edge_by_type ON edge (workspace_id, edge_type);

CREATE TABLE pin (
  pin_id TEXT COLLATE "C" PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL,
  query TEXT COLLATE "C" NOT NULL,
  mode TEXT COLLATE "C" NOT NULL,
  k INTEGER NOT NULL,
  watermark TEXT COLLATE "C" NOT NULL,
  label TEXT COLLATE "C",
  created_by TEXT COLLATE "C",
  created_at BIGINT NOT NULL
);
CREATE INDEX pin_by_workspace ON pin (workspace_id, pin_id);

CREATE TABLE agent (
  workspace_id TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  display_name TEXT COLLATE "C",
  identity_provider TEXT COLLATE "C" NOT NULL,
  identity_proof_hash TEXT COLLATE "C",
  agent_type TEXT COLLATE "C",
  model TEXT COLLATE "C",
  capabilities TEXT COLLATE "C",
  registered_at BIGINT NOT NULL,
  last_seen_at BIGINT,
  active INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, agent_id)
);
CREATE INDEX agent_by_age ON agent (workspace_id, registered_at, agent_id);

-- The first 2xx answer under a key, kept for 24 h. scope is the workspace, or empty for creating one.
CREATE TABLE idempotency (
  scope TEXT COLLATE "C" NOT NULL,
  route TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  body_hash TEXT COLLATE "C" NOT NULL,
  answer TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (scope, route, agent_id, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- The audit ledger: a hash chain a workspace. salt goes with metadata, ip and user_agent when an entry is redacted.
CREATE TABLE ledger (
  ledger_id TEXT COLLATE "C" PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  op TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  ts BIGINT NOT NULL,
  target TEXT COLLATE "C",
  watermark_before TEXT COLLATE "C",
  watermark_after TEXT COLLATE "C",
  request_id TEXT COLLATE "C" NOT NULL,
  latency_ms DOUBLE PRECISION NOT NULL,
  api_key_id TEXT COLLATE "C",
  user_id TEXT COLLATE "C",
  metadata TEXT COLLATE "C",
  ip TEXT COLLATE "C",
  user_agent TEXT COLLATE "C",
  redact_audit INTEGER NOT NULL,
  redacted_fields TEXT COLLATE "C",
  salt BYTEA,
  pii_digest TEXT COLLATE "C" NOT NULL,
  prev_hash TEXT COLLATE "C" NOT NULL,
  entry_hash TEXT COLLATE "C" NOT NULL,
  UNIQUE (workspace_id, seq)
);
CREATE INDEX ledger_by_target ON ledger (workspace_id, target, seq);
CREATE INDEX ledger_by_agent ON ledger (workspace_id, agent_id, seq);
CREATE INDEX ledger_by_op ON ledger (workspace_id, op, seq);

-- What must still reach a seam that lives in another database: applied in order, each exactly once.
CREATE TABLE outbox (
  outbox_no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  seam TEXT COLLATE "C" NOT NULL,
  op TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL
);
CREATE INDEX outbox_by_seam ON outbox (seam, outbox_no);

-- Work that one process at a time does: delivery to other databases, sweeping.
CREATE TABLE lease (
  name TEXT COLLATE "C" PRIMARY KEY,
  holder TEXT COLLATE "C" NOT NULL,
  until_at BIGINT NOT NULL
);
