import { toTimestamp } from '../../base/clock.ts'
import { inList, type Queryable } from '../../database/database.ts'
import type { Owner, Scope } from '../model/fields.ts'
import type { Run, RunKind, RunSource, RunStatus } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { insertRecord, listRecords, saveRecord, type Family, type PageRequest, type RecordPage } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions, ms, msOrNull } from './sql.ts'
import { slotsOf } from './slots.ts'

/** Of runs without a deadline: behind all that have one. */
const NEVER = Number.MAX_SAFE_INTEGER
const MINUTE_MS = 60_000

/** Lower comes first: one point of priority is worth one minute of waiting. Contract: kernel-1.md 14.1. */
const rankOf = (run: Run): number => Math.floor(ms(run.queueEnteredAt) / MINUTE_MS) - run.priority

/** Of a run that someone works on, the next turn sees to it. */
const escalatesAt = ({ status, escalation }: Run): number | null =>
  status === 'running' || isTerminal(status) || escalation?.requestId !== undefined ? null : msOrNull(escalation?.dueAt)

export const runs: Family<Run> = {
  table: 'kernel_runs',
  noun: 'agent run',
  columns: (run) => {
    const wake = run.status === 'paused' ? run.pausedWakeCondition : run.wakeCondition
    return {
      kind: run.kind,
      status: run.status,
      source: run.source,
      owner_type: run.owner.type,
      owner_id: run.owner.id,
      objective_id: run.objectiveId ?? null,
      project_id: run.projectId ?? null,
      parent_id: run.parentRunId ?? null,
      root_id: run.rootRunId,
      agent_id: run.assignedAgentId ?? null,
      precedence: -run.priority,
      created_at: ms(run.createdAt),
      rank: rankOf(run),
      deadline: msOrNull(run.deadline) ?? NEVER,
      queue_entered_at: ms(run.queueEnteredAt),
      available_at: ms(run.availableAt),
      due: Number(run.status === 'queued' && ms(run.availableAt) <= ms(run.updatedAt)),
      wake_type: wake?.type ?? null,
      wake_reference: wake ? (wake.reference ?? '') : null,
      wake_at: msOrNull(wake?.wakeAt),
      escalate_at: escalatesAt(run),
      sought: `${run.goal}\n${run.status}`.toLowerCase(),
    }
  },
  fixed: [
    'kind',
    'source',
    'owner_type',
    'owner_id',
    'objective_id',
    'project_id',
    'parent_id',
    'root_id',
    'agent_id',
    'precedence',
    'created_at',
    'deadline',
  ],
  body: ({ leaseOwner: _o, leaseExpiresAt: _e, fencingToken: _t, lastClaimedAt: _c, ...kept }) => kept,
  joined: {
    columns: 'l.owner AS lease_owner, l.expires_at, l.fencing_token, l.claimed_at',
    join: 'LEFT JOIN kernel_run_leases l ON l.scope = t.scope AND l.run_id = t.id',
    read: (row) => ({
      ...(typeof row['lease_owner'] === 'string' && { leaseOwner: row['lease_owner'] }),
      ...(typeof row['expires_at'] === 'number' && { leaseExpiresAt: toTimestamp(row['expires_at']) }),
      ...(typeof row['fencing_token'] === 'number' && { fencingToken: row['fencing_token'] }),
      ...(typeof row['claimed_at'] === 'number' && { lastClaimedAt: toTimestamp(row['claimed_at']) }),
    }),
  },
}

/** With what it takes up while it is worked on. */
export async function insertRun(tx: Queryable, run: Run): Promise<Run> {
  const needs = slotsOf(run)
  const values = needs.map((_, i) => `($1, $2, $${3 * i + 3}, $${3 * i + 4}, $${3 * i + 5})`)
  await Promise.all([
    insertRecord(tx, runs, run),
    // Of an id that is taken the conflict is told.
    tx.run(
      `INSERT INTO kernel_run_slots (scope, run_id, kind, name, amount) VALUES ${values.join(', ')} ON CONFLICT DO NOTHING`,
      [scopeKey(run.scope), run.id, ...needs.flatMap(({ kind, name, amount }) => [kind, name, amount])],
    ),
  ])
  return run
}

/** Leases have their own functions. @throws conflict when another write came between */
export const saveRun = (tx: Queryable, run: Run, now: number): Promise<Run> => saveRecord(tx, runs, run, now)

/** Where runs that are worked on are by now. The key of kernel_runs. */
export const readRevisions = (
  db: Queryable,
  scope: Scope,
  ids: readonly string[],
): Promise<{ id: string; revision: number }[]> =>
  db.all(`SELECT id, revision FROM kernel_runs WHERE scope = $1 AND id IN ${inList(db, '$2')}`, [
    scopeKey(scope),
    JSON.stringify(ids),
  ])

export interface RunFilter {
  kind?: readonly RunKind[]
  objectiveId?: string
  projectId?: string
  parentRunId?: string
  rootRunId?: string
  assignedAgentId?: string
  owner?: Owner
  status?: readonly RunStatus[]
  source?: readonly RunSource[]
  /** A literal part of goal or status, in any case. */
  q?: string
}

const ORDERS = {
  /** kernel_runs_in_order, or of the filter: _by_objective, _by_project, _by_parent, _by_root, _by_agent, _by_owner. */
  scheduler: { columns: ['precedence', 'created_at', 'id'] },
  /** kernel_runs_by_age, or of an objective kernel_runs_by_objective_age. */
  created_desc: { columns: ['created_at', 'id'], descending: true },
} as const
export type RunOrder = keyof typeof ORDERS

/** A page of runs that match. The index: see `ORDERS`. */
export function listRuns(
  db: Queryable,
  scope: Scope,
  filter: RunFilter,
  order: RunOrder,
  page: PageRequest,
): Promise<RecordPage<Run>> {
  const where = new Conditions()
    .and('t.scope = ?', scopeKey(scope))
    .among('t.kind', filter.kind)
    .equal('t.objective_id', filter.objectiveId)
    .equal('t.project_id', filter.projectId)
    .equal('t.parent_id', filter.parentRunId)
    .equal('t.root_id', filter.rootRunId)
    .equal('t.agent_id', filter.assignedAgentId)
    .equal('t.owner_type', filter.owner?.type)
    .equal('t.owner_id', filter.owner?.id)
    .among('t.status', filter.status)
    .among('t.source', filter.source)
  if (filter.q) where.and(`${db.dialect === 'sqlite' ? 'instr' : 'strpos'}(t.sought, ?) > 0`, filter.q.toLowerCase())
  return listRecords(db, runs, where, ORDERS[order], page)
}
