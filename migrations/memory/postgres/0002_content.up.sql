-- Bodies in a content store of their own: the length in bytes tells that one was stored there; the text may then be null.
ALTER TABLE memory_version ADD COLUMN content_bytes BIGINT;
ALTER TABLE cell ADD COLUMN text_bytes BIGINT;

-- The content store of the drivers sqlite and postgres: what other drivers keep as files or objects, under the same keys.
CREATE TABLE content (
  key TEXT COLLATE "C" PRIMARY KEY,
  body BYTEA NOT NULL,
  stored_at BIGINT NOT NULL
);
