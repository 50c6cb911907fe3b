import { inList, type Queryable, type Row } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { Run, RunKind } from '../model/run.ts'
import { selectFrom, toRecord } from './records.ts'
import { runs } from './runs.ts'
import { scopeKey } from './scope-key.ts'
import type { WorkerLimits } from './slots.ts'
import { amongFew, skipLocked } from './sql.ts'

/** Who asks for a run. */
export interface Claimant {
  kinds: readonly RunKind[]
  limits: WorkerLimits
  /** Whether only agents that are installed may work: with an agent registry. */
  knownAgents: boolean
  /** Whether runs that their holders left are looked for too. */
  left: boolean
}

export interface Candidate {
  run: Run
  /** Its last holder let the lease run out. */
  recovered: boolean
}

const DUE_AT_ONCE = 1000

/** Marks queued runs whose time has come, so that a claim reads no others. kernel_runs_not_due. */
export const markDue = (tx: Queryable, scope: Scope, now: number): Promise<number> =>
  tx.run(
    `UPDATE kernel_runs SET due = 1 WHERE scope = $1 AND ${amongFew(
      tx,
      'id',
      `SELECT id FROM kernel_runs WHERE scope = $1 AND status = 'queued' AND due = 0 AND available_at <= $2
        ORDER BY available_at LIMIT ${DUE_AT_ONCE}${skipLocked(tx)}`,
    )}`,
    [scopeKey(scope), now],
  )

/**
 * While nothing that the run `t` needs is closed, unknown or full. $2-$5: bounds of the worker; $6: knownAgents. A scalar,
 * because PostgreSQL makes of NOT EXISTS an anti join over all runs: 118 ms where this takes 2, with 10,000 that are due.
 * @param active how much slot `s` holds
 */
export const freeWith = (active: string): string => `(
  SELECT 1 FROM kernel_run_slots n LEFT JOIN kernel_slots s ON s.scope = n.scope AND s.kind = n.kind AND s.name = n.name
   WHERE n.scope = t.scope AND n.run_id = t.id AND (
     s.closed = 1 OR ($6 = 1 AND n.kind = 'agent' AND s.closed IS NULL)
     OR ${active} + n.amount > s.capacity
     OR (n.kind = 'agent' AND $2 > 0 AND ${active} >= $2)
     OR (n.kind = 'owner' AND $3 > 0 AND ${active} >= $3)
     OR (n.kind = 'objective' AND $4 > 0 AND ${active} >= $4)
     OR (n.kind = 'concurrency_key' AND $5 > 0 AND ${active} >= $5))
   LIMIT 1) IS NULL`
const FREE = freeWith('COALESCE(s.active, 0)')

/** What the order of claims goes by. */
export const KEY = ['rank', 'deadline', 'queue_entered_at', 'id'] as const
const ORDER = `ORDER BY ${KEY.map((column) => `t.${column}`).join(', ')}`

const LEFT = 'SELECT run_id FROM kernel_run_leases WHERE scope = $1 AND owner IS NOT NULL AND held = 0'

type CandidateRow = Row & { body: string }

/**
 * The runs that are to be claimed next, so many at most, locked: due and unblocked each for itself, or left by their holders.
 * Before it come `markDue` and `lapseLeases`. kernel_runs_to_claim, kernel_run_leases_ended. Contract: kernel-1.md 14.1
 */
export async function findClaimable(
  tx: Queryable,
  scope: Scope,
  { limits, knownAgents, left, kinds }: Claimant,
  count: number,
): Promise<Candidate[]> {
  const bounds = [limits.agent, limits.owner, limits.objective, limits.concurrency_key, Number(knownAgents)]
  const select = selectFrom(runs, KEY)
  const find = async (where: string, param: string, recovered: boolean): Promise<Found[]> => {
    const rows = await tx.all<CandidateRow>(
      `${select} WHERE t.scope = $1 AND ${where} AND ${FREE}
       ${ORDER} LIMIT ${Math.trunc(count)}${skipLocked(tx, 'OF t')}`,
      [scopeKey(scope), ...bounds, param],
    )
    return rows.map((row) => ({ row, recovered }))
  }
  const queued = kinds.map((kind) => find(`t.kind = $7 AND t.status = 'queued' AND t.due = 1`, kind, false))
  const isLeft = `t.kind IN ${inList(tx, '$7')} AND t.status = 'running' AND ${amongFew(tx, 't.id', LEFT)}`
  const found = await Promise.all(left ? [...queued, find(isLeft, JSON.stringify(kinds), true)] : queued)
  const first = found.flat().sort((a, b) => compareKeys(a.row, b.row))
  return first.slice(0, count).map(({ row, recovered }) => ({ run: toRecord(runs, row), recovered }))
}

interface Found {
  row: CandidateRow
  recovered: boolean
}

/** Orders rows of several queries as each of them did. */
export function compareKeys(a: Row, b: Row): number {
  for (const column of KEY) {
    const [left, right] = [a[column], b[column]]
    if (typeof left === 'number' && typeof right === 'number' && left !== right) return left - right
    if (typeof left === 'string' && typeof right === 'string' && left !== right) return left < right ? -1 : 1
  }
  return 0
}
