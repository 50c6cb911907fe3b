import { inList, type Queryable, type Row } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { Run, RunKind } from '../model/run.ts'
import { selectFrom, toRecord } from './records.ts'
import { compareKeys, freeWith, KEY } from './run-claims.ts'
import { runs } from './runs.ts'
import { scopeKey } from './scope-key.ts'
import type { Need, WorkerLimits } from './slots.ts'

/** What a claim would find, read without a claim's writes: nothing here locks or marks. Contract: kernel-1.md 6.4 */

/** What runs hold whose lease ran out: a claim frees it first. kernel_run_leases_to_end. */
const lapsedAt = (now: string): string => `WITH lapsed AS MATERIALIZED (
  SELECT x.kind, x.name, SUM(x.amount) AS amount FROM kernel_run_leases l
    JOIN kernel_run_slots x ON x.scope = l.scope AND x.run_id = l.run_id
   WHERE l.scope = $1 AND l.held = 1 AND l.expires_at <= ${now} GROUP BY x.kind, x.name)`

/** What slot `s`, which is needed as `n`, holds without them. */
const LIVE = `(COALESCE(s.active, 0) - COALESCE((
  SELECT amount FROM lapsed WHERE lapsed.kind = n.kind AND lapsed.name = n.name), 0))`

export interface Asking {
  kinds: readonly RunKind[]
  /** Of runs assigned to it alone. */
  assignedAgentId?: string
  limits: WorkerLimits
  /** Whether only agents that are installed may work. */
  knownAgents: boolean
  /** Epoch ms. */
  now: number
}

type CandidateRow = Row & { body: string }

const DUE = [
  `t.status = 'queued' AND t.due = 1`,
  `t.status = 'queued' AND t.due = 0 AND t.available_at <= $7`,
  `t.status = 'running' AND t.id IN (
     SELECT run_id FROM kernel_run_leases WHERE scope = $1 AND owner IS NOT NULL AND held = 0
     UNION ALL SELECT run_id FROM kernel_run_leases WHERE scope = $1 AND held = 1 AND expires_at <= $7)`,
]

/**
 * Runs that are due, or left by their holder, in the order of claims: those that a slot blocks, or those that none does.
 * kernel_runs_to_claim, _not_due, kernel_run_leases_to_end, _ended.
 */
export async function listDue(
  db: Queryable,
  scope: Scope,
  { kinds, assignedAgentId = '', limits, knownAgents, now }: Asking,
  { blocked, limit }: { blocked: boolean; limit: number },
): Promise<Run[]> {
  const bounds = [limits.agent, limits.owner, limits.objective, limits.concurrency_key, Number(knownAgents)]
  const rows: CandidateRow[] = []
  for (const kind of kinds) {
    for (const due of DUE) {
      const found = await db.all<CandidateRow>(
        `${lapsedAt('$7')} ${selectFrom(runs, KEY)} WHERE t.scope = $1 AND t.kind = $9 AND ${due} AND ($8 = '' OR t.agent_id = $8)
           AND ${blocked ? 'NOT' : ''} (${freeWith(LIVE)})
          ORDER BY ${KEY.map((column) => `t.${column}`).join(', ')} LIMIT ${Math.trunc(limit)}`,
        [scopeKey(scope), ...bounds, now, assignedAgentId, kind],
      )
      rows.push(...found)
    }
  }
  return rows
    .sort(compareKeys)
    .slice(0, limit)
    .map((row) => toRecord(runs, row))
}

/** Runs that nobody may claim yet: queued for later, the first due first, then those that a worker has. As `listDue`. */
export async function listNotDue(
  db: Queryable,
  scope: Scope,
  { kinds, assignedAgentId = '', now }: Pick<Asking, 'kinds' | 'assignedAgentId' | 'now'>,
  limit: number,
): Promise<Run[]> {
  const params = [scopeKey(scope), now, assignedAgentId, JSON.stringify(kinds)]
  const of = `t.kind IN ${inList(db, '$4')} AND ($3 = '' OR t.agent_id = $3)`
  const later = await db.all<CandidateRow>(
    `${selectFrom(runs)} WHERE t.scope = $1 AND t.status = 'queued' AND t.due = 0 AND t.available_at > $2 AND ${of}
      ORDER BY t.available_at, t.id LIMIT ${Math.trunc(limit)}`,
    params,
  )
  const held = await db.all<CandidateRow>(
    `${selectFrom(runs)} WHERE t.scope = $1 AND t.status = 'running' AND ${of} AND t.id IN (
       SELECT run_id FROM kernel_run_leases WHERE scope = $1 AND held = 1 AND expires_at > $2)
      ORDER BY t.id LIMIT ${Math.trunc(limit)}`,
    params,
  )
  return [...later, ...held].slice(0, limit).map((row) => toRecord(runs, row))
}

/** One thing that keeps a run from being claimed. */
export interface SlotBlock extends Need {
  runId: string
  active: number
  /** The smaller of the slot's and the worker's; absent where it is closed or unknown. */
  limit?: number
  closed: boolean
}

type SlotRow = Need & { run_id: string; active: number; capacity: number | null; closed: number | null }

/** What keeps these runs from being claimed, of all that they need. The keys of kernel_run_slots and kernel_slots. */
export async function readSlotBlocks(
  db: Queryable,
  scope: Scope,
  runIds: readonly string[],
  { limits, knownAgents, now }: Pick<Asking, 'limits' | 'knownAgents' | 'now'>,
): Promise<SlotBlock[]> {
  const rows = await db.all<SlotRow>(
    `${lapsedAt('$3')} SELECT n.run_id, n.kind, n.name, n.amount, CAST(${LIVE} AS BIGINT) AS active, s.capacity, s.closed
       FROM kernel_run_slots n LEFT JOIN kernel_slots s ON s.scope = n.scope AND s.kind = n.kind AND s.name = n.name
      WHERE n.scope = $1 AND n.run_id IN ${inList(db, '$2')} ORDER BY n.run_id, n.kind, n.name`,
    [scopeKey(scope), JSON.stringify(runIds), now],
  )
  return rows.flatMap(({ run_id: runId, capacity, closed, ...need }): SlotBlock[] => {
    const { kind, amount, active } = need
    if (closed === 1 || (knownAgents && kind === 'agent' && closed === null)) return [{ ...need, runId, closed: true }]
    const own = kind === 'resource' || limits[kind] === 0 ? Infinity : limits[kind]
    const limit = Math.min(capacity ?? Infinity, own)
    return active + amount > limit ? [{ ...need, runId, limit, closed: false }] : []
  })
}
