-- Vectors of Cells in the extension pgvector. A space is what may be compared: one model, one dimension.

CREATE TABLE vector_space (
  space_no INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  model TEXT COLLATE "C" NOT NULL,
  dimension INTEGER NOT NULL,
  UNIQUE (model, dimension)
);

-- Each space gets an HNSW index of its own, beside these, while the program runs (pgvector-indexes.ts).
CREATE TABLE cell_embedding (
  cell_no BIGINT NOT NULL,
  space_no INTEGER NOT NULL,
  workspace_id TEXT COLLATE "C" NOT NULL,
  embedding vector NOT NULL,
  PRIMARY KEY (cell_no, space_no)
);
CREATE INDEX cell_embedding_by_workspace ON cell_embedding (workspace_id, space_no);
