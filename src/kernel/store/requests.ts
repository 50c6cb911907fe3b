import type { Queryable } from '../../database/database.ts'
import type { Party, Scope } from '../model/fields.ts'
import type { AgentRequest, RequestStatus } from '../model/request.ts'
import { listRecords, selectFrom, toRecord, type Family, type PageRequest, type RecordPage } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions, ms } from './sql.ts'

const partyKey = ({ type, id }: Party): string => `${encodeURIComponent(type)}/${encodeURIComponent(id)}`

export const requests: Family<AgentRequest> = {
  table: 'kernel_requests',
  noun: 'agent request',
  columns: (request) => ({
    kind: request.kind,
    status: request.status,
    source_run_id: request.sourceRunId,
    child_run_id: request.childRunId ?? null,
    requester: partyKey(request.requester),
    recipient: partyKey(request.recipient),
    created_at: ms(request.createdAt),
  }),
}

/** The request that a run works for. kernel_requests_by_child. */
export async function findRequestOfChild(
  db: Queryable,
  scope: Scope,
  childRunId: string,
): Promise<AgentRequest | undefined> {
  const row = await db.get<{ body: string }>(`${selectFrom(requests)} WHERE t.scope = $1 AND t.child_run_id = $2`, [
    scopeKey(scope),
    childRunId,
  ])
  return row && toRecord(requests, { ...row })
}

export interface RequestFilter {
  sourceRunId?: string
  requester?: Party
  recipient?: Party
  kind?: readonly AgentRequest['kind'][]
  status?: readonly RequestStatus[]
}

/** The newest first. kernel_requests_in_order, _by_source, _by_requester, _by_recipient, _by_status. */
export const listRequests = (
  db: Queryable,
  scope: Scope,
  { sourceRunId, requester, recipient, kind, status }: RequestFilter,
  page: PageRequest,
): Promise<RecordPage<AgentRequest>> =>
  listRecords(
    db,
    requests,
    new Conditions()
      .and('t.scope = ?', scopeKey(scope))
      .equal('t.source_run_id', sourceRunId)
      .equal('t.requester', requester && partyKey(requester))
      .equal('t.recipient', recipient && partyKey(recipient))
      .among('t.kind', kind)
      .among('t.status', status),
    { columns: ['created_at', 'id'], descending: true },
    page,
  )

/** One place more of those that requests under these limits may take; false where all are taken. */
export async function takeDelegation(tx: Queryable, scope: Scope, holder: string, limit: number): Promise<boolean> {
  if (limit < 1) return false
  const taken = await tx.run(
    `INSERT INTO kernel_slots (scope, kind, name, active, capacity, closed) VALUES ($1, 'delegation', $2, 1, NULL, 0)
     ON CONFLICT (scope, kind, name) DO UPDATE SET active = kernel_slots.active + 1 WHERE kernel_slots.active < $3`,
    [scopeKey(scope), holder, limit],
  )
  return taken === 1
}

/** Gives back what `takeDelegation` took. */
export async function freeDelegation(tx: Queryable, scope: Scope, holder: string): Promise<void> {
  await tx.run(`UPDATE kernel_slots SET active = active - 1 WHERE scope = $1 AND kind = 'delegation' AND name = $2`, [
    scopeKey(scope),
    holder,
  ])
}
