-- Tombstones, which an export lists behind the live Memories.
CREATE INDEX memory_forgotten ON memory (workspace_id, memory_id) WHERE forgotten_at IS NOT NULL;
