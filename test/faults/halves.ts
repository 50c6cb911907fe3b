import { expect } from 'vitest'
import type { Database } from '../../src/database/database.ts'

/** Each finds what a transaction that was cut in two would leave. None may give a row. */
const HALF_WRITTEN: Record<string, string> = {
  'a Cell without a live Memory': `SELECT cell_id FROM cell LEFT JOIN memory USING (memory_id)
    WHERE memory.memory_id IS NULL OR memory.forgotten_at IS NOT NULL`,
  'a Memory whose Cells are not 0, 1, 2, …': `SELECT memory.memory_id FROM memory LEFT JOIN cell USING (memory_id)
    WHERE forgotten_at IS NULL GROUP BY memory.memory_id, cell_count
    HAVING count(seq) <> cell_count OR count(DISTINCT seq) <> cell_count OR max(seq) + 1 <> cell_count`,
  'a vector without a Cell':
    'SELECT v.cell_no FROM cell_vector v LEFT JOIN cell c ON c.cell_no = v.cell_no WHERE c.cell_no IS NULL',
  'a Cell that says it has a vector and has none': `SELECT cell_id FROM cell c
    LEFT JOIN cell_vector v ON v.cell_no = c.cell_no AND v.model = c.embedding_model
    WHERE c.embedding_model IS NOT NULL AND v.cell_no IS NULL`,
  'a Cell with neither vector nor job': `SELECT cell_id FROM cell c LEFT JOIN embed_job j ON j.cell_no = c.cell_no
    WHERE c.embedding_model IS NULL AND j.cell_no IS NULL`,
  'a job without a Cell':
    'SELECT j.cell_no FROM embed_job j LEFT JOIN cell c ON c.cell_no = j.cell_no WHERE c.cell_no IS NULL',
  'a ready Memory with a Cell that waits': `SELECT memory_id FROM memory JOIN cell USING (memory_id)
    WHERE embedded_model IS NOT NULL AND (embedding_model IS NULL OR embedding_model <> embedded_model)`,
  'a version without a live Memory': `SELECT watermark FROM memory_version v LEFT JOIN memory m ON m.memory_id = v.memory_id
    WHERE m.memory_id IS NULL OR m.forgotten_at IS NOT NULL`,
  'a live Memory without the body of its head': `SELECT m.memory_id FROM memory m
    LEFT JOIN memory_version v ON v.watermark = m.head_watermark AND v.memory_id = m.memory_id
      AND v.content_md5_after = m.content_md5 AND v.superseded_at IS NULL
    WHERE m.forgotten_at IS NULL AND v.content IS NULL AND v.content_bytes IS NULL`,
  'versions that are not 1, 2, 3, … with one head': `SELECT memory_id FROM memory_version GROUP BY memory_id
    HAVING count(*) <> max(version_no) OR count(*) <> count(superseded_at) + 1`,
  'a tag without a live Memory': `SELECT t.memory_id FROM memory_tag t LEFT JOIN memory m ON m.memory_id = t.memory_id
    WHERE m.memory_id IS NULL OR m.forgotten_at IS NOT NULL`,
  'an Edge without two live Memories': `SELECT edge_id FROM edge
    LEFT JOIN memory s ON s.memory_id = source_memory_id AND s.forgotten_at IS NULL
    LEFT JOIN memory t ON t.memory_id = target_memory_id AND t.forgotten_at IS NULL
    WHERE s.memory_id IS NULL OR t.memory_id IS NULL`,
  'a version without its one entry': `SELECT watermark FROM memory_version v
    LEFT JOIN ledger l ON l.target = v.memory_id AND l.watermark_after = v.watermark AND l.op = v.op
    GROUP BY watermark HAVING count(l.ledger_id) <> 1`,
  'an entry of a live Memory without its version': `SELECT ledger_id FROM ledger l JOIN memory m ON m.memory_id = l.target
    LEFT JOIN memory_version v ON v.watermark = l.watermark_after
    WHERE l.op IN ('imprint', 'update', 'patch', 'append') AND m.forgotten_at IS NULL AND v.watermark IS NULL`,
  'a tombstone without its one forget': `SELECT m.memory_id FROM memory m
    LEFT JOIN ledger l ON l.target = m.memory_id AND l.op = 'forget' AND l.watermark_after = m.head_watermark
    WHERE m.forgotten_at IS NOT NULL GROUP BY m.memory_id HAVING count(l.ledger_id) <> 1`,
  'a chain whose head is not its last entry': `SELECT c.workspace_id FROM chain c LEFT JOIN ledger l USING (workspace_id)
    GROUP BY c.workspace_id, c.seq HAVING count(l.seq) <> c.seq OR max(l.seq) <> c.seq`,
}

export async function expectNothingHalfWritten(stores: Database): Promise<void> {
  const found: Record<string, unknown> = {}
  for (const [what, sql] of Object.entries(HALF_WRITTEN)) {
    const rows = await stores.all(`${sql} LIMIT 3`)
    if (rows.length > 0) found[what] = rows
  }
  expect(found).toEqual({})
}
