import { toTimestamp } from '../../base/clock.ts'
import type { Page } from '../../base/pages.ts'
import { toPage } from '../../base/pages.ts'
import type { Queryable } from '../../database/database.ts'
import type { Pin, RecallMode } from '../model.ts'
import { optional } from './rows.ts'

interface PinRow {
  pin_id: string
  workspace_id: string
  query: string
  mode: RecallMode
  k: number
  watermark: string
  label: string | null
  created_by: string | null
  created_at: number
}

const toPin = (row: PinRow): Pin => ({
  pin_id: row.pin_id,
  workspace_id: row.workspace_id,
  query: row.query,
  mode: row.mode,
  k: row.k,
  watermark: row.watermark,
  ...optional('label', row.label),
  ...optional('created_by', row.created_by),
  created_at: toTimestamp(row.created_at),
})

/** Newest first; `before` is the id of the last one shown. */
export async function listPins(
  db: Queryable,
  workspaceId: string,
  limit: number,
  before: string | undefined,
): Promise<Page<Pin>> {
  const rows = await db.all<PinRow>(
    `SELECT * FROM pin WHERE workspace_id = $1 AND (CAST($2 AS TEXT) IS NULL OR pin_id < $2) ORDER BY pin_id DESC LIMIT $3`,
    [workspaceId, before ?? null, limit + 1],
  )
  return toPage(rows, limit, (row) => [row.pin_id], toPin)
}

/** Its id must be new. */
export async function insertPin(tx: Queryable, pin: Pin): Promise<void> {
  await tx.run(
    `INSERT INTO pin (pin_id, workspace_id, query, mode, k, watermark, label, created_by, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      pin.pin_id,
      pin.workspace_id,
      pin.query,
      pin.mode,
      pin.k,
      pin.watermark,
      pin.label ?? null,
      pin.created_by ?? null,
      Date.parse(pin.created_at),
    ],
  )
}

/** The workspace that has the pin. */
export async function findPinOwner(db: Queryable, id: string): Promise<string | undefined> {
  const sql = 'SELECT workspace_id FROM pin WHERE pin_id = $1'
  return (await db.get<{ workspace_id: string }>(sql, [id]))?.workspace_id
}

/** False when the workspace has no such pin. */
export async function deletePin(tx: Queryable, workspaceId: string, id: string): Promise<boolean> {
  return (await tx.run('DELETE FROM pin WHERE pin_id = $1 AND workspace_id = $2', [id, workspaceId])) > 0
}
