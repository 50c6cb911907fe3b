import type { Database, Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { listApprovals } from '../store/approvals.ts'
import { listCalls } from '../store/calls.ts'
import { readRecord } from '../store/records.ts'
import { listRuns, runs } from '../store/runs.ts'
import { listTurns } from '../store/turns.ts'
import { isTerminal } from '../run-states.ts'
import { shownRun } from './shown.ts'

/** What a run did, and its children, by the steps of its runbook. Contract: kernel-1.md 6.6 */

const MAX_DEPTH = 256
/** Of each list of one run. */
const MOST = 500
/** Of one audit, its children and theirs. */
const MOST_RUNS = 500

export interface Audit {
  run: ReturnType<typeof shownRun> & { activationId?: string; pendingApprovals: number; pendingChildRuns: number }
  trace: unknown[]
  nodes: unknown[]
  lineage: unknown[]
  unassignedTurns: unknown[]
  unassignedActions: unknown[]
  unassignedApprovals: unknown[]
  unassignedArtifacts: unknown[]
  /** Their ids. */
  unassignedChildren: string[]
  children: (Audit | CutAudit)[]
  /** Lists of the run that go on behind what is shown; absent where all is. */
  omitted?: string[]
}

/** A child that is not gone into. */
interface CutAudit {
  run: { id: string }
  cut: 'cycle' | 'depth' | 'size'
}

/** @throws not_found */
export const auditRun = (database: Database, scope: Scope, runId: string): Promise<Audit> =>
  database.snapshot(async (view) => {
    const run = await readRecord(view, runs, scope, runId)
    return audit({ view, scope, left: MOST_RUNS }, run, [])
  })

interface Auditing {
  view: Queryable
  scope: Scope
  /** How many runs more may be gone into. */
  left: number
}

/** A run without a runbook has no steps: all that it did is assigned to none. */
async function audit(auditing: Auditing, run: Run, above: readonly string[]): Promise<Audit> {
  const { view, scope } = auditing
  auditing.left--
  const page = { limit: MOST }
  const turns = await listTurns(view, scope, { runId: run.id, ...page })
  const calls = await listCalls(view, scope, { runId: run.id }, page)
  const approvals = await listApprovals(view, scope, { runId: run.id }, 'created_asc', page)
  const childRuns = await listRuns(view, scope, { parentRunId: run.id }, 'scheduler', page)
  const lists = { turns, actions: calls, approvals, children: childRuns }
  const omitted = Object.entries(lists).flatMap(([name, { next }]) => (next ? [name] : []))
  const path = [...above, run.id]
  const children: Audit['children'] = []
  for (const child of childRuns.items) {
    const cut = cutOf(auditing, child.id, path)
    children.push(cut ? { run: { id: child.id }, cut } : await audit(auditing, child, path))
  }
  return {
    run: {
      ...shownRun(run),
      pendingApprovals: approvals.items.filter(({ status }) => status === 'pending').length,
      pendingChildRuns: childRuns.items.filter(({ status }) => !isTerminal(status)).length,
    },
    trace: [],
    nodes: [],
    lineage: [],
    unassignedTurns: turns.items,
    unassignedActions: calls.items,
    unassignedApprovals: approvals.items,
    unassignedArtifacts: [],
    unassignedChildren: childRuns.items.map(({ id }) => id),
    children,
    ...(omitted.length > 0 && { omitted }),
  }
}

function cutOf({ left }: Auditing, childId: string, path: readonly string[]): CutAudit['cut'] | undefined {
  if (path.includes(childId)) return 'cycle'
  if (path.length >= MAX_DEPTH) return 'depth'
  return left > 0 ? undefined : 'size'
}
