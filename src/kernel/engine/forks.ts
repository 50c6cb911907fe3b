import type { Change } from '../change.ts'
import type { Dependency, DependencyGroup, DependencyStatus } from '../model/dependency.ts'
import type { Run } from '../model/run.ts'
import { isTerminal, moveRun } from '../run-states.ts'
import { createChild } from '../runs/create.ts'
import { wakeIn } from '../runs/wake.ts'
import { dependencyGroups, insertGroup, listDependencies, settleChild } from '../store/dependencies.ts'
import { findRecord, lockRecord, saveRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import type { Outcome } from '../model/outcome.ts'

/** Runs that a run splits into, and waits for. Contract: kernel-1.md 14.3, 14.4 */

type Fork = NonNullable<Outcome['fork']>

/**
 * Makes the children of a fork, with what they get of the budget, and the group that the run waits for; gives the run in its
 * next state, unsaved. All is written in the transaction of the turn: no child can end before its group is there.
 * @throws KernelError when a child cannot be
 */
export async function openFork(change: Change, run: Run, { children, join, quorum, failure }: Fork): Promise<Run> {
  const { tx, scope, now, at } = change
  const groupId = change.context.newId()
  const edges: { childId: string; name: string }[] = []
  let parent = run
  for (const { key, ...fields } of children) {
    const made = await createChild(change, parent, {
      owner: run.owner,
      priority: run.priority,
      source: 'fork',
      ...inherited(run),
      ...fields,
    })
    parent = made.parent
    edges.push({ childId: made.child.id, name: key })
  }
  const group: DependencyGroup = {
    scope,
    id: groupId,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    runId: run.id,
    status: 'waiting',
    join,
    ...(quorum !== undefined && { quorum }),
    failure,
  }
  await insertGroup(tx, group, edges)
  return moveRun(parent, { to: 'waiting_for_dependency', now, wake: { type: 'run_dependencies', reference: groupId } })
}

const inherited = ({ objectiveId, projectId, assignedAgentId, deadline }: Run) => ({
  ...(objectiveId !== undefined && { objectiveId }),
  ...(projectId !== undefined && { projectId }),
  ...(assignedAgentId !== undefined && { assignedAgentId }),
  ...(deadline !== undefined && { deadline }),
})

const SETTLED = { completed: 'succeeded', failed: 'failed', canceled: 'canceled' } as const

/** Of `context.endings`: what waits for a child of a fork goes on when that is decided. */
export async function settleDependencies(change: Change, child: Run): Promise<void> {
  const { status } = child
  if (child.source !== 'fork' || (status !== 'completed' && status !== 'failed' && status !== 'canceled')) return
  const { tx, scope } = change
  for (const groupId of await settleChild(tx, scope, child.id, SETTLED[status])) {
    const group = await lockRecord(tx, dependencyGroups, scope, groupId)
    if (group.status === 'waiting') await settleGroup(change, group)
  }
}

async function settleGroup(change: Change, group: DependencyGroup): Promise<void> {
  const { tx, scope, now, at } = change
  const dependencies = await listDependencies(tx, scope, group.id)
  const decided = decide(group, dependencies)
  if (!decided) return
  const parent = await lockRecord(tx, runs, scope, group.runId)
  const status = isTerminal(parent.status) ? 'canceled' : decided
  await saveRecord(tx, dependencyGroups, { ...group, status }, now)
  if (isTerminal(parent.status)) return
  const children: Record<string, unknown>[] = []
  for (const dependency of dependencies) children.push(await childOf(change, dependency))
  await wakeIn(change, parent, {
    signalId: `run_dependencies:${group.id}`,
    type: 'run_dependencies',
    reference: group.id,
    result: { kind: 'dependency', id: group.id, at, status, children },
  })
}

/**
 * Whether a group is satisfied or failed; undefined while it is open. It fails when its join cannot be reached any more:
 * at once, or, where it is to wait, when all have ended.
 */
export function decide(
  { join, quorum = 1, failure }: Pick<DependencyGroup, 'join' | 'quorum' | 'failure'>,
  dependencies: readonly Pick<Dependency, 'status'>[],
): 'satisfied' | 'failed' | undefined {
  const count = (status: DependencyStatus): number => dependencies.filter((one) => one.status === status).length
  const needed = join === 'all' ? dependencies.length : join === 'any' ? 1 : quorum
  const succeeded = count('succeeded')
  const pending = count('pending')
  if (succeeded >= needed) return 'satisfied'
  return succeeded + pending < needed && (failure === 'fail_fast' || pending === 0) ? 'failed' : undefined
}

/** What the parent is told of a child. */
async function childOf({ tx, scope }: Change, { childId, name, status }: Dependency): Promise<Record<string, unknown>> {
  const run = status === 'pending' ? undefined : await findRecord(tx, runs, scope, childId)
  return {
    key: name,
    runId: childId,
    status,
    ...(run?.output !== undefined && { output: run.output }),
    ...(run?.error && { error: run.error }),
  }
}
