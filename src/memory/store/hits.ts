import { inNumbers, type Queryable } from '../../database/database.ts'
import type { CellText } from './content/bodies.ts'
import { hasUnembedded, UNEMBEDDED, type Tags } from './memories.ts'

/** A Cell that a search found, with what a hit tells of its Memory. */
export interface HitRow extends CellText {
  cell_id: string
  head_watermark: string
  written_by_agent_id: string
  /** As JSON; `tagsOf` reads them. */
  tags: string | null
}

/**
 * Those of the Cells whose Memory lives, and whether Cells of the workspace lack a vector of the model: one statement, and so
 * of one moment. From the Cells, by their keys, to the Memories by theirs; the workspace is compared as in `findMemories`.
 */
export async function findHits(
  db: Queryable,
  workspaceId: string,
  model: string,
  cellNos: readonly number[],
): Promise<{ rows: HitRow[]; isPending: boolean }> {
  const tags =
    db.dialect === 'sqlite' ? 'json_group_object(key, value)' : 'json_object_agg(key, value ORDER BY key)::text'
  const rows = await db.all<HitRow & { pending: 0 | 1 }>(
    `SELECT cell_no, cell_id, cell.memory_id, seq, text, text_bytes, text_md5, head_watermark, written_by_agent_id,
            (SELECT ${tags} FROM memory_tag WHERE memory_tag.memory_id = cell.memory_id) AS tags,
            CASE WHEN ${UNEMBEDDED} THEN 1 ELSE 0 END AS pending
       FROM cell CROSS JOIN memory
      WHERE cell_no IN ${inNumbers(db, '$3')} AND memory.memory_id = cell.memory_id
        AND (memory.workspace_id || '') = $1 AND forgotten_at IS NULL`,
    [workspaceId, model, JSON.stringify(cellNos)],
  )
  const first = rows[0]
  return { rows, isPending: first ? first.pending === 1 : await hasUnembedded(db, workspaceId, model) }
}

/** The tags of a hit; undefined where there are none. */
export function tagsOf({ tags: json }: HitRow): Tags | undefined {
  if (json === null || json === '{}') return undefined
  const tags: Tags = JSON.parse(json)
  return tags
}
