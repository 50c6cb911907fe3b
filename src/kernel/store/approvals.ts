import type { Queryable } from '../../database/database.ts'
import type { Approval, ApprovalStatus } from '../model/action.ts'
import type { Owner, Scope } from '../model/fields.ts'
import { insertRecord, listRecords, saveRecord, type Family, type PageRequest, type RecordPage } from './records.ts'
import { scopeKey, scopeOf } from './scope-key.ts'
import { Conditions, ms } from './sql.ts'

const family = (owner: Owner): Family<Approval> => ({
  ...approvals,
  columns: (approval) => ({ ...approvals.columns(approval), owner_type: owner.type, owner_id: owner.id }),
})

export const approvals: Family<Approval> = {
  table: 'kernel_approvals',
  noun: 'action approval',
  columns: ({ runId, actionCallId, status, expiresAt, createdAt }) => ({
    run_id: runId,
    call_id: actionCallId,
    status,
    expires_at: ms(expiresAt),
    created_at: ms(createdAt),
  }),
}

/** `owner` is that of the run: lists are filtered by it. */
export const insertApproval = (tx: Queryable, approval: Approval, owner: Owner): Promise<Approval> =>
  insertRecord(tx, family(owner), approval)

/** @throws conflict when another write came between */
export const saveApproval = (tx: Queryable, approval: Approval, now: number): Promise<Approval> =>
  saveRecord(tx, approvals, approval, now)

/** Pending approvals whose time is over, the oldest first. kernel_approvals_to_end. */
export async function findExpired(db: Queryable, now: number, limit: number): Promise<{ scope: Scope; id: string }[]> {
  const rows = await db.all<{ scope: string; id: string }>(
    `SELECT scope, id FROM kernel_approvals WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT $2`,
    [now, limit],
  )
  return rows.map(({ scope, id }) => ({ scope: scopeOf(scope), id }))
}

export interface ApprovalFilter {
  runId?: string
  owner?: Owner
  status?: readonly ApprovalStatus[]
}

/** kernel_approvals_in_order, _by_status, _by_run, _by_owner. */
export const listApprovals = (
  db: Queryable,
  scope: Scope,
  { runId, owner, status }: ApprovalFilter,
  order: 'created_asc' | 'created_desc',
  page: PageRequest,
): Promise<RecordPage<Approval>> =>
  listRecords(
    db,
    approvals,
    new Conditions()
      .and('t.scope = ?', scopeKey(scope))
      .equal('t.run_id', runId)
      .equal('t.owner_type', owner?.type)
      .equal('t.owner_id', owner?.id)
      .among('t.status', status),
    { columns: ['created_at', 'id'], descending: order === 'created_desc' },
    page,
  )
